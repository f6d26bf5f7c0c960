import { confirmed, tell } from "./confirm.js";
import { el } from "./element.js";
import * as format from "./format.js";
import { Table } from "./table.js";

const LEVELS = ["trace", "debug", "info", "notice", "warning", "error", "critical"];
const MOST = 300;
/** The levels that are shown if only warnings are wanted. */
const NOTABLE = LEVELS.slice(LEVELS.indexOf("notice"));

/** The last lines of the log, and its level. */
export class Log {
  title = "Log";
  topics = ["ops:log"];
  #socket;
  #lines = new Map();
  #level = null;
  #select;
  #filter = el("select", { id: "show", dataset: { testid: "show" }, onchange: () => this.#show() },
    el("option", { value: "all" }, "all lines"), el("option", { value: "notable" }, "notices and warnings"));
  #table = new Table([
    { title: "Time", cell: (row) => format.clock(row.at * 1000) },
    { title: "Level", cell: (row) => row.level },
    { title: "What", class: "text", cell: (row) => row.text },
  ], { key: (row) => row.number, empty: "Nothing to show.", caption: "Last lines of the log", testid: "log" });

  /** @param {import("./socket.js").OpsSocket} socket */
  constructor(socket) {
    this.#socket = socket;
    this.#select = el("select", { id: "level", dataset: { testid: "level" }, onchange: () => this.#setLevel() },
      ...LEVELS.map((level) => el("option", { value: level }, level)));
    this.element = el("div", { class: "view" },
      el("section", { class: "card" },
        el("div", { class: "head" }, el("h2", {}, "Last lines of the log"),
          el("div", { class: "find" }, el("label", { for: "show" }, "Show"), this.#filter,
            el("label", { for: "level" }, "Level of the log"), this.#select)),
        this.#table.element));
  }

  take(_topic, event, payload) {
    if (event !== "lines") return;
    // A restarted hub counts from the start.
    if (payload.lines[0]?.number === 1) this.#lines.clear();
    for (const line of payload.lines) this.#lines.set(line.number, line);
    this.#showLevel(payload.level);
    this.#show();
  }

  #show() {
    const all = [...this.#lines.values()];
    const shown = this.#filter.value === "all" ? all : all.filter(({ level }) => NOTABLE.includes(level));
    this.#table.show(shown.slice(-MOST).reverse());
  }

  /** Called for every change, by this page or another. */
  refresh(store) {
    if (store.logLevel) this.#showLevel(store.logLevel);
  }

  #showLevel(level) {
    if (this.#level === level) return;
    this.#level = level;
    this.#select.value = level;
  }

  async #setLevel() {
    const level = this.#select.value;
    const isSure = await confirmed({
      title: `Log from ${level} on?`,
      text: "It takes effect at once and lasts until the hub is restarted. Below info, a busy hub writes a line for much of what clients do.",
      action: "Change",
      danger: false,
    });
    if (!isSure) return (this.#select.value = this.#level);
    try {
      await this.#socket.ask(this.topics[0], "log_level", { level });
      this.#showLevel(level);
      tell(`The level of the log is now ${level}.`);
    } catch (error) {
      this.#select.value = this.#level;
      tell(`The level was not changed: ${error.message}.`, { bad: true });
    }
    return undefined;
  }
}
