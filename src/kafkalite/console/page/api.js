// Questions to the console's own server, and what is done when it or the brokers do not answer.

export class Refusal extends Error {
  constructor(status, told) {
    super(told.error || `the console answered ${status}`);
    this.kind = told.kind || "failed";
    this.code = told.code || null;
  }
}

const banner = () => document.getElementById("banner");
export const session = { asks_login: false, is_in: false, user: null, may_change: false };
export const when = { loggedOut: () => {} };

async function fetched(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, { error: "the console itself does not answer: is it still running?", kind: "unreachable" });
  }
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refusal(answer.status, told);
  return told;
}

export async function ask(path, fields = {}, signal = undefined) {
  try {
    const told = await fetched(`/api/${path}`, {
      method: "POST", body: JSON.stringify(fields), signal, credentials: "same-origin",
      headers: { "content-type": "application/json", "x-kafkalite-console": "1" },
    });
    tell(null);
    return told;
  } catch (error) {
    if (error.kind === "login" && path !== "login") when.loggedOut(error);
    if (error.kind === "unreachable") tell(error);
    throw error;
  }
}

export async function lookAtSession() {
  Object.assign(session, await fetched("/api/session", { credentials: "same-origin" }));
  return session;
}

export function tell(error) {
  const where = banner();
  where.hidden = error === null;
  where.textContent = error === null ? "" : `${sentence(error.message)} Trying again every few seconds.`;
}

export const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;

const pause = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms);
  signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
});

// Asks again and again until the view is left, a tenth of the time at most; while nobody answers,
// in shorter turns.
export async function again(ms, signal, act, failed) {
  while (!signal.aborted) {
    let wait = ms;
    const began = performance.now();
    try {
      await act();
      wait = Math.max(ms, 10 * (performance.now() - began));
    } catch (error) {
      if (signal.aborted || error.name === "AbortError") return;
      if (!(error instanceof Refusal)) throw error;
      if (error.kind === "login") return;
      if (error.kind === "unreachable" || error.kind === "busy") wait = 2000;
      if (error.kind !== "unreachable") failed(error); // which the banner tells
    }
    await pause(wait, signal);
    while (document.hidden && !signal.aborted) await pause(1000, signal);
  }
}
