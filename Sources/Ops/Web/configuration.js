import { el } from "./element.js";
import { Table } from "./table.js";

/** The configuration in force, and the origin of each value. */
export class Configuration {
  title = "Settings";
  topics = ["ops:configuration"];
  #table = new Table([
    { title: "Key", class: "name", cell: (row) => row.key },
    { title: "Value", class: "text code", cell: (row) => row.value },
    { title: "Set by", class: "text", cell: (row) => row.origin },
  ], { key: (row) => row.key, empty: "Nothing has come yet.", caption: "Settings", testid: "configuration" });

  constructor() {
    this.element = el("div", { class: "view" },
      el("section", { class: "card settings" }, el("h2", {}, "Configuration in force"),
        el("p", { class: "note" }, "Secrets are hidden. ", el("code", {}, "roost config print"), " prints the same."),
        this.#table.element));
  }

  take(_topic, event, payload) {
    if (event === "settings") this.#table.show(payload.settings);
  }
}
