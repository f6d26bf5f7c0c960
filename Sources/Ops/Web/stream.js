import { confirmed, tell } from "./confirm.js";
import { paths, setText } from "./dom.js";
import { el } from "./element.js";
import * as format from "./format.js";
import { connection } from "./streams.js";
import { Facts, Table } from "./table.js";

const WAYS = { websocket: "WebSocket", sse: "events", long_poll: "long-poll" };
const ENDED = ["complete", "cancelled", "aborted"];

/** One stream: its state, its writers and readers, and its last content. */
export class Stream {
  #socket;
  #topic;
  #name;
  #id = null;
  #before = null;
  #facts = new Facts("Stream", { "data-testid": "stream" });
  #readers = new Facts("Watchers", { "data-testid": "watchers-sum" });
  #gone = el("p", { class: "note bad", hidden: true, role: "status", dataset: { testid: "gone" } },
    "There is no such stream now.");
  #cancel = el("button", {
    class: "danger", type: "button", hidden: true, dataset: { testid: "cancel" }, onclick: () => this.#askCancel(),
  }, "Cancel");
  #delete = el("button", {
    class: "danger", type: "button", hidden: true, dataset: { testid: "delete" }, onclick: () => this.#askDelete(),
  }, "Delete");
  #producers = new Table([
    { title: "Producer", class: "text", cell: (row) => row.id },
    { title: "Epoch", class: "number", cell: (row) => format.exact(row.epoch) },
    { title: "Last number", class: "number", cell: (row) => format.exact(row.sequence) },
    { title: "Wrote up to", class: "number", cell: (row) => format.bytes(row.end) },
  ], { key: (row) => row.place, empty: "No producer numbers its appends.", caption: "Producers", testid: "producers" });
  #writers = new Table([
    { title: "Connection", cell: (row) => (row.id ? { text: row.id, href: paths.connection(row.id) } : "long request") },
    { title: "User", class: "text", cell: user },
  ], { key: (row) => row.id ?? row.place, empty: "No producer is connected.", caption: "Connections of producers", testid: "writers" });
  #watchers = new Table([
    { title: "Way", cell: (row) => WAYS[row.transport] },
    { title: "Connection", class: "wide", cell: (row) => (row.id ? { text: row.id, href: paths.connection(row.id) } : format.NOTHING) },
    { title: "User", class: "text", cell: user },
    { title: "Address", class: "wide", cell: (row) => row.address ?? format.NOTHING },
    { title: "Has", class: "number wide", cell: (row) => format.bytes(row.offset) },
    { title: "Behind", class: "number", cell: (row) => format.bytes(row.behind) },
    { title: "Queue", class: "number", cell: (row) => format.bytes(row.pending) },
  ], { key: (row) => row.id ?? row.place, empty: "Nobody reads it.", caption: "Watchers", testid: "watchers" });
  #excerpt = new Table([
    { title: "Newest", class: "text code", cell: (row) => row.text },
  ], { key: (row) => row.place, empty: "There is no text to show.", caption: "Newest content", testid: "excerpt" });

  /**
   * @param {string} name
   * @param {import("./socket.js").OpsSocket} socket
   */
  constructor(name, socket) {
    this.#name = name;
    this.#socket = socket;
    this.#topic = `ops:stream:${name}`;
    this.title = name;
    this.topics = [this.#topic];
    this.element = el("div", { class: "view" },
      el("p", { class: "crumb" }, el("a", { href: "#/streams" }, "Streams")),
      el("div", { class: "head" }, el("h2", { class: "subject" }, name),
        el("a", { href: paths.channel(`realtime:stream:${name}`) }, "Its channel"),
        el("span", { class: "buttons" }, this.#cancel, this.#delete)),
      this.#gone,
      el("div", { class: "columns" }, this.#facts.element, this.#readers.element),
      el("section", { class: "card" }, el("h2", {}, "Newest content"),
        el("p", { class: "note" }, "The end of the content, shortened. Tokens are hidden."), this.#excerpt.element),
      el("div", { class: "columns" },
        el("section", { class: "card short" }, el("h2", {}, "Producers"), this.#producers.element),
        el("section", { class: "card short" }, el("h2", {}, "Connections of producers"), this.#writers.element)),
      el("section", { class: "card short" }, el("h2", {}, "Watchers, the slowest first"), this.#watchers.element));
  }

  take(_topic, event, payload) {
    if (event !== "state") return;
    const { stream } = payload;
    this.#gone.hidden = Boolean(stream);
    this.#delete.hidden = !stream;
    this.#cancel.hidden = !stream || ENDED.includes(stream.state);
    if (!stream) return;
    this.#id = stream.id;
    this.#facts.show(this.#describe(payload));
    this.#readers.show([
      ["WebSockets", format.exact(stream.webSockets)],
      ["Events", format.exact(stream.events)],
      ["Long-polls", format.exact(stream.longPolls)],
      ["The slowest is behind by", format.bytes(payload.behind)],
      ["Shown below", format.exact(payload.watchers.length)],
    ]);
    this.#producers.show(numbered(payload.producers));
    this.#writers.show(numbered(payload.writers));
    this.#watchers.show(numbered(payload.watchers));
    this.#excerpt.show(numbered(payload.excerpt.map((text) => ({ text }))));
  }

  #describe({ stream, limit, waiting, trouble, lifetime, lease, producerCount }) {
    const { bytes, appends } = this.#rates(stream);
    const isBad = stream.state === "stalled" || stream.state === "aborted";
    return [
      ["State", stream.state, isBad ? "bad" : ""],
      ["Type", stream.type],
      ["Bytes", `${format.bytes(stream.bytes)} of ${format.bytes(limit)}`],
      ["Growth", format.byteRate(bytes)],
      ["Appends", `${format.exact(stream.appends)} since the hub started, ${format.rate(appends)}`],
      ["Last append", stream.silence === null ? "before the hub started, or none" : `${format.duration(stream.silence)} ago`],
      ["Age", format.duration(stream.seconds)],
      ["Producers", format.exact(producerCount)],
      ["They write by", connection(stream)],
      ["Stalls after", lease === null ? "the hub's setting" : lease === 0 ? "never" : format.duration(lease)],
      ["Kept", lifetime],
      ...(trouble ? [["Cannot be closed", trouble, "bad"]] : []),
      ...(waiting ? [["Requests that wait for its row", format.exact(waiting)]] : []),
    ];
  }

  /** The rates since the last answer. */
  #rates(stream) {
    const [before, now] = [this.#before, { ...stream, at: performance.now() }];
    this.#before = now;
    if (before?.id !== stream.id) return { bytes: null, appends: null };
    const seconds = (now.at - before.at) / 1000;
    return { bytes: (now.bytes - before.bytes) / seconds, appends: (now.appends - before.appends) / seconds };
  }

  #askCancel() {
    return this.#ask("cancel_stream", "Cancel", "is cancelled", "was not cancelled",
      "It ends where it is: nobody receives a byte more, and its producer is told to stop. What it has can still be read for a while.");
  }

  #askDelete() {
    return this.#ask("delete_stream", "Delete", "is deleted", "was not deleted",
      "What it has is gone for good, and all who read it are told so. Its producer's next append is refused.");
  }

  async #ask(command, action, done, failed, text) {
    // The stream that is shown now, even if another one has this name by the time of the answer.
    const id = this.#id;
    const question = { title: `${action} ${this.#name}?`, text, action: `${action} the stream`, dismiss: "Leave it" };
    if (!(await confirmed(question))) return;
    try {
      await this.#socket.ask(this.#topic, command, { stream: this.#name, id });
      tell(`The stream ${done}.`);
    } catch (error) {
      tell(`The stream ${failed}: ${error.message}.`, { bad: true });
    }
  }
}

/** Links the user of a connection; a request has no page to link to. */
function user(row) {
  if (!row.user) return format.NOTHING;
  return row.id ? { text: row.user, href: paths.user(row.user) } : row.user;
}

/** Rows without a name of their own. */
function numbered(rows) {
  return rows.map((row, place) => ({ ...row, place }));
}
