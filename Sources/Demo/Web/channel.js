import { Backoff } from "./backoff.js";
import { Emitter } from "./emitter.js";
import { Presence } from "./presence.js";

const JOIN_TIMEOUT = 10_000;

/**
 * One topic on one client. It joins by itself whenever the socket is open, until `leave()`.
 *
 * States: `closed` (not asked for, or left), `joining`, `joined`, `errored` (will join again).
 * `live` is narrower than `joined`: row changes that are committed from now on will arrive.
 *
 * Events: `state`, `live`, `presence` (Set of keys), `system` (payload).
 * Made by {@link RealtimeClient.channel}; methods with a leading underscore are for the client.
 */
export class Channel extends Emitter {
  state = "closed";
  live = false;
  joinRef = null;
  presence = new Presence();
  #client;
  #changes = [];
  #broadcasts = new Map();
  #tracked = null;
  #backoff = new Backoff();
  #timer = 0;
  #isPrivate;
  #config;

  constructor(client, topic, { presenceKey, private: isPrivate = false, config = () => ({}) } = {}) {
    super();
    this.#client = client;
    this.topic = topic;
    this.presenceKey = presenceKey;
    this.#isPrivate = isPrivate;
    this.#config = config;
  }

  /**
   * @param {{event: string, table: string, schema?: string, filter?: string}} what
   * @param {(change: {type: string, record?: any, old_record?: any, commit_timestamp: string}, isSnapshot: boolean) => void} handler
   *   `isSnapshot`: a row that was there when the channel joined with `config.rows`
   */
  onChange({ event, table, schema = "public", filter }, handler) {
    this.#changes.push({ params: { event, schema, table, ...(filter && { filter }) }, handler, id: null });
    return this;
  }

  /**
   * @param {string} event
   * @param {(payload: any) => void} handler
   */
  onBroadcast(event, handler) {
    this.#broadcasts.set(event, handler);
    return this;
  }

  /** Announces this client under its presence key, now and after every rejoin. */
  track(payload) {
    this.#tracked = payload;
    if (this.state === "joined") this.#pushPresence();
    return this;
  }

  /** Sends to everyone else on the channel. Not kept while the channel is down: broadcasts are about now. */
  broadcast(event, payload) {
    if (this.state === "joined") this.#client._broadcast(this, event, payload);
  }

  /** @param {string} state of the app, for the hub alone: how long it waits before it tells others that we are gone */
  _tellAppState(state) {
    this.#push("app_state", { type: "app_state", state });
  }

  leave() {
    if (this.state === "joined" || this.state === "joining") this.#push("phx_leave", {});
    this.#client._forget(this);
    this._lost("closed");
  }

  _join() {
    clearTimeout(this.#timer);
    this.joinRef = this.#client._nextRef();
    this.#setState("joining");
    this.#push("phx_join", {
      config: {
        broadcast: { self: false, ack: false },
        presence: { key: this.presenceKey ?? "", enabled: this.presenceKey !== undefined },
        postgres_changes: this.#changes.map((change) => change.params),
        private: this.#isPrivate,
        app_state: this.#client.appState,
        ...this.#config(),
      },
      access_token: this.#client.accessToken,
    }, this.joinRef);
    this.#timer = setTimeout(() => {
      // The hub may still be working on it; without this leave a late answer would find nobody.
      this.#push("phx_leave", {});
      this.#joinAgain();
    }, JOIN_TIMEOUT);
  }

  /** The socket is gone: nothing is to be sent, the client will call `_join` on the next one. */
  _lost(state = "errored") {
    clearTimeout(this.#timer);
    this.live = false;
    this.joinRef = null;
    this.#setState(state);
  }

  _renew(token) {
    if (this.state === "joined") this.#push("access_token", { access_token: token });
  }

  _receive({ joinRef, ref, event, payload }) {
    // A frame for an earlier join of the same topic; fan-out carries no join_ref at all.
    if (joinRef !== null && joinRef !== this.joinRef) return;
    switch (event) {
      case "phx_reply":
        if (ref === this.joinRef) this.#joinReply(payload);
        break;
      case "postgres_changes":
        for (const change of this.#changes) {
          if (payload.ids.includes(change.id)) change.handler(payload.data, payload.snapshot === true);
        }
        break;
      case "broadcast":
        this.#broadcasts.get(payload.event)?.(payload.payload);
        break;
      case "presence_state":
        this.presence.replace(payload);
        this.emit("presence", this.presence.keys);
        break;
      case "presence_diff":
        this.presence.apply(payload);
        this.emit("presence", this.presence.keys);
        break;
      case "system":
        this.emit("system", payload);
        if (payload.extension === "postgres_changes" && payload.status === "ok") this.#goLive();
        break;
      case "phx_error":
      case "phx_close":
        this.#joinAgain();
        break;
    }
  }

  #joinReply({ status, response }) {
    if (status !== "ok") {
      this.emit("system", { status: "error", message: response?.reason ?? "The hub refused to join" });
      this.#joinAgain();
      return;
    }
    clearTimeout(this.#timer);
    this.#backoff.reset();
    // Answers come in the order of the questions.
    this.#changes.forEach((change, index) => (change.id = response.postgres_changes?.[index]?.id ?? null));
    this.#setState("joined");
    if (this.#tracked) this.#pushPresence();
    if (this.#changes.length === 0) this.#goLive();
  }

  #goLive() {
    this.live = true;
    this.emit("live");
  }

  #joinAgain() {
    this._lost();
    this.#timer = setTimeout(() => this.#client.state === "open" && this._join(), this.#backoff.next());
  }

  #pushPresence() {
    this.#push("presence", { type: "presence", event: "track", payload: this.#tracked });
  }

  #push(event, payload, ref = this.#client._nextRef()) {
    this.#client._send({ joinRef: this.joinRef, ref, topic: this.topic, event, payload });
  }

  #setState(state) {
    if (state === this.state) return;
    this.state = state;
    this.emit("state", state);
  }
}
