import { el } from "./element.js";

/** The same for SVG, where all attributes are text. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Changes a text only if it differs, so that a selection in it stays. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** A link to one of the page's views. */
export function link(path, text, attributes = {}) {
  return el("a", { href: path, ...attributes }, text);
}

export const paths = {
  channel: (topic) => `#/channel/${encodeURIComponent(topic)}`,
  connection: (id) => `#/connection/${encodeURIComponent(id)}`,
  message: (key) => `#/message/${encodeURIComponent(key)}`,
  stream: (name) => `#/stream/${encodeURIComponent(name)}`,
  user: (user) => `#/user/${encodeURIComponent(user)}`,
};
