const plain = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });

/** The text for a missing value. */
export const NOTHING = "–";

const missing = (value) => value === null || value === undefined || Number.isNaN(value);

/** 12, 1,234, 56.7 k, 8.9 M: short enough for an axis. */
export function count(value) {
  if (missing(value)) return NOTHING;
  if (Math.abs(value) >= 1e9) return `${fine.format(value / 1e9)} G`;
  if (Math.abs(value) >= 1e6) return `${fine.format(value / 1e6)} M`;
  if (Math.abs(value) >= 1e4) return `${fine.format(value / 1e3)} k`;
  return value < 10 && value % 1 ? fine.format(value) : plain.format(value);
}

/** All digits. */
export function exact(value) {
  return missing(value) ? NOTHING : plain.format(value);
}

export function bytes(value) {
  if (missing(value)) return NOTHING;
  for (const [size, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (Math.abs(value) >= size) return `${fine.format(value / size)} ${unit}`;
  }
  return `${plain.format(value)} B`;
}

export const rate = (value) => (missing(value) ? NOTHING : `${count(value)}/s`);
export const byteRate = (value) => (missing(value) ? NOTHING : `${bytes(value)}/s`);
export const percent = (value) => (missing(value) ? NOTHING : `${fine.format(value * 100)} %`);

export function milliseconds(value) {
  if (missing(value)) return NOTHING;
  return value >= 1000 ? `${fine.format(value / 1000)} s` : `${fine.format(value)} ms`;
}

/** 42 s, 3 min 5 s, 2 h 10 min, 4 d 3 h. */
export function duration(seconds) {
  if (missing(seconds)) return NOTHING;
  const whole = Math.max(0, Math.floor(seconds));
  const parts = [[86_400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  let at = parts.findIndex(([size]) => whole >= size);
  if (at < 0) at = 3;
  const [size, unit] = parts[at];
  const rest = parts[at + 1] && Math.floor((whole % size) / parts[at + 1][0]);
  return `${Math.floor(whole / size)} ${unit}${rest ? ` ${rest} ${parts[at + 1][1]}` : ""}`;
}

const two = (value) => String(value).padStart(2, "0");

/** @param {number} at milliseconds since 1970 */
export function clock(at, { fraction = false } = {}) {
  const time = new Date(at);
  const text = `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
  return fraction ? `${text}.${String(time.getMilliseconds()).padStart(3, "0")}` : text;
}

/** The same with the date. */
export function moment(at) {
  const time = new Date(at);
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${clock(at)}`;
}
