// Questions in front of the page. Each says what is refused within itself, and closes when it is done.

import { ask, sentence } from "./api.js";
import { check, field, fill, h, minus, number, select, toast } from "./dom.js";

export function dialog(title, parts, { verb, act, danger = false, wide = false }) {
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const go = h("button", { type: "submit", class: danger ? "main danger-main" : "main" }, verb);
  const close = h("button", { type: "button", onclick: () => made.close() }, act ? "Cancel" : "Close");
  const form = h("form", { method: "dialog", onsubmit: async (event) => {
    event.preventDefault();
    go.disabled = true;
    error.hidden = true;
    try {
      const said = await act(go);
      if (said !== false) { made.close(); if (said) toast(said); }
    } catch (failure) {
      error.textContent = sentence(failure.message);
      error.hidden = false;
    }
    go.disabled = false;
  } }, h("h2", { id: "dialog-title" }, title), parts, error, h("div", { class: "ends" }, close, act ? go : null));
  const made = h("dialog", { "aria-labelledby": "dialog-title", class: wide ? "wide" : null, onclose: () => made.remove() }, form);
  document.body.append(made);
  made.showModal();
  return made;
}

export function createTopic(done) {
  const name = h("input", { required: true, autofocus: true, spellcheck: "false", autocomplete: "off" });
  const partitions = h("input", { type: "number", min: 1, max: 100000, value: "1", required: true });
  const replicas = h("input", { type: "number", min: 1, max: 1000, placeholder: "the cluster's default" });
  const settings = h("textarea", { rows: 4, spellcheck: "false", placeholder: "cleanup.policy=compact" });
  dialog("Create a topic", [
    field("Name", name), h("div", { class: "row2" }, field("Partitions", partitions), field("Replicas", replicas)),
    field("Settings, KEY=VALUE, one a line", settings),
  ], { verb: "Create", act: async () => {
    await ask("topic/create", { name: name.value, partitions: Number(partitions.value),
      replicas: replicas.value ? Number(replicas.value) : null, settings: Object.fromEntries(pairs(settings.value)) });
    done(name.value);
    return `Topic ${name.value} is created`;
  } });
}

// In their order; a header's name may stand there twice.
function pairs(text) {
  const found = [];
  for (const line of text.split("\n").map((each) => each.trim()).filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`${line}: expected KEY=VALUE`);
    found.push([line.slice(0, at).trim(), line.slice(at + 1).trim()]);
  }
  return found;
}

// What cannot be undone is typed once more.
export function deleteNamed(kind, name, path, warning, done) {
  const typed = h("input", { autofocus: true, spellcheck: "false", autocomplete: "off", "aria-describedby": "why" });
  dialog(`Delete the ${kind} ${name}?`, [h("p", { id: "why" }, warning), field(`Type its name to delete it`, typed)], {
    verb: "Delete", danger: true, act: async () => {
      if (typed.value !== name) throw new Error("that is another name");
      await ask(path, { name });
      done();
      return `The ${kind} ${name} is deleted`;
    } });
}

export function addPartitions(name, count, done) {
  const wanted = h("input", { type: "number", min: count + 1, max: 100000, value: String(count + 1), required: true });
  dialog(`Add partitions to ${name}`, [
    h("p", { class: "muted" }, `It has ${number(count)}. They cannot be taken away again, and keys go to other partitions than before.`),
    field("Partitions", wanted)], { verb: "Add", act: async () => {
    await ask("topic/partitions", { name, partitions: Number(wanted.value) });
    done();
    return `${name} has ${wanted.value} partitions`;
  } });
}

export function produce(topic, done) {
  const value = h("textarea", { rows: 8, autofocus: true, spellcheck: "false" });
  const key = h("input", { spellcheck: "false", autocomplete: "off" });
  const hasKey = h("input", { type: "checkbox" }), isNull = h("input", { type: "checkbox" });
  key.addEventListener("input", () => { hasKey.checked = key.value !== ""; });
  const encoding = select({ text: "Text", hex: "Hexadecimal" });
  const partition = h("input", { type: "number", min: 0, placeholder: "by key" });
  const headers = h("textarea", { rows: 2, spellcheck: "false", placeholder: "name=value" });
  dialog(`Write a record to ${topic}`, [
    field("Key", key), h("div", { class: "row2" }, check("With a key (empty is one, too)", hasKey), check("Value is null (a tombstone)", isNull)),
    field("Value", value), h("div", { class: "row2" }, field("Key and value are", encoding), field("Partition", partition)),
    field("Headers, NAME=VALUE, one a line", headers),
  ], { verb: "Write", act: async () => {
    const how = encoding.value;
    await ask("produce", { topic, key: hasKey.checked ? key.value : null, key_encoding: how,
      value: isNull.checked ? null : value.value, value_encoding: how,
      partition: partition.value === "" ? null : Number(partition.value), headers: pairs(headers.value) });
    done();
    return "The record is written";
  } });
}

export function changeSetting(of, name, setting, done) {
  const value = h("textarea", { rows: 2, autofocus: true, spellcheck: "false", value: setting.hidden ? "" : setting.value ?? "" });
  const behind = setting.behind[0];
  const back = h("button", { type: "button", onclick: async () => {
    try {
      await ask("settings/alter", { of, name, unset: [setting.key] });
      made.close(); done(); toast(`${setting.key} is given back`);
    } catch (failure) { toast(sentence(failure.message)); }
  } }, behind ? `Give back, to ${behind[1] ?? "none"} (${behind[0]})` : "Give back");
  const made = dialog(setting.key, [
    setting.doc ? h("p", { class: "muted" }, plain(setting.doc)) : null, field("Value", value),
    setting.default ? null : h("p", {}, back),
  ], { verb: "Change", act: async () => {
    await ask("settings/alter", { of, name, set: { [setting.key]: value.value } });
    done();
    return `${setting.key} is changed`;
  } });
}

const plain = (text) => new DOMParser().parseFromString(text, "text/html").body.textContent;

export function resetGroup(name, topics, done, mayChange) {
  const boxes = topics.map((topic) => [topic, h("input", { type: "checkbox", checked: topics.length === 1 })]);
  const to = select({ beginning: "The beginning", end: "The end", time: "A time", offset: "An offset", back: "So many before the end" });
  const at = h("input", { type: "datetime-local", step: "1" }), count = h("input", { type: "number", min: 0, value: "0" });
  const timeField = field("Time", at, { hidden: true }), countField = field("Offset", count, { hidden: true });
  const shown = h("div");
  to.addEventListener("change", () => {
    timeField.hidden = to.value !== "time";
    countField.hidden = to.value !== "offset" && to.value !== "back";
    fill(shown);
    previewed = null;
  });
  let previewed = null;
  const fields = () => {
    const chosen = boxes.filter(([, box]) => box.checked).map(([topic]) => topic);
    if (!chosen.length) throw new Error("choose a topic");
    const given = { name, topics: chosen, to: to.value };
    if (to.value === "time") {
      given.time = at.valueAsDate === null && !at.value ? NaN : new Date(at.value).getTime();
      if (Number.isNaN(given.time)) throw new Error("choose a time");
    }
    if (to.value === "offset" || to.value === "back") given.offset = count.value || 0;
    return given;
  };
  dialog(`Reset ${name}`, [
    h("p", { class: "muted" }, "The group goes on from there. It must have no members: stop them first."),
    h("fieldset", { class: "choices" }, h("legend", {}, "Topics"), boxes.map(([topic, box]) => check(topic, box))),
    h("div", { class: "row2" }, field("To", to), timeField, countField), shown,
  ], { verb: "Preview", wide: true, act: async (go) => {
    const given = fields(), wanted = JSON.stringify(given);
    if (previewed !== wanted) {
      const told = await ask("group/preview", given);
      previewed = wanted;
      if (mayChange) { go.textContent = "Reset"; go.classList.add("danger-main"); }
      fill(shown, preview(told, mayChange));
      return false;
    }
    if (!mayChange) return "";
    await ask("group/reset", given);
    done();
    return `${name} is reset`;
  } });
}

function preview(told, mayChange) {
  const rows = told.rows.slice(0, 200);
  const moved = (before, after) => number(minus(after, before));
  return [
    h("p", { role: "status" }, mayChange ? "This is where it would go on. Nothing is changed yet." : "This is where it would go on; this console only looks."),
    told.notes.length ? h("p", { class: "note" }, told.notes.slice(0, 5).map(sentence).join(" ")) : null,
    h("div", { class: "scroller fits", tabindex: 0 }, h("table", { "aria-label": "Offsets before and after" },
      h("thead", {}, h("tr", {}, ["Topic", "Partition", "Before", "After", "Moves by"].map((each, at) => h("th", { scope: "col", class: at ? "number" : null }, each)))),
      h("tbody", {}, rows.map(([topic, partition, before, after]) => h("tr", {}, h("td", {}, topic),
        [partition, number(before), number(after), moved(before, after)].map((each) => h("td", { class: "number" }, String(each)))))))),
    told.rows.length > rows.length ? h("p", { class: "muted" }, `and ${number(told.rows.length - rows.length)} more`) : null,
  ];
}

export function confirm(title, text, verb, act) {
  dialog(title, [h("p", {}, text)], { verb, danger: true, act });
}

export function keys() {
  const row = (names, text) => [h("dt", {}, names.map((each) => [h("kbd", {}, each), " "])), h("dd", {}, text)];
  dialog("Keys", h("dl", { class: "keys" },
    row(["/"], "search in what is shown"), row(["g", "t"], "topics"), row(["g", "g"], "groups"), row(["g", "x"], "transactions"),
    row(["g", "b"], "brokers"), row(["↓", "↑"], "another row; also j and k, Page Up and Down, Home, End"),
    row(["Enter"], "open a row"), row(["Esc"], "close"), row(["?"], "this")), { verb: "", act: null });
}

