// All targets: what is free now, what is wrong, what happened.

import { amount, ask, causeOf, folded, h, interval, lasting, link, median, refill, s, said, table, time, timeline } from "./kit.js";

export async function show(main) {
  const render = async () => {
    const [all, events] = await Promise.all([ask("targets"), ask("events", { since: "7d", limit: 12 })]);
    const day = await Promise.all(all.targets.map((target) =>
      ask("series", { target: target.name, signal: "available", since: "24h", points: 120 })));
    refill(main, page(all, day, events.events));
  };
  await render();
  return render;
}

function page(all, day, events) {
  const cards = all.targets.map((target, n) => ({ target, day: day[n], state: state(target, all.at_ms) }));
  // Whoever looks for trouble finds it first.
  cards.sort((one, next) => URGENT.indexOf(one.state[1]) - URGENT.indexOf(next.state[1]));
  const title = heading(cards.map((card) => card.state[1]));
  const trouble = cards.filter((card) => card.state[0] === "bad").length;
  document.title = `${trouble ? `▲ ${trouble} - ` : ""}narrows watch`;
  return [
    h("h1", {}, title),
    ...Object.entries(all.faults).map(([part, text]) => h("p", { class: "note bad" }, h("strong", {}, part === "start" ? "Starting: " : `Fault (${part}): `), text)),
    all.targets.length === 0 && h("p", {}, "No target is followed yet. Add a [[target]] to watch.toml, or name hosts: narrows watch HOST."),
    cards.length > 0 && h("ul", { class: "cards" }, cards.map(({ target, day, state }) => card(all, target, day, state))),
    h("h2", {}, "What happened in 7 days"),
    events.length ? timeline(events) : h("p", { class: "soft" }, "No change was found."),
  ].filter(Boolean);
}

const URGENT = ["▲ incident", "▲ alert", "✕ silent", "◐ round trip only", "◌ starting", "◔ learning", "● as usual"];

/** How many targets there are, and how many of them are in which state. */
function heading(words) {
  const count = `${words.length || "No"} target${words.length === 1 ? "" : "s"}`;
  const states = URGENT.slice(0, -1).map((word) => [words.filter((one) => one === word).length, word.slice(2)]).filter(([n]) => n > 0);
  if (states.length) return `${count}: ${states.map(([n, word]) => `${n} ${word}`).join(", ")}`;
  return words.length ? `${count}, ${words.length === 1 ? "" : "all "}as usual` : count;
}

/** Mark and word for a target's state: never a colour alone. */
export function state(target, now) {
  const stale = (value) => !value || age(value, now);
  if (target.incident) return ["bad", "▲ incident"];
  if (target.alerts.some((alert) => alert.state === "firing")) return ["bad", "▲ alert"];
  if (!stale(target.newest.available)) return target.learning ? ["mark", "◔ learning"] : ["good", "● as usual"];
  if (now - target.added_ms < 600e3 && !target.newest.available) return ["mark", "◌ starting"];
  return stale(target.newest.least_round_trip) ? ["bad", "✕ silent"] : ["mark", "◐ round trip only"];
}

/** How much is missing until it is known what is usual. */
export function learning(target) {
  return target.learning && target.newest.available
    ? `learning what is usual: ${target.learning.values} of ${target.learning.of} values` : "";
}

/** How long ago a value was measured, if that is too long; else nothing. */
export function age(value, now) {
  return value && now - value.at_ms > value.stale_after_ms ? lasting(now - value.at_ms) : "";
}

function card(all, target, day, [kind, word]) {
  const { available, capacity, least_round_trip, queueing, loss } = target.newest;
  const old = age(available, all.at_ms);
  const fact = (name, value) => value && [h("dt", {}, name), h("dd", {}, said(value, value.unit))];
  const why = target.incident
    ? [`${target.incident.text.replace(/\.$/, "")}. `, h("span", { class: "soft" }, `${causeOf(target.incident)}For ${lasting(all.at_ms - target.incident.began_ms)}.`)]
    : target.alerts.map((alert) => `${alert.rule}: ${(alert.detail ?? alert.state).replace(/\.$/, "")}. `);
  const of = capacity && available ? `of ${said(capacity, capacity.unit)}` : "";
  const free = available && interval(available, available.unit);
  return h("li", { class: `card ${kind === "bad" ? "bad" : ""}` },
    h("div", {},
      h("h2", {}, h("a", { href: link(target.name) }, target.name), h("span", { class: `badge ${kind}` }, word)),
      available
        ? [h("p", { class: "big" }, old ? "was " : "", said(available, available.unit), " ", h("small", {}, `free ${of}`)),
          h("p", { class: "soft small" }, [free && `90 % interval ${free}`, old && `${old} ago`, available.claim === "at_least" && "a lower bound", learning(target)].filter(Boolean).join("; "))]
        : h("p", { class: "soft" }, word === "◌ starting" ? "The first available rate comes within minutes; pulses and route are first." : "No available rate was measured.")),
    spark(target, day, capacity, all.at_ms),
    h("dl", { class: "facts small" }, fact("round trip", least_round_trip), fact("queueing, p95", queueing), fact("loss", loss)),
    why.length ? h("p", { class: "why" }, ...why) : null);
}

/** The last day as a small picture: capacity, band, value, the open incident. */
function spark(target, day, capacity, now) {
  const points = day.points.filter((point) => point.value !== null);
  if (points.length < 2) return h("div", {});
  const top = Math.max(...points.map((point) => point.high ?? point.value), capacity?.value ?? 0);
  const since = Math.max(day.since_ms, Math.min(target.added_ms, points[0].at_ms));
  const at = (ms) => Math.max(0, ((ms - since) / (day.until_ms - since)) * 300);
  const y = (value) => 58 - (value / top) * 54;
  const step = median(points.slice(1).map((point, n) => point.at_ms - points[n].at_ms)) * 3;
  const parts = [];
  points.forEach((point, n) => {
    if (n === 0 || point.at_ms - points[n - 1].at_ms > step) parts.push([]);
    parts[parts.length - 1].push(point);
  });
  const along = (part, of) => part.map((point) => `${at(point.at_ms).toFixed(1)},${y(of(point)).toFixed(1)}`);
  const band = (part) => [...along(part, (p) => p.high ?? p.value), ...along([...part].reverse(), (p) => p.low ?? p.value)].join(" ");
  const values = points.map((point) => point.value);
  const range = `${amount(Math.min(...values), "bit/s")} to ${amount(Math.max(...values), "bit/s")}`;
  const lasted = lasting(now - since);
  const began = target.incident && at(target.incident.began_ms);
  return h("div", {},
    s("svg", { class: "spark", viewBox: "0 0 300 60", preserveAspectRatio: "none", role: "img", "aria-label": `available rate of ${target.name} in ${lasted}: ${range}${capacity ? `, of ${said(capacity, "bit/s")} capacity` : ""}` },
      target.incident && s("rect", { class: "hot", x: began, y: 0, width: Math.max(2, 300 - began), height: 60 }),
      s("path", { class: "floor", d: "M0 59H300" }),
      capacity && s("path", { class: "roof", d: `M0 ${y(capacity.value).toFixed(1)}H300` }),
      parts.map((part) => s("polygon", { class: "band", points: band(part) })),
      parts.map((part) => s("polyline", { class: "line", points: along(part, (p) => p.value).join(" ") }))),
    h("p", { class: "soft small" }, `${lasted}: ${range}`),
    folded(`Table of ${points.length} values`, () => table(`Available rate of ${target.name}; 90 % intervals`, [
      ["time", (point) => time(point.at_ms)],
      ["value", (point) => said(point, day.unit), true],
      ["interval", (point) => interval(point, day.unit), true],
    ], [...points].reverse())));
}
