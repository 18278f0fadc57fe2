// A table of any length: only the rows in sight are elements. Arrows move, Enter opens, heads sort.

import { empty, fill, h } from "./dom.js";

const ROW = 34, AROUND = 12;

export class Table {
  // columns: {title, width, cell(row) -> node or text, sort(row), number, title_of(row)}
  constructor({ label, columns, open, key = (row) => row.name, empty, sorted = null }) {
    Object.assign(this, { columns, open, key, sorted, label });
    this.rows = []; this.shown = []; this.active = null; this.selected = null; this.wanted = () => true;
    this.nothing = empty;
    this.body = h("tbody");
    this.heads = columns.map((column, index) => this.head(column, index));
    this.table = h("table", { "aria-label": label },
      h("colgroup", {}, columns.map((column) => { const col = h("col"); if (column.width) col.style.width = column.width; return col; })),
      h("thead", {}, h("tr", {}, this.heads)), this.body);
    this.node = h("div", { class: "scroller" }, this.table);
    this.node.addEventListener("scroll", () => this.later(), { passive: true });
    this.body.addEventListener("keydown", (event) => this.keyed(event));
    new ResizeObserver(() => this.later()).observe(this.node);
  }

  head(column, index) {
    if (!column.sort) return h("th", { scope: "col", class: column.number ? "number" : null }, column.title);
    return h("th", { scope: "col", class: column.number ? "number" : null },
      h("button", { type: "button", onclick: () => this.sortBy(index) }, column.title));
  }

  sortBy(index) {
    const down = this.sorted && this.sorted[0] === index ? !this.sorted[1] : Boolean(this.columns[index].number);
    this.sorted = [index, down];
    this.arrange();
  }

  set(rows) { this.rows = rows; this.arrange(); }
  filter(wanted) { this.wanted = wanted; this.arrange(); }

  arrange() {
    this.isLoaded = true;
    this.shown = this.rows.filter(this.wanted);
    this.heads.forEach((head) => head.removeAttribute("aria-sort"));
    if (this.sorted) {
      const [index, down] = this.sorted, by = this.columns[index].sort;
      this.heads[index].setAttribute("aria-sort", down ? "descending" : "ascending");
      const turn = down ? -1 : 1;
      this.shown.sort((one, other) => turn * compare(by(one), by(other)));
    }
    if (!this.isInHand()) this.paint();
  }

  // Whether somebody presses a row, or is about to copy something: it must not change beneath them.
  isInHand() {
    const marked = getSelection();
    return this.body.matches(":active") || (!marked.isCollapsed && this.body.contains(marked.anchorNode));
  }

  later() {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => { this.due = false; this.paint(); });
  }

  paint() {
    const held = this.body.contains(document.activeElement) && document.activeElement.tagName === "TR";
    const count = this.shown.length;
    const high = this.node.clientHeight || 800;
    const top = Math.min(this.node.scrollTop, Math.max(0, (count + 1) * ROW - high));
    const first = Math.max(0, Math.floor(top / ROW) - AROUND);
    const last = Math.min(count, Math.ceil((top + high) / ROW) + AROUND);
    this.table.setAttribute("aria-rowcount", count + 1);
    this.node.classList.toggle("fits", count < 12);
    if (!count) {
      const cell = h("td", { colspan: this.columns.length }, this.isLoaded ? this.nothing(this.rows.length > 0) : empty("Asking the brokers …"));
      cell.style.whiteSpace = "normal";
      fill(this.body, h("tr", {}, cell));
      return;
    }
    const keys = this.shown.slice(first, last).map(this.key);
    const stop = keys.includes(this.active) ? this.active : keys[Math.min(AROUND, first, keys.length - 1)];
    const rows = this.shown.slice(first, last).map((row, at) => this.row(row, first + at, keys[at] === stop));
    fill(this.body, space(first * ROW), rows, space((count - last) * ROW));
    if (held) this.body.querySelector('tr[tabindex="0"]')?.focus({ preventScroll: true });
  }

  row(row, index, isStop) {
    const key = this.key(row);
    const cells = this.columns.map((column) => {
      const told = column.cell(row);
      const title = typeof told === "string" && told.length > 30 ? told.slice(0, 300) : null;
      return h("td", { class: [column.number ? "number" : "", column.class || ""].join(" ").trim() || null, title }, told);
    });
    const made = h("tr", { class: this.open ? "row open" : "row", tabindex: isStop ? 0 : -1, "aria-rowindex": index + 2,
      "aria-selected": this.selected === key ? "true" : null,
      onfocus: () => { this.active = key; }, onclick: (event) => {
        if (!this.open || event.target.closest("a, button") || String(getSelection())) return;
        this.active = key; this.open(row);
      } }, cells);
    return made;
  }

  select(key) { this.selected = key; this.paint(); }

  keyed(event) {
    if (event.target.tagName !== "TR") return;
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity };
    const at = this.shown.findIndex((row) => this.key(row) === this.active);
    if (event.key === "Enter" && this.open && at >= 0) { event.preventDefault(); this.open(this.shown[at]); return; }
    if (!(event.key in steps) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const to = Math.min(this.shown.length - 1, Math.max(0, at + steps[event.key]));
    this.active = this.key(this.shown[to]);
    const top = to * ROW, inside = this.node.clientHeight - ROW;
    if (top < this.node.scrollTop) this.node.scrollTop = top;
    else if (top + ROW > this.node.scrollTop + inside) this.node.scrollTop = top + ROW - inside;
    this.paint();
    this.body.querySelector('tr[tabindex="0"]')?.focus({ preventScroll: true });
  }
}

function space(high) {
  const cell = h("td");
  cell.style.height = `${high}px`;
  const row = h("tr", { class: "space", "aria-hidden": "true" }, cell);
  return row;
}

function compare(one, other) {
  const none = (value) => value === null || value === undefined;
  if (none(one) || none(other)) return none(one) - none(other);
  return typeof one === "string" ? one.localeCompare(other, "en", { numeric: true }) : one - other;
}
