import { paths } from "./dom.js";
import { el } from "./element.js";
import * as format from "./format.js";
import { Table } from "./table.js";

/** Supabase's clients write `room-1` and send `realtime:room-1`, as does `roost tail`. */
function topicOf(text) {
  return text.startsWith("realtime:") ? text : `realtime:${text}`;
}

/** The busiest channels, and a way to any other. */
export class Channels {
  title = "Channels";
  topics = ["ops:channels"];
  #table = new Table([
    { title: "Channel", class: "text", cell: (row) => ({ text: row.topic, href: paths.channel(row.topic) }) },
    { title: "", class: "wide", cell: (row) => (row.private ? "private" : "") },
    { title: "Sockets", class: "number", cell: (row) => format.exact(row.sockets) },
    { title: "Present", class: "number wide", cell: (row) => format.exact(row.present) },
    { title: "Messages", class: "number", cell: (row) => format.rate(row.rate) },
    { title: "Deliveries", class: "number", cell: (row) => format.rate(row.deliveryRate) },
  ], { key: (row) => `${row.private} ${row.topic}`, empty: "There are no channels.", caption: "Busiest channels", testid: "channels" });
  #askedAt = null;

  constructor() {
    const input = el("input", {
      id: "topic", name: "topic", required: true, placeholder: "room-1", autocomplete: "off", spellcheck: "false",
    });
    const form = el("form", {
      class: "find",
      onsubmit: (event) => {
        event.preventDefault();
        location.hash = paths.channel(topicOf(input.value.trim()));
      },
    }, el("label", { for: "topic" }, "Topic"), input, el("button", {}, "Look at it"));
    this.element = el("div", { class: "view" },
      el("section", { class: "card" }, el("div", { class: "head" }, el("h2", {}, "Busiest channels"), form), this.#table.element));
  }

  take(_topic, event, payload) {
    if (event !== "state") return;
    // The hub counts from one request to the next; the first answer counts from the channel's beginning.
    const now = performance.now();
    const seconds = this.#askedAt === null ? null : (now - this.#askedAt) / 1000;
    this.#askedAt = now;
    this.#table.show(payload.channels.map((channel) => ({
      ...channel,
      rate: seconds ? channel.messages / seconds : null,
      deliveryRate: seconds ? channel.deliveries / seconds : null,
    })));
  }
}
