import { paths } from "./dom.js";
import { el } from "./element.js";
import * as format from "./format.js";
import { Table } from "./table.js";

/** Connections, one per row. */
export function socketTable(options) {
  return new Table([
    { title: "Connection", cell: (row) => ({ text: row.id, href: paths.connection(row.id) }) },
    { title: "User", class: "text", cell: (row) => (row.user ? { text: row.user, href: paths.user(row.user) } : format.NOTHING) },
    { title: "Address", class: "wide", cell: (row) => row.address },
    { title: "Open for", class: "number wide", cell: (row) => format.duration(row.seconds) },
    { title: "Channels", class: "number", cell: (row) => format.exact(row.channels) },
    { title: "Queue", class: "number", cell: (row) => format.bytes(row.pending) },
    { title: "", cell: (row) => standing(row) },
  ], { key: (row) => row.id, caption: "Connections", ...options });
}

/** The consequence of a socket's queue, in a word. */
export function standing(socket) {
  if (socket.closing) return "closing";
  if (socket.writtenOff) return "left behind";
  return socket.behind ? "behind" : "";
}

/** Connections that do not keep up, the newest ones, and a way to any other, and to the alerts of a message. */
export class Connections {
  title = "Connections";
  topics = ["ops:slow", "ops:newest"];
  #table = socketTable({ empty: "No slow readers: every socket keeps up.", testid: "slow" });
  #newest = socketTable({ empty: "Nobody is connected.", testid: "newest" });

  constructor() {
    this.element = el("div", { class: "view" },
      el("section", { class: "card" }, el("h2", {}, "Find"),
        finder("user", "User (the claim sub)", "", (text) => paths.user(text)),
        finder("connection", "Connection", "0-12-345", (text) => paths.connection(text)),
        finder("message", "Alerts of a message", "its primary key", (text) => paths.message(text))),
      el("section", { class: "card" }, el("h2", {}, "Slow readers"), this.#table.element),
      el("section", { class: "card" }, el("h2", {}, "Newest"), this.#newest.element));
  }

  take(topic, event, payload) {
    if (event === "state") (topic === "ops:slow" ? this.#table : this.#newest).show(payload.sockets);
  }
}

function finder(id, label, placeholder, path) {
  const input = el("input", { id, required: true, placeholder, autocomplete: "off", spellcheck: "false" });
  return el("form", {
    class: "find",
    onsubmit: (event) => {
      event.preventDefault();
      location.hash = path(input.value.trim());
    },
  }, el("label", { for: id }, label), input, el("button", {}, "Look"));
}
