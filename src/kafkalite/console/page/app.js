// The frame of the page: which view is shown, who has logged in, and the keys that work everywhere.

import { ask, lookAtSession, sentence, session, tell, when } from "./api.js";
import { accessView, brokersView, brokerView, clientsView, quotasView } from "./cluster.js";
import { keys } from "./dialogs.js";
import { empty, field, fill, h } from "./dom.js";
import { groupsView, groupView } from "./groups.js";
import { topicsView, topicView } from "./topics.js";
import { transactionsView } from "./transactions.js";

const VIEWS = {
  topics: ["Topics", topicsView], groups: ["Groups", groupsView], transactions: ["Transactions", transactionsView],
  brokers: ["Brokers", brokersView], clients: ["Clients", clientsView], quotas: ["Quotas", quotasView], access: ["Access", accessView],
};
const ONE = { topic: ["topics", topicView], group: ["groups", groupView], broker: ["brokers", brokerView] };
const main = document.getElementById("main");
let leaving = new AbortController(), going = "";

function navigation(section) {
  fill(document.getElementById("nav"), Object.entries(VIEWS)
    .filter(([name]) => name !== "clients" || session.has_clients)
    .map(([name, [title]]) => h("a", { href: `#/${name}`, "aria-current": name === section ? "page" : null }, title)));
  fill(document.getElementById("who"),
    session.may_change ? null : h("span", { class: "tag", title: "Start the console with --allow-changes to change something" }, "read-only"),
    session.user ? [h("span", {}, session.user), h("button", { type: "button", class: "plain", onclick: logOut }, "Log out")] : null);
}

async function logOut() {
  await ask("logout").catch(() => {});
  await start();
}

const listOf = (name) => [name, VIEWS[name][1]];

export function route() {
  leaving.abort();
  leaving = new AbortController();
  if (session.asks_login && !session.is_in) { logIn(); return; }
  const [name = "topics", subject = "", part = ""] = location.hash.replace(/^#\/?/, "").split("/");
  const [section, view] = Object.hasOwn(ONE, name) ? ONE[name] : listOf(Object.hasOwn(VIEWS, name) ? name : "topics");
  navigation(section);
  let told = "";
  try { told = decodeURIComponent(subject); } catch { told = subject; }
  document.title = `${told || VIEWS[section][0]} · Console`;
  const went = `${name}/${subject}`;
  try {
    view({ main, signal: leaving.signal, name: told, part });
  } catch (error) {
    fill(main, empty("This page has a mistake", error.message));
    throw error;
  }
  if (going && going !== went) main.focus({ preventScroll: true });
  going = went;
}

function logIn(why = "") {
  const user = h("input", { required: true, autocomplete: "username", spellcheck: "false" });
  const password = h("input", { type: "password", required: true, autocomplete: "current-password" });
  const error = h("p", { class: "error", role: "alert", hidden: !why }, why);
  const go = h("button", { class: "main", type: "submit" }, "Log in");
  fill(document.getElementById("nav"));
  fill(document.getElementById("who"));
  tell(null);
  document.title = "Log in · Console";
  fill(main, h("form", { class: "login", onsubmit: async (event) => {
    event.preventDefault();
    go.disabled = true;
    try {
      await ask("login", { user: user.value, password: password.value });
      await lookAtSession();
      route();
    } catch (failure) {
      error.textContent = sentence(failure.message);
      error.hidden = false;
      password.select();
    }
    go.disabled = false;
  } }, h("h1", {}, "Log in"), h("p", { class: "muted" }, "With a name and a password that the brokers know (SASL)."),
  field("Name", user), field("Password", password), error, go));
  user.focus();
}

when.loggedOut = (error) => {
  if (!session.asks_login) { fill(main, empty("The brokers do not let this console in", sentence(error.message))); return; }
  if (!session.is_in) return;
  session.is_in = false;
  leaving.abort();
  logIn("The session has ended: log in again.");
};

let before = "";
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  const go = { t: "topics", g: "groups", x: "transactions", b: "brokers", c: "clients", q: "quotas", a: "access" };
  if (before === "g" && event.key in go) { location.hash = `#/${go[event.key]}`; before = ""; return; }
  before = event.key;
  if (event.key === "/") {
    const search = main.querySelector("input[type=search]");
    if (search) { event.preventDefault(); search.focus(); search.select(); }
  } else if (event.key === "?") keys();
});

document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
window.addEventListener("hashchange", route);

async function start() {
  try {
    await lookAtSession();
    route();
  } catch (error) {
    tell(error);
    setTimeout(start, 2000);
  }
}
start();
