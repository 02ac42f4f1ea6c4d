// All targets: what is free now, what is wrong, what happened.

import { amount, ask, h, interval, lasting, link, s, said, timeline } from "./kit.js";

export async function show(main) {
  const render = async () => {
    const [all, events] = await Promise.all([ask("targets"), ask("events", { since: "7d", limit: 12 })]);
    const day = await Promise.all(all.targets.map((target) =>
      ask("series", { target: target.name, signal: "available", since: "24h", points: 120 })));
    main.replaceChildren(...page(all, day, events.events));
  };
  await render();
  return render;
}

function page(all, day, events) {
  const open = all.targets.filter((target) => target.incident).length;
  const firing = all.targets.reduce((count, target) => count + target.alerts.length, 0);
  const count = (number, one) => `${number === 0 ? "no" : number} ${one}${number === 1 ? "" : "s"}`;
  return [
    h("h1", {}, `${count(all.targets.length, "target")}, ${count(open, "open incident")}, ${count(firing, "alert")}`),
    ...Object.entries(all.faults).map(([part, text]) => h("p", { class: "note bad" }, h("strong", {}, `Fault (${part}): `), text)),
    all.targets.length === 0 && h("p", {}, "No target is followed yet. Add a [[target]] to watch.toml, or name hosts: narrows watch HOST."),
    h("ul", { class: "cards" }, all.targets.map((target, n) => card(all, target, day[n]))),
    h("h2", {}, "What happened in 7 days"),
    events.length ? timeline(events) : h("p", { class: "soft" }, "Nothing changed."),
  ].filter(Boolean);
}

/** Mark and word for a target's state: never a colour alone. */
export function state(target, now) {
  const trip = target.newest.least_round_trip;
  const stale = (value) => !value || now - value.at_ms > target.stale_after_ms;
  if (target.incident || target.alerts.some((alert) => alert.state === "firing")) return ["bad", "▲ incident"];
  if (stale(trip) && stale(target.newest.available)) return ["bad", "✕ silent"];
  if (stale(target.newest.available)) return ["mark", "◐ round trip only"];
  return ["good", "● as usual"];
}

function card(all, target, day) {
  const { available, capacity, least_round_trip, queueing, loss } = target.newest;
  const [kind, word] = state(target, all.at_ms);
  const old = available && all.at_ms - available.at_ms > target.stale_after_ms;
  const fact = (name, value) => value && [h("dt", {}, name), h("dd", {}, said(value, value.unit))];
  const why = target.incident
    ? [`${target.incident.text}. `, h("span", { class: "soft" }, `Cause: ${target.incident.cause ?? "not known yet"}; for ${lasting(all.at_ms - target.incident.began_ms)}.`)]
    : target.alerts.map((alert) => `${alert.rule}: ${alert.detail ?? alert.state}. `);
  return h("li", { class: `card ${kind === "bad" ? "bad" : ""}` },
    h("div", {},
      h("h2", {}, h("a", { href: link(target.name) }, target.name), h("span", { class: `badge ${kind}` }, word)),
      available
        ? h("p", { class: "big" }, old ? "was " : "", said(available, available.unit), " ",
          h("small", {}, interval(available, available.unit) || "available", old ? `, ${lasting(all.at_ms - available.at_ms)} ago` : ""))
        : h("p", { class: "big" }, h("small", {}, "no available rate measured")),
      capacity && available && h("p", { class: "soft small" }, `available, of ${said(capacity, capacity.unit)} capacity`)),
    spark(target.name, day, capacity),
    h("dl", { class: "facts small" }, fact("round trip", least_round_trip), fact("queueing, p95", queueing), fact("loss", loss)),
    why.length ? h("p", { class: "why" }, ...why) : null);
}

/** The last day as a small picture with its band. */
function spark(name, day, capacity) {
  const points = day.points.filter((point) => point.value !== null);
  if (points.length < 2) return h("p", { class: "soft small" }, "Too few values in 24 h for a picture.");
  const top = Math.max(...points.map((point) => point.high ?? point.value), capacity?.value ?? 0);
  const x = (point) => ((point.at_ms - day.since_ms) / (day.until_ms - day.since_ms)) * 300;
  const y = (value) => 54 - (value / top) * 50;
  const step = median(points.slice(1).map((point, n) => point.at_ms - points[n].at_ms)) * 3;
  const parts = [];
  points.forEach((point, n) => {
    if (n === 0 || point.at_ms - points[n - 1].at_ms > step) parts.push([]);
    parts[parts.length - 1].push(point);
  });
  const along = (part, of) => part.map((point) => `${x(point).toFixed(1)},${y(of(point)).toFixed(1)}`);
  const band = (part) => [...along(part, (p) => p.high ?? p.value), ...along([...part].reverse(), (p) => p.low ?? p.value)].join(" ");
  const values = points.map((point) => point.value);
  const text = `available rate of ${name} in 24 h: ${amount(Math.min(...values), "bit/s")} to ${amount(Math.max(...values), "bit/s")}`;
  return h("div", {},
    s("svg", { class: "spark", viewBox: "0 0 300 56", preserveAspectRatio: "none", role: "img", "aria-label": text },
      parts.map((part) => s("polygon", { class: "band", points: band(part) })),
      parts.map((part) => s("polyline", { class: "line", points: along(part, (p) => p.value).join(" ") }))),
    h("p", { class: "soft small" }, `24 h: ${amount(Math.min(...values), "bit/s")} to ${amount(Math.max(...values), "bit/s")}`));
}

export const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
