import { Alerts, messageColumn } from "./alerts.js";
import { confirmed, tell } from "./confirm.js";
import { el } from "./element.js";
import { socketTable } from "./sockets.js";

/** The connections of one user, and the outcomes of the newest alerts. */
export class User {
  #socket;
  #topic;
  #alertsTopic;
  #button;
  #table = socketTable({ empty: "This user has no connection here.", testid: "sockets" });
  #alerts = new Alerts(messageColumn, "No alert of this user's is remembered: no phone is registered, or no message came.");

  /**
   * @param {string} user the claim `sub`
   * @param {import("./socket.js").OpsSocket} socket
   */
  constructor(user, socket) {
    this.#socket = socket;
    this.#topic = `ops:user:${user}`;
    this.title = `User ${user}`;
    this.#alertsTopic = `ops:user_alerts:${user}`;
    this.topics = [this.#topic, this.#alertsTopic];
    this.#button = el("button", {
      class: "danger", type: "button", dataset: { testid: "disconnect-user" }, onclick: () => this.#disconnect(user),
    }, "Disconnect all");
    this.element = el("div", { class: "view" },
      el("p", { class: "crumb" }, el("a", { href: "#/connections" }, "Connections")),
      el("div", { class: "head" }, el("h2", { class: "subject" }, `User ${user}`), this.#button),
      el("section", { class: "card" }, el("h2", {}, "Connections"), this.#table.element),
      this.#alerts.element);
  }

  take(topic, event, payload) {
    if (event !== "state") return;
    if (topic === this.#alertsTopic) this.#alerts.take(payload);
    else this.#table.show(payload.sockets);
  }

  async #disconnect(user) {
    const isSure = await confirmed({
      title: `Disconnect ${user}?`,
      text: "All sockets of this user, on all hubs of the cluster, are closed with code 1012. Clients come back by themselves as long as their token is good.",
      action: "Disconnect all",
    });
    if (!isSure) return;
    try {
      const { closed, incomplete } = await this.#socket.ask(this.#topic, "disconnect_user", { user });
      const silent = incomplete.length ? ` No answer from ${incomplete.join(", ")}: do it again.` : "";
      tell(`${closed === 1 ? "1 connection is" : `${closed} connections are`} disconnected.${silent}`, { bad: silent !== "" });
    } catch (error) {
      tell(`Nobody was disconnected: ${error.message}.`, { bad: true });
    }
  }
}
