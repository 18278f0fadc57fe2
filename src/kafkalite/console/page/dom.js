// Elements, numbers and times. Text is only ever set as text: nothing that a record, a topic or a
// header holds becomes markup.

export function h(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value") made.value = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}

export function fill(where, ...children) {
  where.replaceChildren(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
  return where;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const some = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
// What is beyond a browser's whole numbers comes as a text of its digits, and stays exact.
const exact = (value) => (typeof value === "string" && /^-?\d+$/.test(value) ? BigInt(value) : value);
export const number = (value) => {
  if (value === null || value === undefined) return "–";
  return typeof exact(value) === "string" ? value : whole.format(exact(value));
};

export function minus(one, other) {
  if (one === null || other === null) return null;
  return typeof one === "string" || typeof other === "string" ? BigInt(one) - BigInt(other) : one - other;
}

export const counted = (value, what) => `${number(value)} ${what}${value === 1 ? "" : "s"}`;

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(Number(value))) return String(value);
  let unit = 0;
  while (value >= 1000 && unit < 5) { value /= 1000; unit += 1; }
  return `${unit ? some.format(value) : whole.format(value)} ${["B", "kB", "MB", "GB", "TB", "PB"][unit]}`;
}

export function rate(value, told = number) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  return `${told === number && value < 10 ? some.format(value) : told(value)}/s`;
}

export function time(ms) {
  if (ms === null || ms === undefined || ms < 0) return "–";
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return String(ms);
  const two = (value, width = 2) => String(value).padStart(width, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${two(date.getMilliseconds(), 3)}`;
}

export function duration(ms) {
  if (ms === null || ms === undefined || ms < 0) return "–";
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${some.format(seconds / 3600)} h`;
}

let ids = 0;
// A control under its label. A space that is given instead of a text is none that people see.
export function field(title, control, given = {}) {
  const id = `f${++ids}`;
  control.id = id;
  return h("div", { class: "field", ...given }, h("label", { for: id }, title), control);
}

export function check(title, control) {
  const id = `f${++ids}`;
  control.id = id;
  return h("label", { class: "check", for: id }, control, title);
}

export function select(choices, chosen) {
  const made = h("select", {}, Object.entries(choices).map(([value, title]) => h("option", { value }, title)));
  if (chosen !== undefined) made.value = chosen;
  return made;
}

export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

export const tag = (text, kind = "") => h("span", { class: `tag ${kind}` }, text);
export const empty = (title, ...more) => h("div", { class: "empty" }, h("strong", {}, title), more.map((each) => h("p", {}, each)));

let clearing;
export function toast(text) {
  const where = document.getElementById("toast");
  where.textContent = text;
  clearTimeout(clearing);
  clearing = setTimeout(() => { where.textContent = ""; }, 5000);
}

export function missing(sentences) {
  return sentences && sentences.length
    ? h("p", { class: "note" }, `Not all could be had: ${sentences.slice(0, 3).join("; ")}${sentences.length > 3 ? " …" : ""}`)
    : null;
}
