import { paths } from "./dom.js";
import { el } from "./element.js";
import * as format from "./format.js";
import { Facts, Table } from "./table.js";

/** One channel: its members, and its messages while the view is open. */
export class Channel {
  #facts = new Facts("Channel");
  #members = new Table([
    { title: "Connection", cell: (row) => ({ text: row.id, href: paths.connection(row.id) }) },
    { title: "User", class: "text", cell: (row) => (row.user ? { text: row.user, href: paths.user(row.user) } : format.NOTHING) },
    { title: "Role", class: "wide", cell: (row) => row.role },
    { title: "Presence key", class: "text wide", cell: (row) => row.presenceKey },
    { title: "Watches rows", class: "number", cell: (row) => format.exact(row.changes) },
    { title: "", cell: (row) => (row.present ? "present" : "") },
  ], { key: (row) => row.id, empty: "No socket is in it.", caption: "Sockets in the channel", testid: "members" });
  #present = new Table([
    { title: "Key", class: "text", cell: (row) => row.key },
    { title: "Says of itself", class: "text code", cell: (row) => row.excerpt },
  ], { key: (row) => row.place, empty: "Nobody is present.", caption: "Who is present", testid: "present" });
  #events = new Table([
    { title: "Time", cell: (row) => format.clock(row.at, { fraction: true }) },
    { title: "Event", class: "text", cell: (row) => row.event },
    { title: "To", class: "number", cell: (row) => (row.refused ? "refused" : format.exact(row.receivers)) },
    { title: "Bytes", class: "number", cell: (row) => format.exact(row.bytes) },
    { title: "Payload", class: "text code", cell: (row) => row.excerpt },
  ], { key: (row) => `${row.loop} ${row.number}`, empty: "No events since you opened this page.", caption: "Recent events", testid: "events" });

  constructor(topic) {
    this.title = topic;
    this.topics = [`ops:channel:${topic}`];
    this.element = el("div", { class: "view" },
      el("p", { class: "crumb" }, el("a", { href: "#/channels" }, "Channels")),
      el("h2", { class: "subject" }, topic),
      el("div", { class: "columns" }, this.#facts.element,
        el("section", { class: "card short" }, el("h2", {}, "Who is present"), this.#present.element)),
      el("section", { class: "card short" }, el("h2", {}, "Sockets"), this.#members.element),
      el("section", { class: "card" }, el("h2", {}, "Recent events"), this.#events.element));
  }

  take(_topic, event, payload) {
    if (event !== "state") return;
    this.#facts.show(facts(payload));
    this.#members.show(payload.members);
    this.#present.show(payload.rooms.flatMap((room) => room.present.map((present, place) => ({
      ...present, place: `${room.private} ${place}`,
    }))));
    this.#events.show(payload.events.reverse());
  }
}

function facts({ rooms, members }) {
  if (rooms.length === 0) return [["State", "There is no such channel now."]];
  return rooms.flatMap((room) => {
    // A public and a private channel of one name are two rooms.
    const which = rooms.length > 1 ? (room.private ? ", private" : ", public") : "";
    return [
      ...(which ? [] : [["Kind", room.private ? "private" : "public"]]),
      [`Sockets${which}`, format.exact(room.sockets)],
      [`Shown below${which}`, format.exact(members.filter((member) => member.private === room.private).length)],
      [`Present${which}`, format.exact(room.presentCount)],
      [`Typing${which}`, format.exact(room.typing)],
    ];
  });
}
