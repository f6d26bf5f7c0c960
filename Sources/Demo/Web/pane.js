import { Api } from "./api.js";
import { ConnectionControl } from "./connection.js";
import { ConversationList } from "./conversation-list.js";
import { ConversationView } from "./conversation-view.js";
import { Conversation } from "./conversation.js";
import { avatar } from "./dom.js";
import { DatabaseWatch } from "./database.js";
import { el } from "./element.js";
import { Emitter } from "./emitter.js";
import { Inbox } from "./inbox.js";
import { Outbox } from "./outbox.js";
import { RealtimeClient } from "./realtime.js";
import { ReceiptReporter } from "./receipts.js";

/**
 * One user at one device: an own socket, an own token, nothing shared with the pane beside it.
 *
 * Events: `open` (the conversation that is now shown).
 */
export class Pane extends Emitter {
  conversation = null;
  #session;
  #index;
  #prefer;
  #me;
  #running = null;
  #ended = new AbortController();
  #view = null;

  /**
   * @param {import("./session.js").Session} session
   * @param {{index: number, user: import("./session.js").User, prefer?: string}} options `prefer`: id of a person whose
   *   direct conversation is opened first, if there is one
   */
  constructor(session, { index, user, prefer }) {
    super();
    this.#session = session;
    this.#index = index;
    this.#prefer = prefer;
    this.element = el("section", { class: "pane", dataset: { testid: `pane-${index}` } });
    this.#start(user);
  }

  get me() {
    return this.#me;
  }

  #start(me) {
    this.#me = me;
    this.#ended = new AbortController();
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const client = new RealtimeClient({
      url: `${scheme}://${location.host}/realtime/v1/websocket`,
      token: (renew) => this.#session.token(me.id, renew),
    });
    const database = new DatabaseWatch();
    const api = new Api(this.#session, me.id, {
      isCut: () => client.isDropped, onStatus: (status) => database.heard(status !== 503),
    });
    const reporter = new ReceiptReporter(api);
    const inbox = new Inbox({ me, client, api, reporter });
    const outbox = new Outbox({
      send: ({ conversationId, body, localId }) =>
        api.send({ conversation_id: conversationId, body, local_id: localId }),
      onSent: (row) => this.conversation?.info.id === row.conversation_id && this.conversation.putSent(row),
      onChange: (item) => this.conversation?.info.id === item.conversationId && this.conversation.putDraft(item),
    });
    const connection = new ConnectionControl(client, database);
    const context = { me, client, api, database, reporter, inbox, outbox, connection };
    this.#running = context;
    this.#build(context);

    const catchUp = () => {
      if (client.state !== "open" || !database.up) return;
      outbox.hurry();
      reporter.flush();
    };
    client.on("state", catchUp);
    database.on("change", catchUp);
    database.on("change", () => this.#view?.showDatabase(database.up));
    inbox.on("change", () => this.#running === context && this.#inboxChanged());
    inbox.on("problem", (problem) => this.conversation?.emit("problem", problem));
    const tellState = () => (client.appState = document.hidden ? "background" : "active");
    document.addEventListener("visibilitychange", tellState, { signal: this.#ended.signal });
    tellState();
    // A page that is closed or loaded again is hidden first; it is back in a moment or for good gone.
    addEventListener("pagehide", () => {
      this.#ended.abort();
      client.appState = "active";
    }, { signal: this.#ended.signal });
    client.connect();
    inbox.start();
    database.start(api, client);
  }

  #stop() {
    this.#ended.abort();
    this.conversation?.close();
    this.conversation = null;
    this.#view = null;
    this.#running.connection.stop();
    this.#running.database.stop();
    this.#running.client.disconnect();
  }

  #build({ me, inbox, connection }) {
    const picker = el("select", {
      "aria-label": "Who this pane is", dataset: { testid: "user-select" },
      onchange: () => {
        this.#stop();
        this.#start(this.#session.user(picker.value));
      },
    }, ...this.#session.users.map(({ id, name }) => el("option", { value: id, selected: id === me.id }, name)));
    this.list = new ConversationList(inbox, me, (id) => this.#open(id, { focus: true }));
    this.stage = el("div", { class: "stage" }, el("p", { class: "empty" }, "Loading conversations"));
    this.element.dataset.userId = me.id;
    this.element.setAttribute("aria-label", `${me.name}’s chat`);
    this.element.replaceChildren(
      el("header", { class: "pane-head" }, el("label", { class: "picker" }, avatar(me), picker), connection.element),
      el("div", { class: "pane-body" }, this.list.element, this.stage));
  }

  #inboxChanged() {
    const { inbox } = this.#running;
    if (!inbox.openId && inbox.conversations.length > 0) this.#open(this.#first(inbox.conversations).id);
    if (inbox.conversations.length === 0) this.stage.firstChild.textContent = "No conversations yet";
    this.list.render();
    this.#view?.showOnline(inbox);
  }

  #first(conversations) {
    const withPreferred = ({ kind, participants }) =>
      kind === "direct" && participants.some(({ id }) => id === this.#prefer && id !== this.#me.id);
    return conversations.find(withPreferred) ?? conversations[0];
  }

  #open(id, { focus = false } = {}) {
    const { inbox, connection, database } = this.#running;
    if (this.conversation?.info.id === id) return;
    this.conversation?.close();
    const info = inbox.conversations.find((conversation) => conversation.id === id);
    this.conversation = new Conversation(info, this.#running);
    this.#view = new ConversationView(this.conversation);
    this.#view.showDatabase(database.up);
    this.stage.replaceChildren(this.#view.element);
    this.conversation.open();
    connection.follow(this.conversation);
    inbox.open(id);
    if (focus) this.#view.composer.focus();
    this.emit("open", this.conversation);
  }
}
