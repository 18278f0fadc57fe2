// Settings of a topic, a broker or all brokers, and where each value comes from.

import { ask, sentence, session } from "./api.js";
import { changeSetting } from "./dialogs.js";
import { check, empty, fill, h, tag } from "./dom.js";
import { Table } from "./table.js";

export function settingsOf(of, name, signal) {
  const search = h("input", { type: "search", placeholder: "Search settings  ( / )", "aria-label": "Search settings", spellcheck: "false" });
  const all = h("input", { type: "checkbox" }), notes = h("div");
  let found = [];
  const table = new Table({
    label: `Settings of ${name || "all brokers"}`, key: (row) => row.key, sorted: [0, false],
    open: session.may_change ? (row) => { if (!row.fixed) changeSetting(of, name, row, () => load()); } : null,
    columns: [
      { title: "Setting", width: "30%", sort: (row) => row.key, cell: (row) => h("span", { title: row.doc || row.key, class: "mono" }, row.key) },
      { title: "Value", class: "mono", sort: (row) => row.value, cell: (row) => row.hidden ? h("span", { class: "muted" }, "hidden") : row.value === null ? h("span", { class: "muted" }, "none") : row.value || h("span", { class: "muted" }, "empty") },
      { title: "From", width: "120px", sort: (row) => row.source, cell: (row) => row.default ? h("span", { class: "muted" }, "default") : tag(row.source) },
      { title: "Without it", width: "22%", cell: (row) => row.behind.length ? `${row.behind[0][1] ?? "none"} (${row.behind[0][0]})` : h("span", { class: "muted" }, "–") },
      { title: "Changes", width: "120px", cell: (row) => h("span", { class: "muted" }, row.fixed ? "at a start" : "while it runs") },
    ],
    empty: (hasRows) => hasRows ? empty("Nobody has set anything here", "All values are defaults: choose “Also defaults” to see them.") : empty("No settings are told"),
  });
  const narrow = () => {
    const word = search.value.trim().toLowerCase();
    table.filter((row) => (all.checked || word || !row.default) && `${row.key} ${row.value}`.toLowerCase().includes(word));
  };
  search.addEventListener("input", narrow);
  all.addEventListener("change", narrow);
  async function load() {
    try {
      found = (await ask("settings", { of, name }, signal)).settings;
      fill(notes);
      table.rows = found;
      narrow();
    } catch (error) {
      if (error.name !== "AbortError") fill(notes, h("p", { class: "error" }, sentence(error.message)));
    }
  }
  load();
  return [h("div", { class: "bar" }, search, check("Also defaults", all)), notes, table.node];
}
