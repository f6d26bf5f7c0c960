import { setText } from "./dom.js";
import { el } from "./element.js";
import * as format from "./format.js";
import { Table } from "./table.js";

/** The hubs that act as one; empty if a hub is alone. */
export class Cluster {
  #state = el("p", { class: "state", dataset: { testid: "cluster-state" } });
  #note = el("p", { class: "note", dataset: { testid: "cluster-note" } });
  #table = new Table([
    { title: "Hub", cell: (hub) => hub.name },
    { title: "State", cell: (hub) => hub.state },
    { title: "Version", class: "wide", cell: (hub) => hub.version ?? "" },
    { title: "Running for", class: "number wide", cell: (hub) => format.duration(hub.age) },
    { title: "Connections", class: "number wide", cell: (hub) => format.exact(hub.connections) },
    { title: "Present", class: "number wide", cell: (hub) => format.exact(hub.members) },
    { title: "Sent", class: "number", cell: (hub) => format.rate(hub.said) },
    { title: "Received", class: "number", cell: (hub) => format.rate(hub.heard) },
    { title: "Entries behind", class: "number wide", cell: (hub) => format.exact(hub.behind) },
    { title: "Gaps", class: "number", cell: (hub) => format.exact(hub.gaps) },
  ], { key: (hub) => hub.key, empty: "No figures yet.", caption: "Hubs of the cluster", testid: "cluster-hubs" });

  constructor() {
    this.element = el("section", { class: "card", dataset: { testid: "cluster" } },
      el("div", { class: "head" }, el("h2", {}, "Hubs that act as one"), this.#state), this.#table.element, this.#note);
    this.element.hidden = true;
  }

  /** @param {object | null} cluster as in a sample: this hub first */
  show(cluster) {
    this.element.hidden = !cluster;
    if (!cluster) return;
    const { server, problem, gaps, disconnects, waiting, hubs } = cluster;
    const others = hubs.slice(1).filter(isThere).length;
    this.#state.className = problem ? "state bad" : "state good";
    setText(this.#state, problem
      ? `Alone: ${problem}`
      : `With ${others} other hub${others === 1 ? "" : "s"} by ${server}`);
    const seen = new Map();
    this.#table.show(hubs.map((hub, index) => {
      // A restarted hub is listed beside its former process for a minute.
      const count = (seen.get(hub.name) ?? 0) + 1;
      seen.set(hub.name, count);
      const line = { ...hub, name: index ? hub.name : `${hub.name}, here`, key: `${hub.name} ${count}` };
      if (index === 0 || (!problem && isThere(hub))) return line;
      // Its last report is outdated.
      return { ...line, state: isThere(hub) ? "not heard" : hub.state, age: null, connections: null, said: null, heard: null, behind: null };
    }));
    setText(this.#note, `${format.bytes(waiting)} wait here for Redis, or are kept to be sent again. Since its start this hub has `
      + `lost Redis ${times(disconnects)}, and told its clients of missing messages ${times(gaps)}.`);
  }
}

function isThere({ state }) {
  return state === "there" || state === "draining";
}

function times(count) {
  return count === 1 ? "once" : `${format.exact(count)} times`;
}
