/** Text for people: characters that hide or reorder text made visible, numbers, sizes, durations and times. */

const HIDDEN = [
  "\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f", // control characters but tabs and line breaks
  "\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069", // marks that change the direction of writing
  "\\u00ad\\u180e\\u200b-\\u200d\\u2028\\u2029\\u2060-\\u2065\\u206a-\\u206f\\ufeff", // of no width, and separators
  "\\u115f\\u1160\\u3164\\uffa0", // fillers, which look like spaces
  "\\ufe00-\\ufe0f\\ufff9-\\ufffc\\ufffe\\uffff", // variation selectors, annotations, and what is no character
];
const HALF = "[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]";
const TAG = "\\udb40[\\udc00-\\udfff]";
const ANY = `[${HIDDEN.join("")}]|${HALF}|${TAG}`;
const INVISIBLE = new RegExp(ANY, "g");
const HAS_INVISIBLE = new RegExp(ANY);

/** Whether *text* may have a character that hides or reorders text. */
export function isHiding(text) {
  return HAS_INVISIBLE.test(text);
}

const JOINERS = new Set(["\u200d", "\ufe0f"]);

/** Return the code point of a character as it is written in standards: U+202E. */
function codePoint(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}

/** Whether an invisible character joins two emoji, where it does no harm. */
function joinsEmoji(text, at, found) {
  return JOINERS.has(found) && /\p{Extended_Pictographic}\ufe0f?$/u.test(text.slice(Math.max(0, at - 3), at));
}

/** Split *text* into parts: strings to show as they are, and `{code}` for characters that must be made visible. */
export function visibleParts(text) {
  const parts = [];
  let at = 0;
  for (const found of text.matchAll(INVISIBLE)) {
    if (joinsEmoji(text, found.index, found[0])) continue;
    if (found.index > at) parts.push(text.slice(at, found.index));
    parts.push({ code: codePoint(found[0]) });
    at = found.index + found[0].length;
  }
  if (at < text.length) parts.push(text.slice(at));
  return parts;
}

/** Return *text* with every invisible character as ⟨U+202E⟩: for attributes, which have no markup. */
export function visibleText(text) {
  return visibleParts(text)
    .map((each) => (typeof each === "string" ? each : `⟨${each.code}⟩`))
    .join("");
}

/** A remark as a sentence: with a capital letter and a full stop. */
export function sentence(text) {
  const end = /[.?!:…]$/.test(text) ? "" : ".";
  return text === "" ? "" : text[0].toUpperCase() + text.slice(1) + end;
}

const NUMBERS = new Intl.NumberFormat("en");

/** 12345 as 12,345. */
export function number(value) {
  return NUMBERS.format(value);
}

/** "1 message", "2 messages". */
export function counted(value, noun, plural = `${noun}s`) {
  return `${number(value)} ${value === 1 ? noun : plural}`;
}

/** Three significant digits at most, without trailing zeros. */
function short(value) {
  return value >= 100 ? NUMBERS.format(Math.round(value)) : String(Number(value.toPrecision(3)));
}

function scaled(value, units) {
  const [factor, unit] = units.findLast(([least]) => value >= least) ?? units[0];
  return `${short(value / factor)} ${unit}`;
}

const SIZES = [
  [1, "B"],
  [1024, "KiB"],
  [1024 ** 2, "MiB"],
  [1024 ** 3, "GiB"],
];

/** A number of bytes: "17.3 KiB". */
export function bytes(value) {
  return value < 1 ? "0 B" : scaled(value, SIZES);
}

const DURATIONS = [
  [1, "µs"],
  [1e3, "ms"],
  [1e6, "s"],
];
const LONG_DURATIONS = [
  [86_400e6, "d", 3600e6, "h"],
  [3600e6, "h", 60e6, "min"],
  [60e6, "min", 1e6, "s"],
];

/** A duration, given in microseconds: "12.4 ms", "7 min 41 s". */
export function duration(microseconds) {
  const long = LONG_DURATIONS.find(([least, , part]) => Math.round(microseconds / part) * part >= least);
  if (long === undefined) return microseconds < 1 ? "0 ms" : scaled(microseconds, DURATIONS);
  const [unit, name, part, partName] = long;
  const parts = Math.round(microseconds / part);
  const rest = parts % (unit / part);
  return `${number(Math.floor((parts * part) / unit))} ${name}${rest ? ` ${rest} ${partName}` : ""}`;
}

/** A duration in milliseconds; a dash if it is unknown. */
export function took(milliseconds) {
  return Number.isFinite(milliseconds ?? NaN) ? duration(milliseconds * 1000) : "–";
}

const HOUR = 3600;

/** The time since a moment, both in seconds: "12 s ago". */
export function ago(then, now = Date.now() / 1000) {
  const seconds = Math.max(0, now - then);
  if (seconds < 2) return "now";
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < HOUR) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 48 * HOUR) return `${Math.round(seconds / HOUR)} h ago`;
  return `${counted(Math.round(seconds / (24 * HOUR)), "day")} ago`;
}

function padded(value, digits = 2) {
  return String(value).padStart(digits, "0");
}

/** The local time of day: "02:03:14", with milliseconds if they are wanted. */
export function timeOfDay(seconds, isFine = true) {
  const date = new Date(seconds * 1000);
  const text = `${padded(date.getHours())}:${padded(date.getMinutes())}:${padded(date.getSeconds())}`;
  return isFine ? `${text}.${padded(date.getMilliseconds(), 3)}` : text;
}

/** The local date: "2026-07-24". */
export function dayOf(seconds) {
  const date = new Date(seconds * 1000);
  return `${date.getFullYear()}-${padded(date.getMonth() + 1)}-${padded(date.getDate())}`;
}

/** A local date and time: "2026-07-24 02:03:14". */
export function dateAndTime(seconds, isFine = false) {
  return `${dayOf(seconds)} ${timeOfDay(seconds, isFine)}`;
}
