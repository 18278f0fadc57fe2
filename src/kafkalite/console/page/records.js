// The records of one topic: some of them, or those that come, with one of them laid open.

import { ask, sentence, session } from "./api.js";
import { produce } from "./dialogs.js";
import { bytes, empty, field, fill, h, number, select, tag, time } from "./dom.js";
import { pretty } from "./json.js";
import { Table } from "./table.js";

const MOST_KEPT = 5000;
const FORMATS = { auto: "Automatic", text: "Text", json: "JSON", msgpack: "MessagePack", protobuf: "Protobuf, raw", schema: "By schema", hex: "Hexadecimal" };
const NAMES = { avro: "Avro", empty: "empty", hex: "hexadecimal", internal: "Kafka's own", json: "JSON", msgpack: "MessagePack", protobuf: "Protobuf", text: "text" };

export function recordsOf(topic, signal) {
  const begin = select({ last: "The newest", beginning: "The beginning", offset: "An offset", time: "A time" });
  const offset = h("input", { type: "number", min: 0, value: "0" }), at = h("input", { type: "datetime-local", step: "1" });
  const offsetField = field("Offset", offset, { hidden: true }), timeField = field("Time", at, { hidden: true });
  const partition = h("input", { inputmode: "numeric", placeholder: "all", size: 6 });
  const filter = h("input", { type: "search", placeholder: 'words, key:…, field=value', spellcheck: "false" });
  const keys = select(FORMATS), values = select(FORMATS);
  const isolation = select({ committed: "Committed", all: "All, also aborted" });
  const limit = select({ 50: "50", 200: "200", 500: "500" });
  const read = h("button", { type: "submit", class: "main" }, "Read");
  const follow = h("button", { type: "button" }, "Follow");
  const more = h("button", { type: "button", disabled: true }, "Read on");
  const status = h("span", { class: "muted", role: "status" });
  const note = h("p", { class: "note", hidden: true }), error = h("p", { class: "error", role: "alert", hidden: true });
  const side = h("aside", { class: "detail", "aria-label": "A record", hidden: true, tabindex: -1 });
  let rows = [], positions = null, running = null, newestFirst = true, said = "Nothing is read yet.";

  const table = new Table({
    label: `Records of ${topic}`, key: (row) => `${row.partition}-${row.offset}`,
    columns: [
      { title: "Time", width: "208px", cell: (row) => moment(row.timestamp) },
      { title: "Partition", width: "92px", number: true, cell: (row) => String(row.partition) },
      { title: "Offset", width: "96px", number: true, cell: (row) => String(row.offset) },
      { title: "Key", width: "20%", class: "mono", cell: (row) => text(row.key) },
      { title: "Value", class: "mono", cell: (row) => text(row.value) },
      { title: "Size", width: "84px", number: true, cell: (row) => row.value === null ? "–" : bytes(row.value.size) },
    ],
    open: (row) => open(row), empty: () => empty(said),
  });

  const split = h("div", { class: "split" }, table.node, side);

  begin.addEventListener("change", () => {
    offsetField.hidden = begin.value !== "offset";
    timeField.hidden = begin.value !== "time";
  });

  function fields() {
    const given = { topic, filter: filter.value, key_format: keys.value, value_format: values.value,
      isolation: isolation.value, limit: Number(limit.value), begin: begin.value };
    const chosen = partition.value.split(",").map((each) => each.trim()).filter(Boolean);
    if (chosen.some((each) => !/^\d{1,9}$/.test(each))) throw new Error("partition: expected numbers, with commas");
    given.partitions = chosen.map(Number);
    if (begin.value === "offset") given.offset = offset.value || 0;
    if (begin.value === "time") {
      given.time = new Date(at.value).getTime();
      if (Number.isNaN(given.time)) throw new Error("choose a time");
    }
    return given;
  }

  function stop() {
    if (running) running.abort();
    running = null;
    follow.textContent = "Follow";
    follow.setAttribute("aria-pressed", "false");
    read.textContent = "Read";
  }
  signal.addEventListener("abort", stop);

  function add(found) {
    rows = newestFirst ? [...found.reverse(), ...rows] : [...rows, ...found];
    if (rows.length > MOST_KEPT) rows = newestFirst ? rows.slice(0, MOST_KEPT) : rows.slice(-MOST_KEPT);
    table.set(rows);
  }

  async function run(act) {
    stop();
    running = new AbortController();
    const mine = running;
    error.hidden = true;
    note.hidden = true;
    try {
      await act(mine.signal);
    } catch (failure) {
      if (failure.name === "AbortError" || mine.signal.aborted) return;
      error.textContent = sentence(failure.message);
      error.hidden = false;
      status.textContent = "";
      said = failure.kind === "absent" ? "The topic is not there any more." : "Nothing could be read.";
      table.paint();
    }
    if (running === mine) stop();
  }

  // Until there are enough, however many have to be looked at for them.
  async function readOn(given, mine) {
    read.textContent = "Stop";
    const wanted = given.limit;
    let got = 0, looked = 0;
    for (;;) {
      const told = await ask("records", { ...given, limit: wanted - got, ...(positions ? { positions } : {}) }, mine);
      positions = told.positions;
      looked += told.looked_at;
      got += told.rows.length;
      newestFirst = given.begin === "last" && !given.isMore;
      if (newestFirst) told.rows.sort((one, other) => one.timestamp - other.timestamp || one.offset - other.offset);
      notes(told.notes);
      said = given.filter ? `None of ${number(looked)} records fits the filter.` : "There are no records here.";
      add(told.rows);
      status.textContent = `${number(rows.length)} shown, ${number(looked)} looked at${told.done ? ", to the end" : ""}`;
      more.disabled = told.done;
      if (told.done || got >= wanted) return;
    }
  }

  function notes(found) {
    if (found.length) { note.textContent = found.map(sentence).join(" "); note.hidden = false; }
  }

  // Of the newest of all partitions only so many are the newest of all.
  async function newest(given, mine) {
    read.textContent = "Stop";
    positions = null;
    const found = [];
    let looked = 0;
    for (;;) {
      const told = await ask("records", { ...given, limit: 500, ...(positions ? { positions } : {}) }, mine);
      positions = told.positions;
      looked += told.looked_at;
      found.push(...told.rows);
      notes(told.notes);
      status.textContent = `${number(looked)} looked at`;
      if (told.done || looked >= 6000) break;
    }
    found.sort((one, other) => one.timestamp - other.timestamp || one.partition - other.partition || one.offset - other.offset);
    said = given.filter ? "None of the newest records fits the filter. Read from the beginning to look at all." : "There are no records here.";
    newestFirst = true;
    add(found.slice(-given.limit));
    status.textContent = `${number(rows.length)} shown, the newest first`;
    more.disabled = true;
  }

  const form = h("form", { class: "bar", onsubmit: (event) => {
    event.preventDefault();
    if (running) { stop(); return; }
    close();
    rows = []; positions = null;
    run(async (mine) => {
      const given = fields();
      said = "Reading …";
      table.set([]);
      newestFirst = given.begin === "last";
      await (newestFirst ? newest(given, mine) : readOn(given, mine));
    });
  } },
  field("From", begin), offsetField, timeField, field("Partitions", partition), field("Records", limit),
  field("Filter", filter, { class: "field grow" }), field("Keys", keys), field("Values", values), field("Transactions", isolation),
  read, follow, more);

  more.addEventListener("click", () => run((mine) => readOn({ ...fields(), isMore: true }, mine)));
  follow.addEventListener("click", () => {
    if (running && follow.getAttribute("aria-pressed") === "true") { stop(); status.textContent = "Stopped"; return; }
    rows = []; positions = null;
    run(async (mine) => {
      const given = fields();
      follow.textContent = "Stop following";
      follow.setAttribute("aria-pressed", "true");
      said = "Waiting for records that come from now on.";
      newestFirst = true;
      table.set([]);
      let looked = 0;
      for (;;) {
        const told = await toldOrNull({ ...given, begin: "end", follow: true, ...(positions ? { positions } : {}) }, mine);
        if (mine.aborted) return;
        if (!told) continue;
        positions = told.positions;
        looked += told.looked_at;
        notes(told.notes);
        if (told.rows.length) add(told.rows);
        status.textContent = `Following: ${number(rows.length)} shown, ${number(looked)} looked at`;
      }
    });
  });

  // Whoever follows goes on when the brokers are back.
  async function toldOrNull(given, mine) {
    try {
      return await ask("records", given, mine);
    } catch (failure) {
      if (failure.kind !== "unreachable" && failure.kind !== "busy") throw failure;
      await new Promise((done) => { setTimeout(done, 2000); });
      return null;
    }
  }

  async function open(row) {
    table.select(`${row.partition}-${row.offset}`);
    show(row, null);
    try {
      show(await ask("record", { topic, partition: row.partition, offset: row.offset, key_format: keys.value, value_format: values.value }, signal), null);
    } catch (failure) {
      if (failure.name !== "AbortError") show(row, failure);
    }
  }

  function close() {
    side.hidden = true;
    split.classList.remove("open");
    table.select(null);
  }

  function show(row, failure) {
    const shut = h("button", { type: "button", "aria-label": "Close the record", onclick: () => { close(); table.body.querySelector('tr[tabindex="0"]')?.focus(); } }, "Close");
    side.hidden = false;
    split.classList.add("open");
    fill(side,
      h("div", { class: "top" }, h("h2", {}, `Partition ${row.partition}, offset ${row.offset}`), shut),
      h("p", { class: "muted" }, time(row.timestamp)),
      failure ? h("p", { class: "note" }, sentence(failure.message)) : null,
      part("Key", row.key), part("Value", row.value),
      h("h2", {}, row.header_count ? `Headers (${number(row.header_count)})` : "No headers"),
      row.header_count ? h("dl", { class: "headers mono" }, row.headers.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value === null ? "null" : value.text)])) : null);
  }

  side.addEventListener("keydown", (event) => { if (event.key === "Escape") { close(); table.node.querySelector('tr[tabindex="0"]')?.focus(); } });
  const write = session.may_change ? h("button", { type: "button", onclick: () => produce(topic, () => { if (!running) form.requestSubmit(); }) }, "Write a record") : null;
  const node = [form, h("div", { class: "top" }, status, write), note, error, split];
  setTimeout(() => form.requestSubmit());
  return node;
}

// The day is what is left out first.
function moment(ms) {
  const told = time(ms), at = told.indexOf(" ") + 1;
  return h("span", { title: told }, h("span", { class: "day" }, told.slice(0, at)), told.slice(at));
}

function text(shown) {
  if (shown === null) return h("span", { class: "muted" }, "null");
  if (shown.format === "empty") return h("span", { class: "muted" }, "empty");
  return shown.format === "hex" ? `0x${shown.text}` : shown.text;
}

function part(title, shown) {
  if (shown === null) return [h("h2", {}, title), h("p", { class: "muted" }, title === "Value" ? "null: a tombstone" : "null")];
  const isJson = ["json", "avro", "msgpack", "protobuf", "internal"].includes(shown.format);
  return [
    h("h2", {}, `${title} `, tag(NAMES[shown.format] || shown.format), " ", tag(bytes(shown.size))),
    shown.note ? h("p", { class: "note" }, sentence(shown.note)) : null,
    shown.is_cut ? h("p", { class: "note" }, `Cut: it has ${bytes(shown.size)}, and this is the beginning.`) : null,
    shown.format === "empty" ? h("p", { class: "muted" }, "empty") : h("pre", { tabindex: 0, "aria-label": title }, isJson ? pretty(shown.text) : shown.text),
  ];
}
