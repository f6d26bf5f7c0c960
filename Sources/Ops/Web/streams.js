import { paths, setText } from "./dom.js";
import { el } from "./element.js";
import * as format from "./format.js";
import { Table } from "./table.js";

/** The streams that grow, the newest ones, and a way to any other. */
export class Streams {
  title = "Streams";
  topics = ["ops:streams"];
  #sum = el("p", { class: "note", dataset: { testid: "streams-sum" } });
  #busiest = streamTable({ empty: "No stream is growing now.", caption: "Growing streams", testid: "streams-busiest" });
  #newest = streamTable({ empty: "There are no streams.", caption: "Newest streams", testid: "streams-newest" });
  #lists;
  #unserved = el("p", { class: "empty", hidden: true },
    "This hub serves no streams: streams.directory is not set.");

  constructor() {
    const input = el("input", {
      id: "stream", name: "stream", required: true, placeholder: "reply/1", autocomplete: "off", spellcheck: "false",
    });
    const form = el("form", {
      class: "find",
      onsubmit: (event) => {
        event.preventDefault();
        location.hash = paths.stream(input.value.trim());
      },
    }, el("label", { for: "stream" }, "Name"), input, el("button", {}, "Look at it"));
    this.#lists = el("div", { class: "view" },
      el("section", { class: "card" }, el("div", { class: "head" }, el("h2", {}, "Growing streams"), form),
        this.#sum, this.#busiest.element),
      el("section", { class: "card" }, el("h2", {}, "Newest"), this.#newest.element));
    this.element = el("div", { class: "view" }, this.#unserved, this.#lists);
  }

  take(_topic, event, payload) {
    if (event !== "state") return;
    this.#unserved.hidden = payload.served;
    this.#lists.hidden = !payload.served;
    if (!payload.served) return;
    const { streams, open, stalled, bytes } = payload;
    setText(this.#sum, `${format.exact(streams)} kept, ${format.exact(open)} open, ${format.exact(stalled)} of them stalled; `
      + `${format.bytes(bytes)} in all.`);
    this.#busiest.show(payload.busiest);
    this.#newest.show(payload.newest);
  }
}

function streamTable(options) {
  return new Table([
    { title: "Stream", class: "text", cell: (row) => ({ text: row.name, href: paths.stream(row.name) }) },
    { title: "State", cell: (row) => row.state },
    { title: "Type", class: "text wide", cell: (row) => row.type },
    { title: "Bytes", class: "number wide", cell: (row) => format.bytes(row.bytes) },
    { title: "Growth", class: "number", cell: (row) => format.byteRate(row.byteRate) },
    { title: "Appends", class: "number wide", cell: (row) => format.rate(row.appendRate) },
    { title: "Watchers", class: "number", cell: (row) => format.exact(row.webSockets + row.events + row.longPolls) },
    { title: "Producer", class: "text wide", cell: (row) => row.producer ?? format.NOTHING },
    { title: "It writes by", class: "wide", cell: (row) => connection(row) },
    { title: "Age", class: "number wide", cell: (row) => format.duration(row.seconds) },
    { title: "Silent for", class: "number wide", cell: (row) => format.duration(row.silence) },
  ], { key: (row) => row.id, ...options });
}

/** The kinds of connections that a stream's producers have. */
export function connection({ requests, sockets, producer, state }) {
  const ways = [
    ...(requests ? [requests === 1 ? "long request" : `${requests} long requests`] : []),
    ...(sockets ? [sockets === 1 ? "WebSocket" : `${sockets} WebSockets`] : []),
  ];
  if (ways.length) return ways.join(", ");
  return producer && (state === "open" || state === "stalled") ? "short requests" : format.NOTHING;
}
