import { icon } from "./dom.js";
import { el } from "./element.js";

/** How long the drop button keeps the line dead: long enough to write something to the one who is away. */
const DOWNTIME = 5_000;

/**
 * The state of a pane's connection in words, and the button that cuts it.
 *
 * `data-state`: `connecting`, `joining` (socket open, changes not live yet), `live`, `stalled` (socket open, and the hub's
 * database away), `reconnecting`, `problem`.
 */
export class ConnectionControl {
  #client;
  #database;
  #conversation = null;
  #problem = null;
  #hasBeenLive = false;
  #ticker = 0;
  #label = el("span", {});
  #pill = el("span", { class: "pill", role: "status", dataset: { testid: "connection-state", state: "connecting" } },
    el("span", { class: "lamp", "aria-hidden": "true" }), this.#label);
  #button = el("button", {
    class: "quiet drop", type: "button", dataset: { testid: "drop-button", state: "up" }, onclick: () => this.#toggle(),
  });

  /**
   * @param {import("./realtime.js").RealtimeClient} client
   * @param {import("./database.js").DatabaseWatch} database
   */
  constructor(client, database) {
    this.#client = client;
    this.#database = database;
    database.on("change", () => this.#show());
    client.on("state", () => this.#show());
    this.element = el("div", { class: "connection" }, this.#pill, this.#button);
    this.#show();
  }

  /** @param {import("./conversation.js").Conversation} conversation whose channel decides between joining and live */
  follow(conversation) {
    this.#conversation = conversation;
    this.#problem = null;
    conversation.on("state", () => this.#conversation === conversation && this.#show());
    conversation.on("problem", (problem) => {
      this.#problem = problem;
      if (this.#conversation === conversation) this.#show();
    });
    this.#show();
  }

  stop() {
    clearInterval(this.#ticker);
  }

  #toggle() {
    if (this.#client.state === "waiting") this.#client.connect();
    else this.#client.drop(DOWNTIME);
  }

  #state() {
    if (this.#client.state === "open") {
      if (!this.#database.up) return "stalled";
      if (this.#conversation?.live) return "live";
      return this.#problem ? "problem" : "joining";
    }
    return this.#client.state === "connecting" && !this.#hasBeenLive ? "connecting" : "reconnecting";
  }

  #show() {
    const state = this.#state();
    this.#hasBeenLive ||= state === "live";
    this.#pill.dataset.state = state;
    this.#pill.title = this.#hint(state);
    const text = this.#text(state);
    if (this.#label.textContent !== text) this.#label.textContent = text;

    const waiting = this.#client.state === "waiting";
    clearInterval(this.#ticker);
    if (waiting) this.#ticker = setInterval(() => (this.#label.textContent = this.#text("reconnecting")), 250);
    const up = state !== "reconnecting";
    if (this.#button.dataset.state === (up ? "up" : "down") && this.#button.firstChild) return;
    this.#button.dataset.state = up ? "up" : "down";
    this.#button.title = up ? `Cut this pane's connection, as a tunnel does; it reconnects after ${DOWNTIME / 1000} s` : "Reconnect at once";
    this.#button.replaceChildren(icon(up ? "unplug" : "plug"), el("span", {}, up ? "Drop" : "Reconnect"));
  }

  #text(state) {
    if (state === "live") {
      const latency = this.#conversation.latency;
      return latency === null ? "Live" : `Live · ${latency < 1 ? "under 1" : latency} ms`;
    }
    if (state === "reconnecting" && this.#client.state === "waiting") {
      const seconds = Math.ceil((this.#client.retryAt - Date.now()) / 1000);
      return seconds > 0 ? `Offline · retrying in ${seconds} s` : "Reconnecting";
    }
    return {
      connecting: "Connecting", joining: "Joining", stalled: "No database", reconnecting: "Reconnecting", problem: "Not live",
    }[state];
  }

  #hint(state) {
    if (state === "live") return "The next commit appears here by itself; the figure is the time from the last commit to this page";
    if (state === "stalled") return "The socket to the hub is open, but the hub's Postgres does not answer";
    return this.#problem ?? "";
  }
}
