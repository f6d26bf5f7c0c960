import { el } from "./element.js";

const SVG = "http://www.w3.org/2000/svg";

/** Outlines on a 24 × 24 grid, drawn with the text's colour. */
const ICONS = {
  clock: ["M12 7v5l3 2", "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Z"],
  check: ["m5 12.5 4.5 4.5L19 7.5"],
  checks: ["m1.5 12.5 4.5 4.5 9.5-9.5", "m11 16 1.2 1L21.5 7.5"],
  alert: ["M12 7.5v5.5", "M12 16.5v.2", "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18Z"],
  send: ["M5 12h13", "m12.5 6 6 6-6 6"],
  unplug: ["M4 4l16 16", "M8.5 15.5a5 5 0 0 1 5.5-1", "M5 12a10 10 0 0 1 4-2.6", "M13 9a10 10 0 0 1 6 3", "M12 19v.1"],
  plug: ["M8.500 15.5a5 5 0 0 1 7 0", "M5 12a10 10 0 0 1 14 0", "M12 19v.1"],
  group: ["M9 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6Z", "M3.5 19a5.5 5.5 0 0 1 11 0", "M16 5.4a3 3 0 0 1 0 5.2",
    "M17.5 14.2A5.5 5.5 0 0 1 20.5 19"],
  star: ["M12 3.5 14 10l6.5 2-6.5 2-2 6.5-2-6.5L3.5 12l6.5-2Z"],
  stop: ["M7 7h10v10H7Z"],
  down: ["M12 5v13", "m6 12.5 6 6 6-6"],
};

/**
 * @param {keyof typeof ICONS} name
 * @param {string} [label] what it means; without one it is decoration
 * @returns {SVGElement}
 */
export function icon(name, label) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", `icon icon-${name}`);
  if (label) {
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
  } else {
    svg.setAttribute("aria-hidden", "true");
  }
  for (const d of ICONS[name]) {
    const path = document.createElementNS(SVG, "path");
    path.setAttribute("d", d);
    svg.append(path);
  }
  return svg;
}

/**
 * A coloured circle with an initial or a symbol. Decoration: the name always stands beside it.
 * @param {{name: string, color: string, symbol?: keyof typeof ICONS}|null} person null for a group
 * @param {{online?: boolean}} [state]
 */
export function avatar(person, { online = false } = {}) {
  const symbol = person ? person.symbol : "group";
  const circle = el("span", { class: person ? "avatar" : "avatar avatar-group", "aria-hidden": "true" },
    symbol ? icon(symbol) : person.name.slice(0, 1));
  if (person) circle.style.setProperty("--avatar", person.color);
  if (online) circle.append(el("span", { class: "dot" }));
  return circle;
}

/**
 * @param {string[]} names
 * @returns {string} "Ada", "Ada and Grace", "Ada, Grace and Linus"
 */
export function enumerate(names) {
  return new Intl.ListFormat("en", { type: "conjunction", style: "long" }).format(names).replace(", and ", " and ");
}
