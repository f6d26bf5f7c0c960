import { ASSISTANT } from "./assistant.js";
import { avatar, icon } from "./dom.js";
import { el } from "./element.js";

const TOGETHER = 5 * 60_000;
const NEAR_END = 80;
/** Drawing again waits this long at most: a conversation with 500 messages a second is drawn 60 times. */
const FRAME = 16;
const CLOCK = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat([], { weekday: "long", day: "numeric", month: "long" });
const TICKS = {
  pending: ["clock", "Sending"],
  failed: ["alert", "Not sent"],
  sent: ["check", "Sent"],
  delivered: ["checks", "Delivered"],
  read: ["checks", "Read"],
};
/** How a reply stands that is not a row, in words. */
const STANDS = {
  streaming: "answering",
  stalled: "waiting for the assistant",
  stopped: "stopped",
  broken: "the assistant broke off",
};

/**
 * The bubbles of one conversation. Each message keeps its element from draft to read, so that nothing flickers and a
 * screen reader hears it once.
 */
export class MessageList {
  #conversation;
  #nodes = new Map();
  #list = el("ol", { class: "bubbles" });
  #scheduled = false;
  #drawnAt = -FRAME;
  #shown = new WeakMap();

  /** @param {import("./conversation.js").Conversation} conversation */
  constructor(conversation) {
    this.#conversation = conversation;
    this.earlier = el("button", {
      class: "quiet earlier", type: "button", hidden: true, onclick: () => this.#earlier(),
    }, "Show earlier messages");
    this.newest = el("button", { class: "newest", type: "button", hidden: true, onclick: () => this.toEnd() },
      icon("down"), "New messages");
    this.scroller = el("div", {
      class: "messages", role: "log", "aria-live": "polite", "aria-label": "Messages", "aria-busy": "true",
      tabindex: "0", dataset: { testid: "message-list", state: "loading" },
      onscroll: () => this.#atEnd() && (this.newest.hidden = true),
    }, this.earlier, this.#list);
    this.element = el("div", { class: "messages-frame" }, this.scroller, this.newest);
    // A pane that changes its size (a phone's keyboard) keeps showing the end.
    let stuck = true;
    this.scroller.addEventListener("scroll", () => (stuck = this.#atEnd()));
    new ResizeObserver(() => stuck && this.toEnd()).observe(this.scroller);
  }

  /** Draws a first change at once and those that follow closely together. No animation frame: a hidden tab has none. */
  schedule() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const draw = () => {
      this.#scheduled = false;
      this.#render();
      this.#drawnAt = performance.now();
    };
    const wait = this.#drawnAt + FRAME - performance.now();
    if (wait > 0) setTimeout(draw, wait);
    else queueMicrotask(draw);
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.newest.hidden = true;
  }

  #render() {
    const conversation = this.#conversation;
    const follow = this.#atEnd() || this.scroller.dataset.state === "loading";
    if (follow) conversation.trim();
    const last = this.#list.lastElementChild;
    const wanted = this.#wanted(conversation.store.entries);
    for (const [key, node] of this.#nodes) {
      if (wanted.has(key)) continue;
      node.remove();
      this.#nodes.delete(key);
    }
    let position = this.#list.firstElementChild;
    for (const node of wanted.values()) {
      if (node === position) position = position.nextElementSibling;
      else this.#list.insertBefore(node, position);
    }
    this.earlier.hidden = !conversation.more;
    if (!conversation.loading) {
      this.scroller.dataset.state = "ready";
      this.scroller.setAttribute("aria-busy", "false");
    }
    const end = this.#list.lastElementChild;
    if (follow || end?.dataset.status === "pending") this.toEnd();
    else if (end !== last) this.newest.hidden = false;
  }

  /** The elements in order, made or brought up to date: messages and a line for each new day. */
  #wanted(entries) {
    const wanted = new Map();
    const { others } = this.#conversation;
    let before = null;
    let lastDay = null;
    for (const [index, entry] of entries.entries()) {
      const day = new Date(entry.createdAt).toDateString();
      const newDay = day !== lastDay;
      lastDay = day;
      if (newDay) wanted.set(day, this.#node(day, () => dayLine(entry.createdAt)));
      const node = this.#node(entry.key, () => this.#bubble(entry));
      const after = entries[index + 1];
      node.classList.toggle("first", newDay || !together(before, entry));
      node.classList.toggle("last", !after || !together(entry, after));
      this.#update(node, entry, others);
      wanted.set(entry.key, node);
      before = entry;
    }
    return wanted;
  }

  #node(key, make) {
    if (!this.#nodes.has(key)) this.#nodes.set(key, make());
    return this.#nodes.get(key);
  }

  #bubble(entry) {
    const own = entry.senderId === this.#conversation.me.id;
    const direct = this.#conversation.info.kind === "direct";
    const isReply = entry.senderId === ASSISTANT.id;
    const sender = [ASSISTANT, ...this.#conversation.info.participants].find(({ id }) => id === entry.senderId)
      ?? { name: "Someone", color: "#64748b" };
    return el("li", {
      class: own ? "message own" : "message",
      dataset: { testid: "message", senderId: entry.senderId, ...(entry.localId && { localId: entry.localId }) },
    },
      own ? null : avatar(sender),
      el("div", { class: "bubble" },
        // Between two people the side says it; a screen reader still needs the name.
        el("span", { class: own || (direct && !isReply) ? "visually-hidden" : "sender" }, own ? "You" : sender.name),
        el("p", { class: "body", dir: "auto" }),
        el("span", { class: "meta" }, el("span", { class: "edited" }), el("time", {}), el("span", { class: "tick" })),
        el("p", { class: "why", dataset: { testid: "why" } })));
  }

  #update(node, entry, others) {
    const own = entry.senderId === this.#conversation.me.id;
    const theirs = entry.stage === "stored" ? "received" : entry.stage;
    const status = own ? this.#conversation.store.status(entry, others) : theirs;
    // A changed message is a new object; most have not changed.
    if (this.#shown.get(node) === entry && node.dataset.status === status) return;
    this.#shown.set(node, entry);
    if (entry.id !== null) node.dataset.messageId = entry.id;
    if (entry.latency !== undefined) node.dataset.latencyMs = entry.latency;
    const body = node.querySelector(".body");
    if (body.textContent !== entry.body) body.textContent = entry.body;
    node.querySelector(".edited").textContent = STANDS[status] ?? (entry.editedAt ? "edited" : "");
    const time = node.querySelector("time");
    time.textContent = CLOCK.format(new Date(entry.createdAt));
    time.dateTime = entry.createdAt;
    if (entry.latency !== undefined) time.title = `Here ${entry.latency} ms after the commit`;
    node.querySelector(".why").textContent = why(entry);
    if (node.dataset.status === status) return;
    node.dataset.status = status;
    if (own) node.querySelector(".tick").replaceChildren(icon(...TICKS[status]));
    this.#offerStop(node, entry, status);
    node.querySelector(".retry")?.remove();
    if (status === "failed") {
      node.querySelector(".bubble").append(el("button", {
        class: "retry", type: "button", onclick: () => this.#conversation.retry(entry.localId),
      }, "Try again"));
    }
  }

  /** While a reply grows, a button stops it, and a screen reader waits: it reads the text once, when it is whole. */
  #offerStop(node, entry, status) {
    const grows = status === "streaming" || status === "stalled";
    if (grows) node.setAttribute("aria-busy", "true");
    else node.removeAttribute("aria-busy");
    const button = node.querySelector(".stop");
    if (grows === (button !== null)) return;
    if (grows) {
      node.querySelector(".bubble").append(el("button", {
        class: "quiet stop", type: "button", dataset: { testid: "stop-button" },
        onclick: () => this.#conversation.stopReply(entry.localId),
      }, icon("stop"), "Stop"));
    } else {
      // Whoever pressed it by a key is not thrown back to the top of the page.
      if (button === document.activeElement) this.scroller.focus();
      button.remove();
    }
  }

  async #earlier() {
    // Hold the view on what was being read: the list grows upwards.
    const { scrollHeight, scrollTop } = this.scroller;
    await this.#conversation.loadEarlier().catch(() => {});
    this.#render();
    this.scroller.scrollTop = scrollTop + this.scroller.scrollHeight - scrollHeight;
  }

  #atEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < NEAR_END;
  }
}

/** Why a message of one's own is still here, and what happens next. */
function why({ stage, reason }) {
  if (stage === "failed") return `Not sent: ${reason}.`;
  return stage === "pending" && reason ? `Not sent yet: ${reason}. Trying again.` : "";
}

function together(a, b) {
  return a && a.senderId === b.senderId && Math.abs(Date.parse(b.createdAt) - Date.parse(a.createdAt)) < TOGETHER;
}

function dayLine(date) {
  const day = new Date(date);
  const today = new Date().toDateString() === day.toDateString();
  return el("li", { class: "day" }, el("span", {}, today ? "Today" : DAY.format(day)));
}
