// Transactions: those that coordinators know, and those that are open in a partition.

import { again, ask, sentence, session } from "./api.js";
import { confirm } from "./dialogs.js";
import { counted, duration, empty, field, fill, h, missing, number, tag, time } from "./dom.js";
import { Table } from "./table.js";

export function transactionsView({ main, signal }) {
  const notes = h("div"), count = h("span", { class: "muted", role: "status" });
  const search = h("input", { type: "search", placeholder: "Search transactional ids  ( / )", "aria-label": "Search transactional ids", spellcheck: "false" });
  const table = new Table({
    label: "Transactions", sorted: [1, false], columns: [
      { title: "Transactional id", sort: (row) => row.name, cell: (row) => row.name },
      { title: "State", width: "180px", sort: (row) => `${row.late ? 0 : row.began ? 1 : 2}${row.state}`, cell: (row) => row.late ? tag(`${row.state}, too long`, "bad") : row.began ? tag(row.state, "warn") : h("span", { class: "muted" }, row.state) },
      { title: "Began", width: "208px", sort: (row) => row.began, cell: (row) => time(row.began) },
      { title: "Since", width: "90px", number: true, sort: (row) => row.began, cell: (row) => row.began ? duration(Date.now() - row.began) : "–" },
      { title: "Timeout", width: "90px", number: true, sort: (row) => row.timeout_ms, cell: (row) => duration(row.timeout_ms) },
      { title: "Producer", width: "110px", number: true, sort: (row) => row.producer, cell: (row) => String(row.producer) },
      { title: "Partitions", width: "22%", cell: (row) => (row.partitions || []).join(", ") || "–" },
    ], empty: (hasRows) => hasRows ? empty("No transactional id fits") : empty("There are no transactions", "A producer with a transactional.id appears here."),
  });
  const narrow = () => {
    const word = search.value.trim().toLowerCase();
    table.filter((row) => row.name.toLowerCase().includes(word));
    count.textContent = `${counted(table.shown.length, "transactional id")}, ${number(table.shown.filter((row) => row.late).length)} open for too long`;
  };
  search.addEventListener("input", narrow);
  fill(main, h("div", { class: "top" }, h("h1", {}, "Transactions"), count, search), notes, table.node, ...openIn(signal));
  again(5000, signal, async () => {
    const found = await ask("transactions", {}, signal);
    table.rows = found.transactions;
    narrow();
    fill(notes, missing(found.missing));
  }, (error) => fill(notes, h("p", { class: "error" }, sentence(error.message))));
}

function openIn(signal) {
  const topic = h("input", { required: true, spellcheck: "false" }), partition = h("input", { type: "number", min: 0, value: "0", required: true });
  const shown = h("div");
  const look = async () => {
    try {
      const given = { topic: topic.value, partition: Number(partition.value) };
      const found = await ask("transactions/open", given, signal);
      fill(shown, found.open.length ? found.open.map((each) => row(given, each, look)) : h("p", { class: "muted" }, "No transaction is open there: readers of committed records see all of it."));
    } catch (error) {
      if (error.name !== "AbortError") fill(shown, h("p", { class: "error" }, sentence(error.message)));
    }
  };
  return [h("h2", {}, "What holds up readers of a partition"),
    h("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); look(); } }, field("Topic", topic), field("Partition", partition), h("button", { type: "submit" }, "Look")), shown];
}

function row(given, each, look) {
  return h("div", { class: "bar" },
    each.name ? h("span", {}, `Of ${each.name}, from offset ${number(each.begins)} (producer ${each.producer})`)
      : h("span", {}, tag("hanging", "bad"), ` from offset ${number(each.begins)} (producer ${each.producer}): no coordinator knows it`),
    session.may_change && !each.name ? h("button", { type: "button", class: "danger", onclick: () => confirm("Abort the transaction?", `Its records in ${given.topic}-${given.partition} from offset ${each.begins} on are given up, and readers go on behind them.`, "Abort it", async () => {
      await ask("transactions/abort", { ...given, begins: each.begins });
      await look();
      return "The transaction is aborted";
    }) }, "Abort") : null);
}
