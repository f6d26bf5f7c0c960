import { paths, setText } from "./dom.js";
import { el } from "./element.js";
import * as format from "./format.js";
import { Table } from "./table.js";

/** Alerts and their outcomes, one per row, or the reason why there are none to show. */
export class Alerts {
  #note = el("p", { class: "note", role: "status", hidden: true, dataset: { testid: "alerts-note" } });
  #table;

  /**
   * @param {object} column for the value in which the rows differ
   * @param {string} empty
   */
  constructor(column, empty) {
    this.#table = new Table([
      { title: "Time", cell: (row) => format.moment(row.at) },
      column,
      { title: "Outcome", class: "text", cell: outcome },
      { title: "Why", class: "text", cell: (row) => row.reason ?? format.NOTHING },
      { title: "Phones", class: "text", cell: (row) => row.phones ?? format.NOTHING },
    ], { key: (row) => `${row.message}\n${row.user}`, empty, caption: "Alerts", testid: "alerts" });
    // The first answer may take seconds.
    setText(this.#note, "Looking for alerts.");
    this.#note.hidden = false;
    this.#table.element.hidden = true;
    this.element = el("section", { class: "card" }, el("h2", {}, "Alerts, the newest first"), this.#note, this.#table.element);
  }

  take({ alerts, problem }) {
    setText(this.#note, problem ?? "");
    this.#note.hidden = !problem;
    this.#table.element.hidden = Boolean(problem);
    this.#table.show(alerts);
  }
}

export const messageColumn = {
  title: "Message", class: "text", cell: (row) => ({ text: row.message, href: paths.message(row.message) }),
};

const userColumn = { title: "User", class: "text", cell: (row) => ({ text: row.user, href: paths.user(row.user) }) };

function outcome(row) {
  return row.time === null ? row.outcome : `${row.outcome} ${format.clock(row.time)}`;
}

/** The users who were alerted to a message or were not, and why. */
export class Message {
  #alerts = new Alerts(userColumn,
    "No alert is remembered: no reader has registered a phone, the message is not in one of alerts.tables, or it is too old.");

  /** @param {string} key its primary key, with or without its table */
  constructor(key) {
    this.title = `Message ${key}`;
    this.topics = [`ops:message_alerts:${key}`];
    this.element = el("div", { class: "view" },
      el("p", { class: "crumb" }, el("a", { href: "#/connections" }, "Connections")),
      el("div", { class: "head" }, el("h2", { class: "subject" }, this.title)),
      this.#alerts.element);
  }

  take(_topic, event, payload) {
    if (event === "state") this.#alerts.take(payload);
  }
}
