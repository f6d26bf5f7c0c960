import { el } from "./element.js";

/**
 * Asks for confirmation of an action that others notice.
 * @param {{title: string, text: string, action: string, dismiss?: string, danger?: boolean}} question `dismiss` is the button
 *   that does nothing
 * @returns {Promise<boolean>}
 */
export function confirmed({ title, text, action, dismiss = "Cancel", danger = true }) {
  return new Promise((resolve) => {
    const dialog = el("dialog", { "aria-labelledby": "question", dataset: { testid: "dialog" } },
      el("h2", { id: "question" }, title),
      el("p", {}, text),
      el("form", { method: "dialog", class: "actions" },
        el("button", { value: "", autofocus: true }, dismiss),
        el("button", { value: "yes", class: danger ? "danger" : "primary", dataset: { testid: "confirm" } }, action)));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

let timer = 0;

/** Shows the outcome for a few seconds. */
export function tell(text, { bad = false } = {}) {
  const news = document.getElementById("news");
  news.textContent = text;
  news.classList.toggle("bad", bad);
  news.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(() => (news.hidden = true), 6_000);
}
