/**
 * Makes an element. Text goes in as text nodes only, so nothing that somebody wrote can become markup.
 * @param {string} tag
 * @param {Record<string, any>} [attributes] `on…` adds a listener, `dataset` sets data attributes, true/false toggle
 * @param {...(Node|string|null|undefined|false)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child || child === ""));
  return element;
}
