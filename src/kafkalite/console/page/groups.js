// All groups, and one of them: who is in it, how far it has come, and where it would go on.

import { again, ask, sentence, session } from "./api.js";
import { deleteNamed, resetGroup } from "./dialogs.js";
import { counted, empty, facts, fill, h, missing, number, tag } from "./dom.js";
import { Table } from "./table.js";
import { link } from "./topics.js";

const EVERY = 5000, MOST_POINTS = 120;
let searched = "";

export function groupsView({ main, signal }) {
  const count = h("span", { class: "muted", role: "status" }), notes = h("div");
  const search = h("input", { type: "search", placeholder: "Search groups  ( / )", "aria-label": "Search groups", value: searched, spellcheck: "false" });
  const table = new Table({
    label: "Groups", sorted: [0, false], open: (row) => { location.hash = link("group", row.name); }, columns: [
      { title: "Group", sort: (row) => row.name, cell: (row) => h("a", { href: link("group", row.name), tabindex: -1, title: row.name }, row.name || "(no name)") },
      { title: "State", width: "180px", sort: (row) => row.state, cell: (row) => state(row.state) },
      { title: "Protocol", width: "120px", sort: (row) => row.kind, cell: (row) => row.kind || "–" },
      { title: "Members", width: "100px", number: true, sort: (row) => row.members, cell: (row) => number(row.members) },
      { title: "Topics", width: "90px", number: true, sort: (row) => row.topics, cell: (row) => number(row.topics) },
      { title: "Lag", width: "130px", number: true, sort: (row) => row.lag, cell: (row) => number(row.lag) },
      { title: "Coordinator", width: "110px", number: true, sort: (row) => row.coordinator, cell: (row) => String(row.coordinator) },
    ], empty: (hasRows) => hasRows ? empty("No group fits") : empty("There are no groups", "One appears when a consumer with a group.id joins, or commits an offset."),
  });
  const narrow = () => {
    searched = search.value;
    const word = searched.trim().toLowerCase();
    table.filter((row) => row.name.toLowerCase().includes(word));
    count.textContent = counted(table.shown.length, "group");
  };
  search.addEventListener("input", narrow);
  fill(main, h("div", { class: "top" }, h("h1", {}, "Groups"), count, search), notes, table.node);
  again(EVERY, signal, async () => {
    const found = await ask("groups", {}, signal);
    table.rows = found.groups;
    narrow();
    fill(notes, missing(found.missing));
  }, (error) => fill(notes, h("p", { class: "error" }, sentence(error.message))));
}

function state(told) {
  if (told === "Stable") return h("span", { class: "good" }, told);
  if (/Rebalance|Reconciling|Assigning/.test(told)) return tag(told, "warn");
  return h("span", { class: "muted" }, told || "–");
}

export function groupView({ main, signal, name }) {
  const above = h("div", { class: "bar" }), notes = h("div"), points = [];
  let topics = [];
  const members = new Table({
    label: `Members of ${name}`, key: (row) => row.at, columns: [
      { title: "Member", cell: (row) => row.client },
      { title: "From", width: "30%", cell: (row) => row.host },
      { title: "Partitions", width: "120px", number: true, cell: (row) => number(row.partitions) },
      { title: "Topics", width: "34%", cell: (row) => row.topics.join(", ") || "–" },
    ], empty: () => empty("Nobody is in it now"),
  });
  const table = new Table({
    label: `Offsets of ${name}`, key: (row) => `${row[0]}-${row[1]}`, sorted: [0, false], columns: [
      { title: "Topic", sort: (row) => row[0], cell: (row) => h("a", { href: link("topic", row[0]) }, row[0]) },
      { title: "Partition", width: "110px", number: true, sort: (row) => row[1], cell: (row) => String(row[1]) },
      { title: "Committed", width: "140px", number: true, sort: (row) => row[2], cell: (row) => number(row[2]) },
      { title: "Ends", width: "140px", number: true, sort: (row) => row[3], cell: (row) => number(row[3]) },
      { title: "Lag", width: "120px", number: true, sort: (row) => row[4], cell: (row) => number(row[4]) },
      { title: "Member", width: "24%", sort: (row) => row[5], cell: (row) => row[5] ?? h("span", { class: "muted" }, "nobody") },
    ], empty: () => empty("It has committed nothing", "Offsets appear with its first commit."),
  });
  const load = async () => {
    const found = await ask("group", { name }, signal);
    topics = [...new Set(found.rows.map((row) => row[0]))];
    points.push(found.lag ?? 0);
    if (points.length > MOST_POINTS) points.shift();
    fill(above, facts([["State", state(found.state)], ["Protocol", found.kind || "–"], ["Assignor", found.protocol || "–"], ["Coordinator", `broker ${found.coordinator}`], ["Lag", number(found.lag)]]), line(points));
    fill(notes, missing(found.missing));
    members.set(found.members.map((each, at) => ({ ...each, at })));
    table.set(found.rows);
  };
  fill(main, h("div", { class: "top" }, h("h1", {}, h("a", { class: "crumb", href: "#/groups" }, "Groups"), h("span", { class: "crumb" }, " / "), name),
    h("button", { type: "button", onclick: () => resetGroup(name, topics, () => load().catch(() => {}), session.may_change) }, session.may_change ? "Reset…" : "Preview a reset…"),
    session.may_change ? h("button", { type: "button", class: "danger", onclick: () => deleteNamed("group", name, "group/delete", "Its offsets are forgotten: whoever comes under this name begins anew.", () => { location.hash = "#/groups"; }) }, "Delete") : null),
  above, notes, h("h2", {}, "Offsets"), table.node, h("h2", {}, "Members"), members.node);
  again(EVERY, signal, load, (error) => {
    fill(notes, h("p", { class: "error" }, sentence(error.message)));
    if (error.kind === "absent") { fill(above); members.set([]); table.set([]); }
  });
}

// Lag since the page was opened.
function line(points) {
  if (points.length < 2) return null;
  const high = Math.max(1, ...points), wide = 160, tall = 32;
  const at = (value, index) => `${(index * wide / (points.length - 1)).toFixed(1)},${(tall - value * (tall - 4) / high).toFixed(1)}`;
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  drawn.setAttribute("class", "line");
  drawn.setAttribute("viewBox", `0 0 ${wide} 34`);
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", `Lag since this page was opened: from ${number(points[0])} to ${number(points.at(-1))}`);
  const made = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  made.setAttribute("points", points.map(at).join(" "));
  drawn.append(made);
  return drawn;
}
