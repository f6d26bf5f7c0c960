import { clock } from "./format.js";
import { setText, svg } from "./dom.js";
import { el } from "./element.js";
import { HINTS } from "./hints.js";

/** Seconds that a plot shows. */
const SPAN = 300;
const HEIGHT = 138;
const MARGIN = { left: 8, right: 8, top: 17, bottom: 18 };

/** The possible ends of the axis, times a power of its base. */
const STEPS = [1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40, 50, 60, 80, 100, 150, 200, 300, 400, 500, 600, 800, 1024];

/**
 * Values over the last five minutes, as lines.
 *
 * The legend has the newest values, or those of the second under the pointer; the arrow keys move through the seconds.
 */
export class Plot {
  #series;
  #format;
  #least;
  #base;
  #samples = [];
  #width = 320;
  #cursor = null;
  #values = [];
  #when = el("span", { class: "when" }, "now");
  #grid = svg("g", { class: "grid" });
  #lines = svg("g");
  #mark = svg("line", { class: "cursor", y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom });
  #chart = svg("svg", { class: "chart", height: HEIGHT, tabindex: "0", role: "img" }, this.#grid, this.#lines, this.#mark);

  /**
   * @param {string} title
   * @param {{name: string, pick: (sample: any) => number|null}[]} series
   * @param {{format: (value: number) => string, least?: number, base?: number, testid?: string}} options `least`: the
   *   axis reaches at least this far, so that small values do not look large; `base`: the base of
   *   round numbers, 1024 for bytes
   */
  constructor(title, series, { format, least = 1, base = 10, testid }) {
    this.#series = series;
    this.#format = format;
    this.#least = least;
    this.#base = base;
    const legend = el("ul", { class: "legend" }, ...series.map(({ name }, index) => {
      const value = el("b", { dataset: { testid: testid ? `${testid}-${index}` : "" } });
      this.#values.push(value);
      return el("li", {}, el("i", { class: `key s${index}`, "aria-hidden": "true" }), value, " ", el("span", {}, name));
    }));
    this.element = el("figure", { class: "card plot" },
      el("figcaption", {}, el("h2", { title: HINTS[title] }, title), this.#when), legend, this.#chart);
    this.title = title;
    new ResizeObserver(([entry]) => {
      this.#width = Math.max(160, Math.round(entry.contentRect.width));
      this.#draw();
    }).observe(this.#chart);
    this.#chart.addEventListener("pointermove", (event) => this.#point(event));
    this.#chart.addEventListener("pointerleave", () => this.#moveTo(null));
    this.#chart.addEventListener("blur", () => this.#moveTo(null));
    this.#chart.addEventListener("keydown", (event) => this.#key(event));
  }

  /** @param {any[]} samples oldest first */
  show(samples) {
    this.#samples = samples;
    this.#draw();
  }

  #x(at) {
    const end = this.#samples.at(-1)?.at ?? 0;
    return MARGIN.left + (1 - (end - at) / SPAN) * (this.#width - MARGIN.left - MARGIN.right);
  }

  #draw() {
    const width = this.#width;
    this.#chart.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    const end = this.#samples.at(-1)?.at ?? 0;
    const shown = this.#samples.filter((sample) => sample.at >= end - SPAN);
    const top = this.#ceiling(shown);
    const y = (value) => HEIGHT - MARGIN.bottom - (value / top) * (HEIGHT - MARGIN.top - MARGIN.bottom);
    this.#drawGrid(top, y);
    this.#lines.replaceChildren(...this.#series.flatMap(({ pick }, index) => this.#line(shown, pick, index, y)));
    this.#tell();
  }

  #ceiling(shown) {
    let most = this.#least;
    for (const { pick } of this.#series) for (const sample of shown) most = Math.max(most, pick(sample) ?? 0);
    const unit = this.#base ** Math.floor(Math.log(most) / Math.log(this.#base));
    return unit * STEPS.find((step) => step * unit >= most * 0.999);
  }

  #drawGrid(top, y) {
    const { left, right } = MARGIN;
    const parts = [];
    for (const share of [0, 0.5, 1]) {
      parts.push(svg("line", { x1: left, x2: this.#width - right, y1: y(top * share), y2: y(top * share) }));
      if (share > 0) parts.push(svg("text", { x: left + 2, y: y(top * share) - 3 }, this.#format(top * share)));
    }
    for (const minutes of [4, 3, 2, 1]) {
      const x = left + (1 - (minutes * 60) / SPAN) * (this.#width - left - right);
      parts.push(svg("text", { x, y: HEIGHT - 4, "text-anchor": "middle" }, `−${minutes} min`));
    }
    this.#grid.replaceChildren(...parts);
  }

  /** A second without a value leaves a gap, and one between two gaps is a dot. */
  #line(shown, pick, index, y) {
    let path = "";
    let isDown = false;
    let first = null;
    let last = null;
    for (const sample of shown) {
      const value = pick(sample);
      if (value === null || value === undefined) {
        isDown = false;
        continue;
      }
      const point = `${this.#x(sample.at).toFixed(1)} ${y(value).toFixed(1)}`;
      path += isDown ? `L${point}` : `M${point}l0 0`;
      isDown = true;
      first ??= this.#x(sample.at);
      last = this.#x(sample.at);
    }
    const parts = [svg("path", { class: `line s${index}`, d: path || "M0 0" })];
    const isWhole = !path.slice(1).includes("M");
    if (index === 0 && path && isWhole) {
      parts.unshift(svg("path", { class: "area s0", d: `${path}L${last} ${y(0)}L${first} ${y(0)}Z` }));
    }
    return parts;
  }

  // The second under the pointer

  #point(event) {
    const box = this.#chart.getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
    this.#moveTo((this.#samples.at(-1)?.at ?? 0) - (1 - share) * SPAN);
  }

  #key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30 }[event.key];
    if (event.key === "Escape") this.#moveTo(null);
    if (!step) return;
    event.preventDefault();
    const end = this.#samples.at(-1)?.at ?? 0;
    this.#moveTo(Math.min(end, Math.max(end - SPAN, (this.#cursor ?? end) + step)));
  }

  #moveTo(at) {
    this.#cursor = at;
    this.#tell();
  }

  #tell() {
    const newest = this.#samples.at(-1);
    let sample = newest;
    if (this.#cursor !== null) {
      sample = this.#samples.reduce(
        (best, each) => (Math.abs(each.at - this.#cursor) < Math.abs(best.at - this.#cursor) ? each : best), newest);
    }
    this.#mark.classList.toggle("shown", this.#cursor !== null && Boolean(sample));
    if (!sample) return;
    const x = this.#x(sample.at);
    this.#mark.setAttribute("x1", x);
    this.#mark.setAttribute("x2", x);
    setText(this.#when, sample === newest ? "now" : clock(sample.at * 1000));
    const texts = this.#series.map(({ pick }) => this.#format(pick(sample)));
    texts.forEach((text, index) => setText(this.#values[index], text));
    this.#chart.setAttribute("aria-label",
      `${this.title}: ${this.#series.map(({ name }, index) => `${texts[index]} ${name}`).join(", ")}`);
  }
}
