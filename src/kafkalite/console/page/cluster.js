// The cluster itself: brokers and their directories, who is connected, quotas, access rules.

import { again, ask, sentence } from "./api.js";
import { bytes, empty, facts, fill, h, missing, number, tag } from "./dom.js";
import { settingsOf } from "./settings.js";
import { Table } from "./table.js";
import { link } from "./topics.js";

const EVERY = 5000;

// A page that is one table: what is asked, and what of the answer are its rows.
function listView({ main, signal, title, path, rows, table, search, extra = () => null }) {
  const count = h("span", { class: "muted", role: "status" }), notes = h("div"), above = h("div");
  const box = h("input", { type: "search", placeholder: `Search  ( / )`, "aria-label": `Search ${title.toLowerCase()}`, spellcheck: "false" });
  const narrow = () => {
    const word = box.value.trim().toLowerCase();
    table.filter((row) => search(row).toLowerCase().includes(word));
    count.textContent = number(table.shown.length);
  };
  box.addEventListener("input", narrow);
  fill(main, h("div", { class: "top" }, h("h1", {}, title), count, box), above, notes, table.node);
  again(EVERY, signal, async () => {
    const found = await ask(path, {}, signal);
    table.rows = rows(found);
    narrow();
    fill(above, extra(found));
    fill(notes, missing(found.missing));
  }, (error) => fill(notes, h("p", { class: "error" }, sentence(error.message))));
}

export function brokersView(view) {
  const size = (row, what) => row.dirs.some((each) => each[what] !== null) ? row.dirs.reduce((sum, each) => sum + (each[what] ?? 0), 0) : null;
  const table = new Table({
    label: "Brokers", key: (row) => row.id, sorted: [0, false], open: (row) => { location.hash = link("broker", row.id); }, columns: [
      { title: "Broker", width: "90px", number: true, sort: (row) => row.id, cell: (row) => h("a", { href: link("broker", row.id), tabindex: -1 }, String(row.id)) },
      { title: "Address", sort: (row) => row.host, cell: (row) => `${row.host}:${row.port}` },
      { title: "Role", width: "120px", cell: (row) => row.controller ? tag("controller") : h("span", { class: "muted" }, "broker") },
      { title: "Rack", width: "100px", sort: (row) => row.rack, cell: (row) => row.rack ?? "–" },
      { title: "Leads", width: "100px", number: true, sort: (row) => row.leads, cell: (row) => number(row.leads) },
      { title: "Replicas", width: "100px", number: true, sort: (row) => row.replicas, cell: (row) => number(row.replicas) },
      { title: "Not in sync", width: "110px", number: true, sort: (row) => row.behind, cell: (row) => row.behind ? tag(number(row.behind), "warn") : "0" },
      { title: "Size", width: "110px", number: true, sort: (row) => size(row, "bytes"), cell: (row) => bytes(size(row, "bytes")) },
      { title: "Free", width: "110px", number: true, sort: (row) => size(row, "free"), cell: (row) => bytes(size(row, "free")) },
    ], empty: () => empty("No broker is told"),
  });
  listView({ ...view, title: "Brokers", path: "brokers", table, rows: (found) => found.brokers, search: (row) => `${row.id} ${row.host}:${row.port} ${row.rack ?? ""}`,
    extra: (found) => facts([["Cluster", found.cluster || "–"], ["Topics", number(found.topics)]]) });
}

export function brokerView({ main, signal, name }) {
  const dirs = new Table({
    label: `Log directories of broker ${name}`, key: (row) => row.path, columns: [
      { title: "Directory", cell: (row) => h("span", { class: "mono" }, row.path) },
      { title: "State", width: "170px", cell: (row) => row.error ? tag(row.error, "bad") : h("span", { class: "good" }, "in service") },
      { title: "Partitions", width: "110px", number: true, cell: (row) => number(row.partitions) },
      { title: "Size", width: "120px", number: true, cell: (row) => bytes(row.bytes) },
      { title: "Free", width: "120px", number: true, cell: (row) => bytes(row.free) },
      { title: "Disk", width: "120px", number: true, cell: (row) => bytes(row.total) },
    ], empty: () => empty("No directory is told"),
  });
  const notes = h("div");
  fill(main, h("div", { class: "top" }, h("h1", {}, h("a", { class: "crumb", href: "#/brokers" }, "Brokers"), h("span", { class: "crumb" }, " / "), `Broker ${name}`)),
    notes, h("h2", {}, "Log directories"), dirs.node, h("h2", {}, "Settings"), ...settingsOf("broker", name, signal));
  again(EVERY, signal, async () => {
    const found = await ask("brokers", {}, signal);
    const mine = found.brokers.find((each) => String(each.id) === name);
    fill(notes, mine ? missing(found.missing) : h("p", { class: "error" }, `There is no broker ${name} now.`));
    dirs.set(mine ? mine.dirs : []);
  }, (error) => fill(notes, h("p", { class: "error" }, sentence(error.message))));
}

export function clientsView(view) {
  const table = new Table({
    label: "Clients", key: (row) => JSON.stringify(row), sorted: [0, false], columns: [
      { title: "Software", sort: (row) => row.software, cell: (row) => row.software === "unknown" ? h("span", { class: "muted" }, "does not say") : row.software },
      { title: "Version", width: "18%", sort: (row) => row.version, cell: (row) => row.version === "unknown" ? h("span", { class: "muted" }, "–") : row.version },
      { title: "From", width: "18%", sort: (row) => row.host, cell: (row) => row.host },
      { title: "As", width: "20%", sort: (row) => row.principal, cell: (row) => row.principal },
      { title: "Listener", width: "130px", sort: (row) => row.listener, cell: (row) => row.listener },
      { title: "Connections", width: "120px", number: true, sort: (row) => row.connections, cell: (row) => number(row.connections) },
    ], empty: (hasRows) => empty(hasRows ? "No client fits" : "Nobody is connected"),
  });
  listView({ ...view, title: "Clients", path: "clients", table, rows: (found) => found.clients, search: (row) => `${row.software} ${row.version} ${row.host} ${row.principal}`,
    extra: () => h("p", { class: "muted" }, "Who is connected to this broker, by what clients say of themselves (KIP-511). This console is one of them.") });
}

export function quotasView(view) {
  const whose = (row) => row.of.map(([kind, name]) => `${kind} ${name ?? "(default)"}`).join(", ");
  const values = (row) => Object.entries(row.values).map(([key, value]) => `${key} = ${key.endsWith("byte_rate") ? `${bytes(value)}/s` : number(value)}`).join(", ");
  const table = new Table({
    label: "Quotas", key: whose, sorted: [0, false], columns: [
      { title: "Of", width: "40%", sort: whose, cell: whose }, { title: "Quota", cell: values },
    ], empty: (hasRows) => hasRows ? empty("No quota fits") : empty("There are no quotas", "Everybody may write and read as fast as they can."),
  });
  listView({ ...view, title: "Quotas", path: "quotas", table, rows: (found) => found.quotas, search: (row) => `${whose(row)} ${values(row)}` });
}

export function accessView(view) {
  let isOff = false;
  const table = new Table({
    label: "Access rules", key: (row) => JSON.stringify(row), sorted: [1, false], columns: [
      { title: "Who", width: "22%", sort: (row) => row.principal, cell: (row) => row.principal },
      { title: "What", sort: (row) => `${row.kind} ${row.name}`, cell: (row) => `${row.kind.replaceAll("_", " ")} ${row.name}${row.pattern === "prefixed" ? "…" : ""}` },
      { title: "May", width: "110px", sort: (row) => row.permission, cell: (row) => row.permission === "deny" ? tag("may not", "bad") : h("span", { class: "good" }, "may") },
      { title: "Operation", width: "180px", sort: (row) => row.operation, cell: (row) => row.operation.replaceAll("_", " ") },
      { title: "From", width: "160px", sort: (row) => row.host, cell: (row) => row.host === "*" ? h("span", { class: "muted" }, "anywhere") : row.host },
    ], empty: (hasRows) => hasRows ? empty("No rule fits") : isOff ? empty("There are no access rules", "The brokers have no authorizer (authorizer.class.name): everybody may do everything.")
      : empty("There are no rules", "Only super users may do something, unless allow.everyone.if.no.acl.found is true."),
  });
  listView({ ...view, title: "Access rules", path: "access", table, rows: (found) => { isOff = found.off; return found.rules; }, search: (row) => Object.values(row).join(" ") });
}
