import { setText } from "./dom.js";
import { el } from "./element.js";

/**
 * Rows that are updated in place, so that a link keeps its focus and a selection stays.
 *
 * A cell is a text, or `{ text, href }` for a link, or a node that is created once for each row (`once`).
 */
export class Table {
  #columns;
  #key;
  #rows = new Map();
  #body = el("tbody");
  #empty;

  /**
   * @param {{title: string, cell?: (row: any) => any, once?: (row: any) => Node, class?: string}[]} columns `class`
   *   `number` is aligned right, `wide` is left out on a phone, `text` may be long
   * @param {{key: (row: any) => any, empty: string, caption: string, testid?: string}} options
   */
  constructor(columns, { key, empty, caption, testid }) {
    this.#columns = columns;
    this.#key = key;
    this.#empty = el("p", { class: "note" }, empty);
    const head = el("tr", {}, ...columns.map((column) => el("th", { scope: "col", class: column.class }, column.title)));
    this.element = el("div", { class: "scroll" },
      el("table", { dataset: { testid: testid ?? "" } },
        el("caption", { class: "hidden" }, caption), el("thead", {}, head), this.#body),
      this.#empty);
  }

  /** @param {any[]} rows in display order */
  show(rows) {
    const old = this.#rows;
    this.#rows = new Map();
    let place = this.#body.firstElementChild;
    for (const row of rows) {
      const key = this.#key(row);
      const line = old.get(key) ?? this.#line(row);
      old.delete(key);
      this.#rows.set(key, line);
      this.#columns.forEach((column, index) => column.cell && this.#fill(line.children[index], column.cell(row)));
      if (line === place) place = place.nextElementSibling;
      else this.#body.insertBefore(line, place);
    }
    for (const line of old.values()) line.remove();
    this.#empty.hidden = rows.length > 0;
    this.element.firstElementChild.hidden = rows.length === 0;
  }

  #line(row) {
    return el("tr", {}, ...this.#columns.map((column) =>
      el("td", { class: column.class }, column.once ? column.once(row) : "")));
  }

  #fill(cell, value) {
    if (value?.href === undefined) return setText(cell, String(value ?? ""));
    let anchor = cell.querySelector("a");
    if (!anchor) cell.replaceChildren((anchor = el("a")));
    setText(anchor, value.text);
    if (anchor.getAttribute("href") !== value.href) anchor.setAttribute("href", value.href);
  }
}

/** Names and values, updated in place. A name that has a hint shows it on hover and when pressed. */
export class Facts {
  #values = new Map();
  #list = el("dl", { class: "facts" });
  #hints;

  /**
   * @param {string} title
   * @param {Record<string, any>} [attributes] of the element
   * @param {Record<string, string>} [hints] explanations by name
   */
  constructor(title, attributes = {}, hints = {}) {
    this.#hints = hints;
    this.element = el("section", { class: "card", ...attributes }, el("h2", {}, title), this.#list);
  }

  /** @param {[string, string, string?][]} facts name, value, and `bad` or `good` if it is */
  show(facts) {
    const names = new Set(facts.map(([name]) => name));
    for (const [name, { row }] of this.#values) {
      if (names.has(name)) continue;
      row.remove();
      this.#values.delete(name);
    }
    let last = null;
    for (const [name, text, tone] of facts) {
      let entry = this.#values.get(name);
      if (!entry) {
        const value = el("dd");
        entry = { value, row: factRow(name, value, this.#hints[name]) };
        this.#values.set(name, entry);
        // Inserted in order, even if it appears later than its neighbours.
        if (last) last.after(entry.row);
        else this.#list.prepend(entry.row);
      }
      last = entry.row;
      setText(entry.value, text);
      entry.value.className = tone ?? "";
    }
  }
}

function factRow(name, value, hint) {
  if (!hint) return el("div", {}, el("dt", {}, name), value);
  const text = el("dd", { class: "hint", hidden: true }, hint);
  const button = el("button", {
    class: "hinted", type: "button", title: hint, "aria-expanded": "false", onclick: () => {
      text.hidden = !text.hidden;
      button.setAttribute("aria-expanded", String(!text.hidden));
    },
  }, name);
  return el("div", {}, el("dt", {}, button), value, text);
}
