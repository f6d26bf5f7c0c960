import { confirmed, tell } from "./confirm.js";
import { paths, setText } from "./dom.js";
import { el } from "./element.js";
import * as format from "./format.js";
import { standing } from "./sockets.js";
import { Facts, Table } from "./table.js";

/** One connection: its user, its channels, and its traffic while the view is open. */
export class Connection {
  #socket;
  #topic;
  #facts = new Facts("Connection", { "data-testid": "connection" });
  #gone = el("p", { class: "note bad", hidden: true, role: "status", dataset: { testid: "gone" } },
    "This connection has ended. Its client has another one if it came back.");
  #button;
  #user = el("a", { hidden: true });
  #joins = new Table([
    { title: "Channel", class: "text", cell: (row) => ({ text: row.topic, href: paths.channel(row.topic) }) },
    { title: "", class: "wide", cell: (row) => (row.private ? "private" : "") },
    { title: "Join", cell: (row) => (row.joined ? "answered" : "waits") },
    { title: "Presence key", class: "text wide", cell: (row) => row.presenceKey },
    { title: "Watches rows", class: "number", cell: (row) => format.exact(row.changes) },
    { title: "", cell: (row) => (row.present ? "present" : "") },
  ], { key: (row) => `${row.private} ${row.topic}`, empty: "It is in no channel.", caption: "Channels of the connection", testid: "memberships" });
  #trace = new Table([
    { title: "Time", cell: (row) => format.clock(row.at, { fraction: true }) },
    { title: "", cell: (row) => (row.out ? "to it" : "from it") },
    { title: "Topic", class: "text wide", cell: (row) => row.topic },
    { title: "Event", class: "text", cell: (row) => row.event },
    { title: "Bytes", class: "number", cell: (row) => format.exact(row.bytes) },
    { title: "Queue", class: "number wide", cell: (row) => format.bytes(row.queue) },
    { title: "Payload", class: "text code", cell: (row) => row.excerpt },
  ], { key: (row) => row.number, empty: "No frames since you opened this page.", caption: "Frames", testid: "trace" });

  /**
   * @param {string} id
   * @param {import("./socket.js").OpsSocket} socket
   */
  constructor(id, socket) {
    this.#socket = socket;
    this.#topic = `ops:connection:${id}`;
    this.title = `Connection ${id}`;
    this.topics = [this.#topic];
    this.#button = el("button", {
      class: "danger", type: "button", dataset: { testid: "disconnect" }, onclick: () => this.#disconnect(id),
    }, "Disconnect");
    this.element = el("div", { class: "view" },
      el("p", { class: "crumb" }, el("a", { href: "#/connections" }, "Connections")),
      el("div", { class: "head" }, el("h2", { class: "subject" }, `Connection ${id}`), this.#user, this.#button),
      this.#gone,
      el("div", { class: "columns" }, this.#facts.element,
        el("section", { class: "card" }, el("h2", {}, "Channels"), this.#joins.element)),
      el("section", { class: "card" }, el("h2", {}, "Frames"),
        el("p", { class: "note" }, "The last 100 since you opened this page. Tokens are hidden, long payloads are cut."),
        this.#trace.element));
  }

  take(_topic, event, payload) {
    if (event !== "state") return;
    const { socket } = payload;
    this.#gone.hidden = Boolean(socket);
    this.#button.hidden = !socket;
    if (!socket) return;
    this.#user.hidden = !socket.user;
    if (socket.user) {
      setText(this.#user, `User ${socket.user}`);
      this.#user.href = paths.user(socket.user);
    }
    this.#facts.show([
      ["Address", socket.address],
      ["User", socket.user ?? "its token names no user"],
      ["Role of its token", payload.role],
      ["Open for", format.duration(socket.seconds)],
      ["Last heard", `${format.duration(payload.silence)} ago`],
      ["Queue", format.bytes(socket.pending), socket.behind ? "bad" : ""],
      ...(standing(socket) ? [["Standing", standing(socket), "bad"]] : []),
      ["Event loop", String(socket.loop)],
      ["Protocol", payload.version],
      ...(payload.appState ? [["Its app is", payload.appState]] : []),
    ]);
    this.#joins.show(payload.memberships);
    this.#trace.show(payload.trace.reverse());
  }

  async #disconnect(id) {
    const isSure = await confirmed({
      title: `Disconnect ${id}?`,
      text: "Its socket is closed with code 1012. Its client comes back by itself, and receives the row changes that it missed.",
      action: "Disconnect",
    });
    if (!isSure) return;
    try {
      await this.#socket.ask(this.#topic, "disconnect", { connection: id });
      tell(`Connection ${id} is disconnected.`);
    } catch (error) {
      tell(`Connection ${id} was not disconnected: ${error.message}.`, { bad: true });
    }
  }
}
