import { composer } from "./composer.js";
import { avatar, enumerate } from "./dom.js";
import { el } from "./element.js";
import { MessageList } from "./message-list.js";

/**
 * What a conversation is called for one of its members.
 * @param {import("./api.js").Conversation} conversation
 * @param {string} myId
 * @returns {{title: string, person: {id: string, name: string, color: string}|null}} person: the other one, if direct
 */
export function describe(conversation, myId) {
  const others = conversation.participants.filter(({ id }) => id !== myId);
  if (conversation.kind === "direct" && others.length === 1) return { title: others[0].name, person: others[0] };
  return { title: conversation.title ?? enumerate(others.map(({ name }) => name)), person: null };
}

/** The open conversation: who is there, the messages, who is typing, the composer. */
export class ConversationView {
  #conversation;
  /** What the notice is about; the first that is not null is shown. */
  #news = { database: null, problem: null };
  #presence = el("p", { class: "presence", dataset: { testid: "presence" } });
  #avatar = el("span", { class: "slot" });
  #typing = el("p", {
    class: "typing", "aria-live": "polite", dataset: { testid: "typing", state: "idle", users: "" },
  });
  #notice = el("p", { class: "notice", role: "alert", dataset: { testid: "notice" } });

  /** @param {import("./conversation.js").Conversation} conversation */
  constructor(conversation) {
    this.#conversation = conversation;
    const { title } = describe(conversation.info, conversation.me.id);
    const list = new MessageList(conversation);
    conversation.on("messages", () => list.schedule());
    conversation.on("typing", () => this.#showTyping());
    conversation.on("problem", (problem) => this.#notify({ problem })); 
    this.composer = composer({
      label: `Message to ${title}`,
      onSend: (body) => conversation.send(body),
      onKeystroke: (hasText) => conversation.keystroke(hasText),
      onLeave: () => conversation.stopTyping(),
    });
    this.element = el("div", { class: "conversation", dataset: { testid: "conversation", id: conversation.info.id } },
      el("header", { class: "conversation-head" },
        this.#avatar, el("div", { class: "who" }, el("h2", {}, title), this.#presence)),
      this.#notice, list.element, this.#typing, this.composer.element);
    this.showOnline({ online: new Set(), lastSeen: new Map(), isOnlineKnown: null });
    list.schedule();
  }

  /**
   * @param {{online: Set<string>, lastSeen: Map<string, string>, isOnlineKnown: boolean|null}} inbox `online`: ids of
   *   everybody who is online anywhere; `lastSeen`: when the others were, by id
   */
  showOnline({ online, lastSeen, isOnlineKnown }) {
    const { info, me } = this.#conversation;
    const { person } = describe(info, me.id);
    const there = info.participants.filter(({ id }) => id !== me.id && online.has(id));
    Object.assign(this.#presence.dataset, {
      state: !isOnlineKnown ? "unknown" : there.length > 0 ? "online" : "offline", online: there.map(({ id }) => id).join(" "),
    });
    this.#presence.textContent = !isOnlineKnown ? unknownLine(isOnlineKnown)
      : person ? personLine(person, online, lastSeen) : groupLine(info, there);
    this.#avatar.replaceChildren(avatar(person, { online: person !== null && online.has(person.id) }));
  }

  /** @param {boolean} up whether the database answers */
  showDatabase(up) {
    this.#notify({ database: up ? null : "Postgres does not answer. What you write is kept here and sent when it is back." });
  }

  #notify(news) {
    Object.assign(this.#news, news);
    this.#notice.textContent = this.#news.database ?? this.#news.problem ?? "";
  }

  #showTyping() {
    const { typists } = this.#conversation.typing;
    this.#typing.dataset.state = typists.length > 0 ? "active" : "idle";
    this.#typing.dataset.users = typists.map(({ id }) => id).join(" ");
    if (typists.length === 0) return this.#typing.replaceChildren();
    const dots = el("span", { class: "dots", "aria-hidden": "true" }, el("i"), el("i"), el("i"));
    const verb = typists.length === 1 ? "is typing" : "are typing";
    this.#typing.replaceChildren(dots, `${enumerate(typists.map(({ name }) => name))} ${verb}`);
  }
}

/** Whoever is cut off does not know who is there, and says so of itself and not of the others. */
function unknownLine(isOnlineKnown) {
  return isOnlineKnown === null ? "…" : "You are offline";
}

function personLine({ id }, online, lastSeen) {
  if (online.has(id)) return "Online";
  return lastSeen.has(id) ? `Last seen ${moment(lastSeen.get(id))}` : "Offline";
}

function moment(text) {
  const time = new Date(text);
  const isToday = time.toDateString() === new Date().toDateString();
  return time.toLocaleString([], isToday ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" });
}

function groupLine({ participants }, there) {
  if (there.length === 0) return `${participants.length} people, nobody else online`;
  return `${enumerate(there.map(({ name }) => name))} online, ${participants.length} people`;
}
