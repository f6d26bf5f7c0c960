import { Emitter } from "./emitter.js";

/**
 * A user's conversations and everybody's presence: one channel for the whole pane. It asks for the messages table
 * without any filter, so what arrives is what row level security lets this user see.
 *
 * Events: `change`, `problem` (text).
 */
export class Inbox extends Emitter {
  /** @type {import("./api.js").Conversation[]} */
  conversations = [];
  online = new Set();
  /** Whether `online` is true now; null before it was for the first time. */
  isOnlineKnown = null;
  /** @type {Map<string, string>} when whoever is away was there last, as ISO texts by id */
  lastSeen = new Map();
  openId = null;
  #context;
  #channel;
  #counted = new Set();
  #reloads = 0;
  /** Messages that came while an answer was under way, which may be from before them; null while none is. */
  #arrived = null;

  /**
   * @param {{me: import("./session.js").User, client: import("./realtime.js").RealtimeClient,
   *   api: import("./api.js").Api, reporter: import("./receipts.js").ReceiptReporter}} context
   */
  constructor(context) {
    super();
    this.#context = context;
  }

  start() {
    const { client, me } = this.#context;
    this.#channel = client
      .channel("realtime:lobby", { presenceKey: me.id })
      .onChange({ event: "INSERT", table: "messages" }, ({ record }) => this.#message(record))
      .onChange({ event: "INSERT", table: "conversation_participants", filter: `user_id=eq.${me.id}` }, () =>
        this.#reload())
      .onChange({ event: "UPDATE", table: "users" }, ({ record }) => this.#seen([record]))
      .track({ name: me.name, online_at: new Date().toISOString() });
    this.#channel.on("live", () => this.#reload());
    this.#channel.on("system", ({ status, message }) => status === "error" && this.emit("problem", message));
    this.#channel.on("presence", (keys) => this.#presence(keys, true));
    // While we are away we do not know who is there; claiming the last known would be a lie.
    this.#channel.on("state", (state) => state === "errored" && this.#presence(new Set(), false));
    client.join(this.#channel);
    this.#reload();
  }

  /** @param {string} id the conversation whose messages count as seen when they arrive */
  open(id) {
    this.openId = id;
    const conversation = this.#find(id);
    if (conversation) conversation.unread = 0;
    this.emit("change");
  }

  #seen(users) {
    for (const { id, last_seen: time } of users) if (time) this.lastSeen.set(id, time);
    this.emit("change");
  }

  #presence(keys, isKnown) {
    this.online = keys;
    this.isOnlineKnown = isKnown || (this.isOnlineKnown === null ? null : false);
    this.emit("change");
  }

  async #reload() {
    const turn = (this.#reloads += 1);
    this.#arrived = [];
    const conversations = await this.#context.api.conversations().catch(() => null);
    if (turn !== this.#reloads) return; // a later answer is newer than this one
    const arrived = this.#arrived ?? [];
    this.#arrived = null;
    if (!conversations) {
      // Without a connection the next `live` tries again; with one, nobody else would.
      setTimeout(() => this.#channel.live && turn === this.#reloads && this.#reload(), 2_000);
      return;
    }
    this.#counted.clear();
    this.conversations = conversations;
    this.#seen(conversations.flatMap(({ participants }) => participants));
    for (const { id, undelivered, last_message: last } of conversations) {
      if (undelivered > 0) this.#context.reporter.report(id, last.id, "delivered");
      if (id === this.openId) this.#find(id).unread = 0;
    }
    for (const row of arrived) {
      if (row.id > (this.#find(row.conversation_id)?.last_message?.id ?? 0)) this.#message(row);
    }
    this.emit("change");
  }

  #message(row) {
    const conversation = this.#find(row.conversation_id);
    if (!conversation) return void this.#reload();
    this.#arrived?.push(row);
    // That it was delivered is the hub's to say (receipts.statement); what is loaded by HTTP it does not know.
    if (row.sender_id !== this.#context.me.id) {
      if (conversation.id !== this.openId && !this.#counted.has(row.id)) conversation.unread += 1;
      this.#counted.add(row.id);
    }
    if (row.id >= (conversation.last_message?.id ?? 0)) {
      conversation.last_message = row;
      this.conversations = [conversation, ...this.conversations.filter((other) => other !== conversation)];
    }
    this.emit("change");
  }

  #find(id) {
    return this.conversations.find((conversation) => conversation.id === id);
  }
}
