import { describe } from "./conversation-view.js";
import { avatar } from "./dom.js";
import { el } from "./element.js";

/** The conversations of one user; on a narrow pane a row of tabs. */
export class ConversationList {
  #inbox;
  #me;
  #onOpen;
  #list = el("ul", {});

  /**
   * @param {import("./inbox.js").Inbox} inbox
   * @param {import("./session.js").User} me
   * @param {(id: string) => void} onOpen
   */
  constructor(inbox, me, onOpen) {
    this.#inbox = inbox;
    this.#me = me;
    this.#onOpen = onOpen;
    this.element = el("nav", { class: "conversations", "aria-label": "Conversations",
      dataset: { testid: "conversation-list" } }, this.#list);
  }

  render() {
    const focused = this.#list.contains(document.activeElement) && document.activeElement.dataset.conversationId;
    this.#list.replaceChildren(...this.#inbox.conversations.map((conversation) => this.#item(conversation)));
    // The rows are made anew; whoever was on one of them stays there.
    if (focused) this.#list.querySelector(`[data-conversation-id="${focused}"]`)?.focus();
  }

  #item(conversation) {
    const { title, person } = describe(conversation, this.#me.id);
    const { id, last_message: last, unread } = conversation;
    const online = person !== null && this.#inbox.online.has(person.id);
    const button = el("button", {
      type: "button", class: "entry", "aria-current": id === this.#inbox.openId ? "true" : null,
      dataset: { testid: "conversation-item", conversationId: id, unread, online },
      onclick: () => this.#onOpen(id),
    },
      avatar(person, { online }),
      el("span", { class: "lines" },
        el("span", { class: "title" }, title),
        el("span", { class: "preview" }, last ? this.#preview(conversation, last) : "No messages yet")),
      unread > 0 && el("span", { class: "badge" },
        unread > 99 ? "99+" : String(unread), el("span", { class: "visually-hidden" }, " unread")));
    return el("li", {}, button);
  }

  #preview({ kind, participants }, { sender_id: sender, body }) {
    if (sender === this.#me.id) return `You: ${body}`;
    const name = kind === "group" && participants.find(({ id }) => id === sender)?.name;
    return name ? `${name}: ${body}` : body;
  }
}
