import { ASSISTANT } from "./assistant.js";
import { Emitter } from "./emitter.js";
import { MessageStore } from "./message-store.js";
import { Replies } from "./replies.js";
import { TypingAnnouncer, TypingSet } from "./typing.js";

const MOST_HELD = 400;
const KEPT = 200;
const FIRST = 50;
/** Of the first messages: several readers each. */
const FIRST_RECEIPTS = 400;

/**
 * The conversation that is open in a pane: its channel, its messages, and who is typing. No DOM.
 *
 * Events: `messages` (something in `store` changed), `typing`, `state`, `problem` (text or null).
 */
export class Conversation extends Emitter {
  store = new MessageStore();
  typing = new TypingSet();
  more = false;
  loading = true;
  latency = null;
  #context;
  #channel;
  #announcer;
  #replies;
  /** The newest id at the time when nothing was missing yet; undefined: nothing is held. */
  #mark;
  /** The lowest id among the rows that the channel begins with. */
  #oldest = Infinity;
  #complete = false;
  #closed = new AbortController();

  /**
   * @param {import("./api.js").Conversation} info
   * @param {{me: import("./session.js").User, client: import("./realtime.js").RealtimeClient,
   *   api: import("./api.js").Api, outbox: import("./outbox.js").Outbox,
   *   reporter: import("./receipts.js").ReceiptReporter}} context
   */
  constructor(info, context) {
    super();
    this.info = info;
    this.me = context.me;
    this.#context = context;
    this.typing.on("change", () => this.emit("typing"));
    this.#announcer = new TypingAnnouncer((typing) =>
      this.#channel.broadcast("typing", { typing, user_id: this.me.id, name: this.me.name }));
    this.#replies = new Replies({
      client: context.client, conversationId: info.id, store: this.store,
      onChange: () => this.#changedReply(), onProblem: (problem) => this.emit("problem", problem),
    });
  }

  open() {
    const filter = `conversation_id=eq.${this.info.id}`;
    // First the rows that are there, then what changes: nothing falls in between (docs/rows.md).
    const rows = [
      { table: "messages", filter, order: "id.desc", limit: FIRST },
      { table: "read_receipts", filter, order: "message_id.desc", limit: FIRST_RECEIPTS },
    ];
    this.#channel = this.#context.client
      .channel(`realtime:conversation:${this.info.id}`, { config: () => ({ rows }) })
      .onChange({ event: "INSERT", table: "messages", filter }, (change, isSnapshot) =>
        isSnapshot ? this.#began(change) : this.#arrived(change))
      .onChange({ event: "UPDATE", table: "messages", filter }, (change) => this.#changed(change))
      .onChange({ event: "*", table: "read_receipts", filter }, (change) => this.#receipt(change))
      .onBroadcast("typing", (payload) => payload.user_id !== this.me.id && this.typing.hear(payload))
      .onBroadcast("typing_state", ({ typing }) =>
        this.typing.replace(typing.filter(({ user_id: id }) => id !== this.me.id)));
    this.#channel.on("state", (state) => this.#channelState(state));
    this.#channel.on("live", () => this.#live());
    this.#channel.on("system", (news) => this.#told(news));
    this.#context.client.join(this.#channel);

    for (const item of this.#context.outbox.itemsOf(this.info.id)) this.putDraft(item);
    document.addEventListener("visibilitychange", () => this.#read(), { signal: this.#closed.signal });
  }

  close() {
    this.#announcer.stop();
    this.#closed.abort();
    this.#channel.leave();
    this.#replies.close();
    this.typing.clear();
  }

  /** Whether the next commit will appear here by itself. */
  get live() {
    return this.#channel.live;
  }

  /** @returns {string[]} ids of everybody else */
  get others() {
    return this.info.participants.map(({ id }) => id).filter((id) => id !== this.me.id);
  }

  /** @param {string} body */
  send(body) {
    this.#announcer.stop();
    this.#context.outbox.add({ conversationId: this.info.id, body });
  }

  /** @param {string} localId */
  retry(localId) {
    this.#context.outbox.retry(localId);
  }

  /** @param {string} localId of the question whose reply is to stop here, for everybody */
  stopReply(localId) {
    this.#replies.stop(localId);
  }

  /** @param {boolean} hasText */
  keystroke(hasText) {
    this.#announcer.keystroke(hasText);
  }

  stopTyping() {
    this.#announcer.stop();
  }

  /** @param {import("./outbox.js").Item} item of this conversation, written here and not confirmed yet */
  putDraft({ localId, body, createdAt, stage, reason }) {
    this.store.putDraft({ localId, body, createdAt, stage, reason, senderId: this.me.id });
    this.emit("messages");
  }

  /** @param {import("./api.js").MessageRow} row the server's answer to a send; it may come before or after the push */
  putSent(row) {
    this.store.put(row);
    this.#replies.look();
    this.emit("messages");
  }

  async loadEarlier() {
    const { messages, receipts, more } = await this.#context.api.messages(this.info.id, { before: this.store.oldestId });
    for (const message of messages) this.store.put(message);
    for (const receipt of receipts) this.store.putReceipt(receipt);
    this.more = more;
    this.emit("messages");
  }

  /** For a list that nobody has scrolled back: keeps a busy conversation from growing for ever. */
  trim() {
    const stored = this.store.entries.filter((entry) => entry.id !== null);
    if (stored.length <= MOST_HELD) return;
    this.store.dropBefore(stored.at(-KEPT).id);
    this.more = true;
  }

  #live() {
    this.emit("problem", null);
    this.emit("state");
  }

  #channelState(state) {
    if (state !== "joined") this.typing.clear();
    if (state === "errored" && this.#complete) {
      this.#mark = this.store.newestId;
      this.#complete = false;
    }
    this.emit("state");
  }

  #told({ extension, status, message, rows }) {
    if (status === "error") this.emit("problem", message);
    else if (extension === "rows" && message === "Rows begin") this.#oldest = Infinity;
    else if (extension === "rows") this.#filled(rows[0]);
  }

  #began({ record }) {
    this.store.put(record);
    this.#oldest = Math.min(this.#oldest, record.id);
  }

  /**
   * The newest rows are there. If they do not reach back to what was held, what lies before them is dropped ("Show earlier" brings it
   * back): a list may be short, but it must never have a hole.
   */
  #filled({ next, error }) {
    this.loading = false;
    if (!error) {
      if (!next) this.more = false;
      else if (this.#mark === undefined || this.#mark < this.#oldest) {
        this.store.dropBefore(this.#oldest);
        this.more = true;
      }
      this.#complete = true;
      this.#replies.look();
      this.#read();
    }
    this.emit("messages");
  }

  #arrived({ record, commit_timestamp: committed }) {
    const { entry, isNew } = this.store.put(record);
    const latency = Date.now() - Date.parse(committed);
    // Another machine's clock, or a message that waited for us: not a latency worth showing.
    if (this.live && latency >= 0 && latency < 10_000) this.latency = entry.latency ??= latency;
    this.typing.end(record.sender_id);
    this.#replies.look();
    // A reply that was watched is not new, but only now a message that can be read.
    if (isNew || record.sender_id === ASSISTANT.id) this.#read();
    this.emit("messages");
    this.emit("state");
  }

  #changed({ record }) {
    this.store.put(record);
    this.emit("messages");
  }

  #changedReply() {
    this.#replies.look();
    this.emit("messages");
  }

  #receipt({ record }) {
    if (!record) return;
    this.store.putReceipt(record);
    this.emit("messages");
  }

  #read() {
    if (document.visibilityState !== "visible" || this.#closed.signal.aborted) return;
    const newest = this.store.entries.findLast((entry) => entry.id !== null && entry.senderId !== this.me.id);
    if (newest) this.#context.reporter.report(this.info.id, newest.id, "read");
  }
}
