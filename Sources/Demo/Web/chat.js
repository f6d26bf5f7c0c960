import { describe } from "./conversation-view.js";
import { el } from "./element.js";
import { Pane } from "./pane.js";
import { offerPushes } from "./push.js";
import { Session } from "./session.js";

/**
 * The page: two panes, or one with `?user=ada` (for two windows, or two machines).
 * `?left=…&right=…` chooses the people of the two panes.
 */
async function start() {
  const session = new Session();
  const panes = document.querySelector("#panes");
  try {
    await session.load();
  } catch (error) {
    // The hub may still be starting: say so, and try until it is there.
    panes.replaceChildren(el("p", { class: "empty", role: "alert" }, `${error.message}. Trying again.`));
    setTimeout(start, 2_000);
    return;
  }
  const query = new URLSearchParams(location.search);
  const alone = session.named(query.get("user"));
  const left = alone ?? session.named(query.get("left")) ?? session.users[0];
  const right = session.named(query.get("right")) ?? session.users.find((user) => user !== left);
  const first = new Pane(session, { index: 0, user: left, prefer: right.id });
  const shown = alone ? [first] : [first, new Pane(session, { index: 1, user: right, prefer: left.id })];
  panes.classList.toggle("alone", shown.length === 1);
  panes.replaceChildren(...shown.map((pane) => pane.element));
  linkOperator(session.operatorPort);
  offerPushes(session, left);
  first.on("open", (conversation) => showCommand(session, conversation));
}

/** The operator's page of this hub has a port of its own. */
function linkOperator(port) {
  for (const link of document.querySelectorAll(".operator")) {
    link.hidden = port === undefined;
    if (port !== undefined) link.href = `http://${location.hostname}:${port}/`;
  }
}

/** The command that writes into the first pane's conversation, as somebody else, from outside of all this. */
function showCommand(session, { info, me }) {
  const author = info.participants.find(({ id }) => id !== me.id) ?? me;
  const values = `'${info.id}', '${author.id}', 'Hello from psql'`;
  const sql = `insert into messages (conversation_id, sender_id, body) values (${values})`;
  const command = document.querySelector("#psql");
  command.textContent = `${session.psql} -c "${sql}"`;
  const { title, person } = describe(info, me.id);
  const where = person ? `to ${me.name}` : `into “${title}”`;
  document.querySelector("#psql-what").textContent =
    `Insert a message from ${author.name} ${where} with psql, and it appears above as soon as it is committed:`;
  const copy = document.querySelector("#copy");
  copy.onclick = async () => {
    // The clipboard is closed to pages on plain http from another machine; then select it, for Ctrl-C.
    const copied = await navigator.clipboard?.writeText(command.textContent).then(() => true, () => false);
    if (!copied) getSelection().selectAllChildren(command);
    copy.textContent = copied ? "Copied" : "Selected";
    setTimeout(() => (copy.textContent = "Copy"), 1_500);
  };
}

start();
