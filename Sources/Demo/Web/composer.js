import { questionOf } from "./assistant.js";
import { icon } from "./dom.js";
import { el } from "./element.js";

/**
 * The line one writes in: Enter sends, Shift+Enter breaks the line. The star asks the assistant what is written, or what
 * this is about.
 * @param {{label: string, onSend: (body: string) => void, onKeystroke: (hasText: boolean) => void,
 *   onLeave: () => void}} hooks
 * @returns {{element: HTMLElement, focus: () => void}}
 */
export function composer({ label, onSend, onKeystroke, onLeave }) {
  const field = el("textarea", {
    rows: "1", placeholder: "Write a message", "aria-label": label, autocomplete: "off", enterkeyhint: "send",
    maxlength: "8000", dataset: { testid: "composer" },
    oninput: () => {
      resize();
      onKeystroke(field.value.trim() !== "");
    },
    onblur: onLeave,
    onkeydown: (event) => {
      // Enter also ends the composition of a Chinese or Japanese word; that one is not ours.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      send();
    },
  });
  const button = el("button", {
    class: "send", type: "submit", disabled: true, "aria-label": "Send", dataset: { testid: "send-button" },
  }, icon("send"));

  const ask = el("button", {
    class: "ask", type: "button", "aria-label": "Ask the assistant", title: "Ask the assistant",
    dataset: { testid: "ask-button" }, onclick: () => {
      send(questionOf(field.value));
      field.focus();
    },
  }, icon("star"));

  function resize() {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
    button.disabled = field.value.trim() === "";
  }

  function send(text = field.value) {
    const body = text.trim();
    if (body === "") return;
    field.value = "";
    resize();
    onSend(body);
  }

  const element = el("form", {
    class: "composer",
    onsubmit: (event) => {
      event.preventDefault();
      send();
      field.focus();
    },
  }, ask, field, button);
  return { element, focus: () => field.focus() };
}
