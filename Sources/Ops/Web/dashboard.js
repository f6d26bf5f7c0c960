import { admission, socketAddress, takeToken } from "./access.js";
import { Message } from "./alerts.js";
import { Channel } from "./channel.js";
import { Channels } from "./channels.js";
import { Configuration } from "./configuration.js";
import { Connection } from "./connection.js";
import { setText } from "./dom.js";
import { el } from "./element.js";
import { Log } from "./log.js";
import { Overview } from "./overview.js";
import { OpsSocket } from "./socket.js";
import { Connections } from "./sockets.js";
import { Store } from "./store.js";
import { Stream } from "./stream.js";
import { Streams } from "./streams.js";
import { User } from "./user.js";

const main = document.getElementById("main");
const line = document.getElementById("line");
const ready = document.getElementById("ready");
const trouble = document.getElementById("trouble");

takeToken();
await admission(main);

const store = new Store(showStore);
const socket = new OpsSocket(socketAddress(), showLine);
let view = null;
let leave = [];

socket.join("ops:overview", (event, payload) => store.take(event, payload));
addEventListener("hashchange", open);
open();
showLine(socket.state);

/** Opens the view that the address names, and joins its topics. */
function open() {
  for (const part of leave) part();
  view = route(location.hash);
  leave = (view.topics ?? []).map((topic) => socket.join(topic, (event, payload) => view.take(topic, event, payload)));
  main.replaceChildren(view.element);
  const section = location.hash.split("/")[1] ?? "";
  const tab = {
    channel: "channels", connection: "connections", message: "connections", stream: "streams", user: "connections",
  }[section] ?? section;
  for (const anchor of document.querySelectorAll("#nav a")) {
    if (anchor.getAttribute("href") === `#/${tab}`) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
  }
  scrollTo(0, 0);
  view.refresh?.(store);
  showTitle();
}

function route(hash) {
  const [, name = "", ...rest] = hash.split("/");
  const argument = decode(rest.join("/"));
  switch (name) {
    case "": return new Overview(store);
    case "channels": return new Channels();
    case "connections": return new Connections();
    case "streams": return new Streams();
    case "log": return new Log(socket);
    case "configuration": return new Configuration();
    case "channel": return new Channel(argument);
    case "connection": return new Connection(argument, socket);
    case "message": return new Message(argument);
    case "stream": return new Stream(argument, socket);
    case "user": return new User(argument, socket);
    default: return { title: "Nothing here", element: el("p", { class: "empty" }, "There is no such page.") };
  }
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function showStore() {
  view?.refresh?.(store);
  setText(document.getElementById("node"), store.node ? `${store.node} · ${store.version}` : "");
  ready.dataset.state = store.problem ? "bad" : "good";
  setText(ready, store.problem ? "Not ready" : "Ready");
  setText(trouble, store.problem ? `Not ready: ${store.problem}` : "");
  showPills();
  showTitle();
}

/** Shows the hub's state while the page receives it, otherwise the reason why it does not. */
function showPills() {
  const hears = socket.state === "live" && store.figures !== null;
  ready.hidden = !hears;
  line.hidden = hears;
  trouble.hidden = !hears || !store.problem;
}

function showTitle() {
  const trouble = socket.state === "live" ? (store.problem ? "! " : "") : "… ";
  const title = `${trouble}${view.title} · ${store.node || "Roost"}`;
  if (document.title !== title) document.title = title;
}

function showLine(state) {
  line.dataset.state = state;
  document.body.dataset.line = state;
  setText(line, {
    connecting: "Connecting", live: "Connected", stale: "No news from the hub", waiting: "No connection to the hub",
  }[state]);
  showPills();
  if (view) showTitle();
}
