// All topics, and one of them.

import { again, ask, sentence, session } from "./api.js";
import { addPartitions, createTopic, deleteNamed } from "./dialogs.js";
import { bytes, counted, empty, facts, fill, h, minus, missing, number, rate, tag, toast } from "./dom.js";
import { recordsOf } from "./records.js";
import { settingsOf } from "./settings.js";
import { Table } from "./table.js";

const EVERY = 5000;
export const link = (kind, name) => `#/${kind}/${encodeURIComponent(name)}`;
let told = { now: null, before: null }, hideInternal = true, searched = "";

// Both looks of a name, if there were two, and what came between them in a second.
export function rates(name) {
  const now = told.now?.topics[name], before = told.before?.topics[name];
  if (!now || !before) return [null, null];
  const seconds = (told.now.at_ms - told.before.at_ms) / 1000;
  const each = (at) => now[at] === null || before[at] === null || seconds <= 0 ? null : Math.max(0, (now[at] - before[at]) / seconds);
  return [each(1), each(2)];
}

export async function lookAtNumbers(signal) {
  const found = await ask("topics/numbers", {}, signal);
  told = { now: found, before: told.now && found.at_ms - told.now.at_ms < 60000 ? told.now : null };
  return found;
}

export function topicsView({ main, signal }) {
  const count = h("span", { class: "muted", role: "status" });
  const search = h("input", { type: "search", placeholder: "Search topics  ( / )", "aria-label": "Search topics", value: searched, spellcheck: "false" });
  const internal = h("input", { type: "checkbox", id: "internal", checked: !hideInternal });
  const notes = h("div");
  const of = (row, at) => told.now?.topics[row.name]?.[at] ?? null;
  const table = new Table({
    label: "Topics", sorted: [0, false], open: (row) => { location.hash = link("topic", row.name); },
    columns: [
      { title: "Topic", sort: (row) => row.name, cell: (row) => h("a", { href: link("topic", row.name), tabindex: -1, title: row.name }, row.name) },
      { title: "State", width: "130px", sort: (row) => -(row.leaderless * 1e6 + row.behind), cell: state },
      { title: "Partitions", width: "104px", number: true, sort: (row) => row.partitions, cell: (row) => number(row.partitions) },
      { title: "Replicas", width: "92px", number: true, sort: (row) => row.replicas, cell: (row) => number(row.replicas) },
      { title: "Records", width: "130px", number: true, sort: (row) => of(row, 0), cell: (row) => number(of(row, 0)) },
      { title: "Size", width: "104px", number: true, sort: (row) => of(row, 2), cell: (row) => bytes(of(row, 2)) },
      { title: "Records in", width: "112px", number: true, sort: (row) => rates(row.name)[0], cell: (row) => rate(rates(row.name)[0]) },
      { title: "Bytes in", width: "112px", number: true, sort: (row) => rates(row.name)[1], cell: (row) => rate(rates(row.name)[1], bytes) },
    ],
    empty: (hasRows) => hasRows ? empty("No topic fits", "Search for something else, or show internal topics.")
      : empty("There are no topics", session.may_change ? "Create one, or have a producer write to one." : "They appear here as soon as somebody creates one."),
  });
  const narrow = () => {
    searched = search.value;
    hideInternal = !internal.checked;
    const word = searched.trim().toLowerCase();
    table.filter((row) => (!hideInternal || !row.internal) && row.name.toLowerCase().includes(word));
    const all = table.rows.filter((row) => !hideInternal || !row.internal).length;
    const partitions = table.shown.reduce((sum, row) => sum + row.partitions, 0);
    const some = table.shown.length === all ? "" : `${number(table.shown.length)} of `;
    count.textContent = `${some}${counted(all, "topic")}, ${counted(partitions, "partition")}`;
  };
  search.addEventListener("input", narrow);
  internal.addEventListener("change", narrow);
  const list = async () => {
    table.rows = (await ask("topics", {}, signal)).topics;
    narrow();
    main.dataset.ready = "topics";
  };
  fill(main, h("div", { class: "top" }, h("h1", {}, "Topics"), count,
    h("label", { class: "check", for: "internal" }, internal, "Internal"), search,
    session.may_change ? h("button", { type: "button", onclick: () => createTopic(() => list().catch(() => {})) }, "Create a topic") : null), notes, table.node);
  delete main.dataset.ready;
  const failed = (error) => fill(notes, h("p", { class: "error" }, sentence(error.message)));
  again(EVERY, signal, async () => {
    await list();
    fill(notes, missing((await lookAtNumbers(signal)).missing));
    table.arrange();
    main.dataset.ready = "numbers";
  }, failed);
}

function state(row) {
  if (row.leaderless) return tag(`${number(row.leaderless)} without leader`, "bad");
  if (row.behind) return tag(`${number(row.behind)} behind`, "warn");
  return h("span", { class: "muted" }, "in sync");
}

const PARTS = { records: "Records", partitions: "Partitions", groups: "Groups", settings: "Settings" };

export function topicView({ main, signal, name, part }) {
  const chosen = Object.hasOwn(PARTS, part) ? part : "records";
  const body = h("div", { class: "body" });
  const head = h("div", { class: "top" }, h("h1", {}, h("a", { class: "crumb", href: "#/topics" }, "Topics"), h("span", { class: "crumb" }, " / "), name),
    session.may_change ? [
      h("button", { type: "button", onclick: () => addPartitionsTo(name, signal) }, "Add partitions"),
      h("button", { type: "button", class: "danger", onclick: () => deleteNamed("topic", name, "topic/delete", "Its records are gone for everybody, at once and for ever.", () => { location.hash = "#/topics"; }) }, "Delete"),
    ] : null);
  const tabs = h("nav", { class: "tabs", "aria-label": "Parts of the topic" }, Object.entries(PARTS).map(([each, title]) =>
    h("a", { href: `${link("topic", name)}/${each}`, "aria-current": each === chosen ? "page" : null }, title)));
  fill(main, head, tabs);
  if (chosen === "records") main.append(...recordsOf(name, signal));
  else if (chosen === "settings") main.append(...settingsOf("topic", name, signal));
  else { main.append(body); body.style.display = "contents"; (chosen === "partitions" ? partitionsOf : groupsOf)(body, name, signal); }
}

async function addPartitionsTo(name, signal) {
  try {
    const found = await ask("topic", { name }, signal);
    addPartitions(name, found.partitions, () => window.dispatchEvent(new HashChangeEvent("hashchange")));
  } catch (failure) { toast(sentence(failure.message)); }
}

function partitionsOf(where, name, signal) {
  const above = h("div"), notes = h("div");
  const table = new Table({
    label: `Partitions of ${name}`, key: (row) => row[0], sorted: [0, false], columns: [
      { title: "Partition", width: "100px", number: true, sort: (row) => row[0], cell: (row) => String(row[0]) },
      { title: "Leader", width: "110px", number: true, sort: (row) => row[1], cell: (row) => row[1] < 0 ? tag("none", "bad") : String(row[1]) },
      { title: "Replicas", width: "18%", cell: (row) => row[2].join(", ") },
      { title: "Not in sync", width: "18%", sort: (row) => row[3].length - row[2].length, cell: (row) => {
        const behind = row[2].filter((each) => !row[3].includes(each));
        return behind.length ? tag(behind.join(", "), "warn") : h("span", { class: "muted" }, "none");
      } },
      { title: "Begins", number: true, sort: (row) => row[4], cell: (row) => number(row[4]) },
      { title: "Ends", number: true, sort: (row) => row[5], cell: (row) => number(row[5]) },
      { title: "Records", number: true, sort: (row) => row[5] - row[4], cell: (row) => number(minus(row[5], row[4])) },
      { title: "Size", number: true, sort: (row) => row[6], cell: (row) => bytes(row[6]) },
    ], empty: () => empty("No partitions are told"),
  });
  fill(where, above, notes, table.node);
  again(EVERY, signal, async () => {
    const found = await ask("topic", { name }, signal);
    const sum = (value) => found.rows.reduce((all, row) => all + Number(value(row) ?? 0), 0);
    fill(above, facts([["Partitions", number(found.partitions)], ["Replicas", number(found.replicas)],
      ["Records", number(sum((row) => minus(row[5], row[4])))], ["Size of the leaders", bytes(sum((row) => row[6]))]]));
    fill(notes, missing(found.missing));
    table.set(found.rows);
  }, (error) => { fill(above); gone(notes, table, error); });
}

function gone(notes, table, error) {
  fill(notes, h("p", { class: "error" }, sentence(error.message)));
  if (error.kind === "absent") table.set([]);
}

function groupsOf(where, name, signal) {
  const notes = h("div");
  const table = new Table({
    label: `Groups of ${name}`, sorted: [0, false], open: (row) => { location.hash = link("group", row.name); }, columns: [
      { title: "Group", sort: (row) => row.name, cell: (row) => h("a", { href: link("group", row.name), tabindex: -1 }, row.name) },
      { title: "State", width: "160px", sort: (row) => row.state, cell: (row) => row.state },
      { title: "Members", width: "110px", number: true, sort: (row) => row.members, cell: (row) => number(row.members) },
      { title: "Partitions", width: "110px", number: true, sort: (row) => row.partitions, cell: (row) => number(row.partitions) },
      { title: "Lag here", width: "140px", number: true, sort: (row) => row.lag, cell: (row) => number(row.lag) },
    ], empty: () => empty("No group reads this topic", "Nobody has committed an offset of it, and no member has one of its partitions."),
  });
  fill(where, notes, table.node);
  again(EVERY, signal, async () => {
    const found = await ask("topic/groups", { name }, signal);
    fill(notes, missing(found.missing));
    table.set(found.groups);
  }, (error) => gone(notes, table, error));
}
