// What all pages share: elements, words for values and times, questions to the API.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; `null` children are left out. */
export function h(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function s(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const SIGNALS = {
  available: "available rate",
  available_reverse: "available rate from the target",
  capacity: "capacity",
  least_round_trip: "least round trip",
  queueing: "queueing delay",
  loss: "loss",
};

const STEPS = {
  "bit/s": [["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3], ["bit/s", 1]],
  ns: [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]],
  octets: [["GB", 1e9], ["MB", 1e6], ["kB", 1e3], ["B", 1]],
};

const digits = (value) => {
  const size = Math.abs(value);
  return size === 0 ? "0" : value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
};

/** A number in the unit that `scale` has, or in its own. */
export function amount(value, unit, scale = value) {
  if (unit === "ppm") return `${digits(value / 1e4)} %`;
  const steps = STEPS[unit];
  if (!steps) return `${value} ${unit ?? ""}`.trim();
  const [name, size] = steps.find(([, size]) => Math.abs(scale) >= size) ?? steps[steps.length - 1];
  return `${digits(value / size)} ${name}`;
}

/** Name and size of the unit in which a scale up to `most` is written. */
export function scale(unit, most) {
  if (unit === "ppm") return ["%", 1e4];
  return (STEPS[unit] ?? [[unit, 1]]).find(([, size], n, all) => most >= size || n === all.length - 1);
}

/** What a value says: "at least" and "inconclusive" included. */
export function said(value, unit) {
  if (!value || value.value === null || value.claim === "inconclusive") return "inconclusive";
  const words = { at_least: "at least ", at_most: "at most ", estimate: "" };
  return words[value.claim] + amount(value.value, unit);
}

/** Its interval, in the value's own unit. */
export function interval(value, unit) {
  if (!value || value.value === null || value.claim !== "estimate" || value.low === null || value.high === null) return "";
  return between(value.low, value.high, unit, value.value);
}

/** A range, its unit named once; nothing where these digits do not show that it is one. */
export function between(low, high, unit, scale) {
  const [from, to] = [amount(low, unit, scale), amount(high, unit, scale)];
  return from === to ? "" : `${from.replace(/ [^ ]+$/, "")} to ${to}`;
}

const two = (number) => String(number).padStart(2, "0");

/** Local time, as short as `range_ms` allows. */
export function time(ms, range_ms = 0) {
  const at = new Date(ms);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}`;
  return range_ms > 90 * 86400e3 ? day : `${day} ${clock}`;
}

const [MINUTE, HOUR, DAY] = [60e3, 3600e3, 86400e3];
const PACES = [1, 2, 5, 10, 15, 30].map((n) => n * MINUTE).concat([1, 2, 3, 6, 12].map((n) => n * HOUR), [1, 2, 7, 14].map((n) => n * DAY));

/** Round local times between two, at most `count` of them, each with its label. */
export function ticks(since, until, count) {
  const pace = PACES.find((pace) => (until - since) / pace <= count);
  const first = new Date(since);
  const months = Math.ceil((until - since) / (30 * DAY) / count);
  const nth = (n) => {
    if (!pace) return new Date(first.getFullYear(), first.getMonth() + n * months, 1).getTime();
    if (pace >= DAY) return new Date(first.getFullYear(), first.getMonth(), first.getDate() + n * (pace / DAY)).getTime();
    return new Date(first.getFullYear(), first.getMonth(), first.getDate()).getTime() + n * pace;
  };
  const found = [];
  for (let n = pace && pace < DAY ? Math.floor((since - nth(0)) / pace) : 0; nth(n) <= until; n++) {
    if (nth(n) >= since) found.push([nth(n), pace ? mark(nth(n), pace) : time(nth(n)).slice(0, 7)]);
  }
  return found;
}

/** Hour and minute; at midnight, or for whole days, month and day. */
const mark = (ms, pace) => (pace >= DAY || time(ms).endsWith("00:00") ? time(ms).slice(5, 10) : time(ms).slice(11));

/** How long, in one or two units. */
export function lasting(ms) {
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 90) return `${seconds < 9.95 ? digits(seconds) : Math.round(seconds)} s`;
  const minutes = seconds / 60;
  if (minutes < 90) return `${Math.round(minutes)} min`;
  const hours = minutes / 60;
  return hours < 48 ? `${Math.round(hours)} h` : `${Math.round(hours / 24)} days`;
}

export const when = (ms) => h("time", { datetime: new Date(ms).toISOString() }, time(ms));

/** Asks the API; a problem becomes an error with its text. */
export async function ask(path, query = {}) {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  const text = new URLSearchParams(pairs).toString();
  for (let tries = 0; ; tries++) {
    const response = await fetch(`/api/v1/${path}${text ? `?${text}` : ""}`, { headers: { accept: "application/json" } });
    // A page of many targets asks for more than 20 answers in a second.
    if (response.status !== 429 || tries > 8) return read(response);
    await new Promise((done) => setTimeout(done, 500 + 250 * tries));
  }
}

/** Sends an order. */
export async function post(path, body) {
  const headers = { "content-type": "application/json" };
  return read(await fetch(`/api/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function read(response) {
  if (response.ok) return response.status === 204 ? null : response.json();
  const problem = await response.json().catch(() => ({}));
  const error = new Error(problem.detail ?? `the server answered ${response.status}`);
  error.status = response.status;
  throw error;
}

/** A table with a caption; columns are `[title, row => cell, numeric]`, the first is the row's head. */
export function table(caption, columns, rows) {
  const cell = ([, of, numeric], row, first) =>
    h(first ? "th" : "td", { class: numeric && "n", scope: first && "row" }, of(row) ?? "");
  return h("div", { class: "wide-table", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, columns.map(([title, , numeric]) => h("th", { scope: "col", class: numeric && "n" }, title)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((column, n) => cell(column, row, n === 0)))))));
}

/** A table that opens on demand, and is made then. */
export function folded(title, make) {
  const details = h("details", {}, h("summary", {}, title));
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(make());
  });
  return details;
}

/** The cause of an event or incident, unless its text says it already. */
export const causeOf = ({ text, cause }) => (cause && text.includes(cause) ? "" : `Cause: ${cause ?? "not known yet"}. `);

/** Events or incidents as a list. */
export function timeline(rows) {
  return h("ul", { class: "timeline" }, rows.map((row) => {
    const at = row.at_ms ?? row.began_ms;
    const width = row.at_high_ms ? 1000 * Math.ceil((row.at_high_ms - row.at_low_ms) / 2000) : 0;
    const ended = row.began_ms === undefined ? "" : row.ended_ms ? `, for ${lasting(row.ended_ms - row.began_ms)}` : ", not over";
    return h("li", { class: row.began_ms !== undefined && !row.ended_ms && "open" },
      h("time", { datetime: new Date(at).toISOString() }, time(at), width ? ` (± ${lasting(width)})` : "", ended),
      h("p", {}, row.text),
      causeOf(row) && row.cause ? h("p", { class: "soft" }, causeOf(row)) : null);
  }));
}

export const link = (target) => `/target/${encodeURIComponent(target)}`;

/** A colour of the style. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** What is drawn for its width and the theme: elements of the page, and what draws them. */
const drawings = new Map();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const [, draw] of drawings) draw(true); });

/** Calls `draw` now, and when the width or the theme changes; for the last time when the element is gone. */
export function redraw(element, draw) {
  let width = 0;
  const look = (always) => {
    if (!always && Math.abs(element.clientWidth - width) < 2) return;
    width = element.clientWidth;
    draw();
  };
  drawings.set(element, look);
  const observer = new ResizeObserver(() => {
    if (!element.isConnected) {
      observer.disconnect();
      drawings.delete(element);
    }
    // Drawing changes heights, which must not be part of this very observation.
    requestAnimationFrame(() => look(false));
  });
  observer.observe(element);
}

/**
 * Puts `parts` in the place of what `main` holds. What a person did stays: opened tables, the focus,
 * how far everything is scrolled. A part that was there before is not touched.
 */
export function refill(main, parts) {
  const focus = main.contains(document.activeElement) ? document.activeElement : null;
  const before = marked(main);
  const kept = new Map([...before].map(([key, one]) => [key, { open: one.open, focused: one === focus, left: one.scrollLeft, top: one.scrollTop }]));
  const [x, y] = [scrollX, scrollY];
  for (const old of [...main.childNodes]) if (!parts.includes(old)) old.remove();
  let next = main.firstChild;
  for (const part of parts) {
    if (part === next) next = next.nextSibling;
    else main.insertBefore(part, next);
  }
  // Tables that are opened hold what was scrolled, so once more.
  for (const [key, one] of marked(main)) {
    if (!kept.get(key)?.open || one.open) continue;
    one.open = true;
    one.dispatchEvent(new Event("toggle"));
  }
  for (const [, draw] of drawings) draw(false);
  for (const [key, one] of marked(main)) {
    const was = kept.get(key);
    if (!was || before.get(key) === one) continue;
    [one.scrollLeft, one.scrollTop] = [was.left, was.top];
    if (was.focused) one.focus({ preventScroll: true });
  }
  scrollTo(x, y);
}

/** What can be opened, have the focus or be scrolled, by its heading, its kind and its number among those. */
function marked(main) {
  const found = new Map();
  for (const one of main.querySelectorAll("a, button, input, select, textarea, details, summary, [tabindex]")) {
    const heading = one.closest("section, li.card")?.querySelector("h2 a, h2");
    const kind = [heading?.firstChild?.textContent, one.tagName, one.className, one.getAttribute("href"), one.getAttribute("name")].join(" ");
    let number = 0;
    while (found.has(`${kind} ${number}`)) number++;
    found.set(`${kind} ${number}`, one);
  }
  return found;
}

/** The value in the middle. */
export const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
