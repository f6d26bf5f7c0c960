import { Backoff } from "./backoff.js";
import { Channel } from "./channel.js";
import { Emitter } from "./emitter.js";
import { decode, encode, encodeBroadcast } from "./frames.js";

const HEARTBEAT_INTERVAL = 20_000;
const HEARTBEAT_TIMEOUT = 8_000;
const CONNECT_TIMEOUT = 10_000;
const STABLE_AFTER = 10_000;

/**
 * A small client for the Supabase Realtime protocol, version 2.0.0: one WebSocket, many channels, and it comes back.
 *
 * States: `closed` (not started, or stopped), `connecting`, `open`, `waiting` (for the next attempt, at `retryAt`).
 * Events: `state`.
 */
export class RealtimeClient extends Emitter {
  state = "closed";
  retryAt = 0;
  accessToken = "";
  /** The line was cut by `drop` and has not come back: nothing else of this user gets through either. */
  isDropped = false;
  #appState = "active";
  #url;
  #token;
  #socket = null;
  #channels = new Map();
  #backoff = new Backoff();
  #ref = 0;
  #attempt = 0;
  #heartbeatRef = null;
  #timers = { retry: 0, connect: 0, stable: 0, heartbeat: 0, answer: 0 };
  #everOpened = true;

  /**
   * @param {{url: string, token: (renew: boolean) => Promise<string>}} options `token` is asked before every attempt;
   *   `renew` says that the hub refused the last one, which a browser cannot tell from any other failure
   */
  constructor({ url, token }) {
    super();
    this.#url = url;
    this.#token = token;
  }

  connect() {
    if (this.state === "closed" || this.state === "waiting") this.#open();
  }

  /** Leaves every channel and closes for good. */
  disconnect() {
    for (const channel of [...this.#channels.values()]) channel.leave();
    this.#abandon(1000, "bye");
    this.#setState("closed");
  }

  /**
   * Loses the connection as a phone in a tunnel does: no leave, no farewell, and nobody there for `downtime`.
   * @param {number} downtime milliseconds
   */
  drop(downtime) {
    this.isDropped = true;
    this.#lose(downtime);
  }

  get appState() {
    return this.#appState;
  }

  /** @param {"active" | "inactive" | "background"} state */
  set appState(state) {
    if (state === this.#appState) return;
    this.#appState = state;
    // It holds for the socket, so one channel is enough; a join says it, too.
    [...this.#channels.values()].find((channel) => channel.state === "joined")?._tellAppState(state);
  }

  /**
   * @param {string} topic with its `realtime:` prefix
   * @param {{presenceKey?: string, private?: boolean, config?: () => object}} [options] `config`: what each join adds to
   *   its own
   * @returns {Channel} which joins when it is given to {@link join}
   */
  channel(topic, options) {
    return new Channel(this, topic, options);
  }

  /** @param {Channel} channel with all its handlers: what it asks for is fixed by the join */
  join(channel) {
    this.#channels.set(channel.topic, channel);
    if (this.state === "open") channel._join();
  }

  async #open() {
    clearTimeout(this.#timers.retry);
    this.isDropped = false;
    const attempt = (this.#attempt += 1);
    this.#setState("connecting");
    const token = await this.#token(!this.#everOpened).catch(() => null);
    if (attempt !== this.#attempt) return; // dropped or stopped while we waited for the token
    if (token === null) return this.#lose();
    this.accessToken = token;
    this.#everOpened = false;
    const socket = new WebSocket(`${this.#url}?apikey=${encodeURIComponent(this.accessToken)}&vsn=2.0.0`);
    socket.binaryType = "arraybuffer";
    socket.onopen = () => this.#opened();
    socket.onclose = () => this.#lose();
    socket.onmessage = ({ data }) => this.#receive(decode(data));
    this.#socket = socket;
    this.#timers.connect = setTimeout(() => this.#lose(), CONNECT_TIMEOUT);
  }

  #opened() {
    this.#everOpened = true;
    clearTimeout(this.#timers.connect);
    this.#timers.stable = setTimeout(() => this.#backoff.reset(), STABLE_AFTER);
    this.#timers.heartbeat = setInterval(() => this.#beat(), HEARTBEAT_INTERVAL);
    this.#setState("open");
    for (const channel of this.#channels.values()) channel._join();
  }

  #lose(delay = this.#backoff.next()) {
    this.#abandon(3001, "lost");
    for (const channel of this.#channels.values()) channel._lost();
    this.retryAt = Date.now() + delay;
    this.#timers.retry = setTimeout(() => this.#open(), delay);
    this.#setState("waiting");
  }

  /** Turns away from the socket at once: a close handshake with a dead peer would take a minute. */
  #abandon(code, reason) {
    this.#attempt += 1;
    for (const timer of Object.values(this.#timers)) clearTimeout(timer);
    this.#heartbeatRef = null;
    if (!this.#socket) return;
    this.#socket.onopen = this.#socket.onclose = this.#socket.onmessage = null;
    this.#socket.close(code, reason);
    this.#socket = null;
  }

  async #beat() {
    if (this.#heartbeatRef) return;
    this.#heartbeatRef = this._nextRef();
    this._send({ joinRef: null, ref: this.#heartbeatRef, topic: "phoenix", event: "heartbeat", payload: {} });
    this.#timers.answer = setTimeout(() => this.#lose(), HEARTBEAT_TIMEOUT);
    // A long-lived page outlives its token; the heartbeat is the clock that is there anyway.
    const token = await this.#token(false).catch(() => this.accessToken);
    if (token === this.accessToken) return;
    this.accessToken = token;
    for (const channel of this.#channels.values()) channel._renew(token);
  }

  #receive(frame) {
    if (!frame) return;
    if (frame.topic === "phoenix" && frame.ref === this.#heartbeatRef) {
      clearTimeout(this.#timers.answer);
      this.#heartbeatRef = null;
    } else {
      this.#channels.get(frame.topic)?._receive(frame);
    }
  }

  _broadcast({ topic, joinRef }, event, payload) {
    this.#transmit(encodeBroadcast({ joinRef, ref: this._nextRef(), topic, event, payload }));
  }

  _send(frame) {
    this.#transmit(encode(frame));
  }

  _nextRef() {
    return String((this.#ref += 1));
  }

  _forget(channel) {
    if (this.#channels.get(channel.topic) === channel) this.#channels.delete(channel.topic);
  }

  #transmit(data) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data);
  }

  #setState(state) {
    this.state = state;
    this.emit("state", state);
  }
}
