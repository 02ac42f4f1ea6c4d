// One target: what was free, what happened, the path; and the page of its paths.

import { amount, ask, causeOf, folded, h, interval, lasting, link, post, refill, said, SIGNALS, time, timeline } from "./kit.js";
import { chart, sum } from "./chart.js";
import { heatmap } from "./heat.js";
import { hops, pipe } from "./pipe.js";
import { age, learning, state } from "./overview.js";

const HOUR = 3600e3;
const RANGES = { "1h": HOUR, "6h": 6 * HOUR, "24h": 24 * HOUR, "7d": 168 * HOUR, "30d": 720 * HOUR, "1y": 8760 * HOUR };

async function find(name) {
  const all = await ask("targets");
  const target = all.targets.find((target) => target.name === name || String(target.id) === name);
  if (!target) throw new Error(`No target is called "${name}".`);
  return [all, target];
}

export async function show(main, name) {
  const asked = new URLSearchParams(location.search).get("range");
  const range = asked in RANGES ? asked : "24h";
  document.title = `${name} - narrows watch`;
  // What stays when the page is drawn anew: what a person looks at in each chart, and what they write.
  const views = new Map();
  const view = (key) => views.get(key) ?? views.set(key, {}).get(key);
  let [shown, asking] = [name, null];
  const render = async () => {
    const [all, target] = await find(name);
    if (asking === null) [shown, asking] = [target.name, orders(target.name)];
    // Before a target was followed nothing is there to see; two minutes are the least that a chart shows.
    const since = Math.max(all.at_ms - RANGES[range], Math.min(target.added_ms, all.at_ms - HOUR / 30));
    const query = { target: target.name, since, until: all.at_ms };
    const series = (signal) => ask("series", { ...query, signal, points: 900 });
    const [available, reverse, capacity, queueing, heat, events, incidents, paths] = await Promise.all([
      series("available"), series("available_reverse"), series("capacity"), series("queueing"),
      ask("heatmap", query), ask("events", query), ask("incidents", query), ask("paths", query),
    ]);
    refill(main, page({ all, target, range, view, asking, available, reverse, capacity, queueing, heat, events: events.events, incidents: incidents.incidents, paths: paths.paths }));
  };
  await render();
  return (kind, data) => (kind === "resync" || (data.target === shown && !(kind === "run" && data.outcome === "running")) ? render() : null);
}

function page(of) {
  const { all, target, range, events, incidents } = of;
  const [kind, word] = state(target, all.at_ms);
  const old = age(target.newest.available, all.at_ms);
  const shown = events.slice(0, 20);
  const open = (point) => openRun(target.name, point, of.available);
  const one = (series, roof, height) => chart({
    title: capital(SIGNALS[series.signal]), series, roof, events: shown, incidents, open, height, sentence: sum(series, SIGNALS[series.signal]), view: of.view(series.signal),
  });
  const reverse = of.reverse.points.some((point) => point.value !== null);
  const capacity = roofOf(of.capacity, target.newest.capacity);
  return [
    h("h1", {}, target.name, " ", h("span", { class: `badge ${kind}` }, word)),
    h("p", { class: "soft" }, `${target.host}${target.port ? `, port ${target.port}` : ""}, followed since ${time(target.added_ms)}`),
    headline(all, target, word, events),
    target.alerts.map((alert) => h("p", { class: "note" }, h("strong", {}, `Alert ${alert.rule} (${alert.state}): `), alert.detail ?? "")),
    newest(all, target),
    h("nav", { "aria-label": "Time range" }, h("ul", { class: "ranges" }, Object.keys(RANGES).map((name) =>
      h("li", {}, h("a", { href: `?range=${name}`, "aria-current": name === range && "true" }, name))))),
    one(of.available, capacity),
    shown.length > 0 && h("section", {}, h("h2", {}, "Events in this time"), numbered(shown)),
    heatmap(of.heat, shown, of.view("heat")),
    one(of.queueing, null, 190),
    reverse && one(of.reverse, capacity, 190),
    h("section", {}, h("h2", {}, "Path"), of.paths.length
      ? [pipe({ name: target.name, path: of.paths[0], capacity: target.newest.capacity, available: target.newest.available, incident: target.incident, old }),
        folded(`Table of ${of.paths[0].hops.length} hop${of.paths[0].hops.length === 1 ? "" : "s"}`, () => hops(of.paths[0])),
        h("p", {}, h("a", { href: `/path/${encodeURIComponent(target.name)}` }, "How the path changed"))]
      : h("p", { class: "soft" }, "No route was traced yet.")),
    incidents.length > 0 && h("section", {}, h("h2", {}, "Incidents"), timeline(incidents)),
    of.asking,
    h("p", {}, h("a", { href: `/compare?target=${encodeURIComponent(target.name)}` }, "Compare two times")),
  ].flat().filter(Boolean);
}

/** What happens now, in one sentence or two. */
function headline(all, target, word, events) {
  const { available, capacity } = target.newest;
  if (target.incident) {
    return h("div", { class: "note bad" },
      h("p", {}, h("strong", {}, "Incident: "), target.incident.text),
      h("p", {}, `${causeOf(target.incident)}Since ${time(target.incident.began_ms)}, for ${lasting(all.at_ms - target.incident.began_ms)}.`));
  }
  const last = events[0] ? ` Last event, ${time(events[0].at_ms)}: ${events[0].text}.` : "";
  if (word === "◌ starting") return h("p", { class: "note" }, "Followed for ", lasting(all.at_ms - target.added_ms), ": pulses and route come first, then the capacity, then the first available rate.");
  if (word === "◐ round trip only") return h("p", { class: "note" }, `No available rate ${available ? `for ${age(available, all.at_ms)}` : "was measured"}; round trip, loss and route go on.${last}`);
  if (word === "✕ silent") return h("p", { class: "note bad" }, `Nothing was measured ${target.newest.least_round_trip ? `for ${age(target.newest.least_round_trip, all.at_ms)}` : "yet"}.${last}`);
  // An alert stands below, and may have fired before a change was found.
  const calm = target.alerts.length ? "" : " No change was found in this time.";
  const young = learning(target);
  return h("p", {}, `${free(available, capacity, all.at_ms)}${young && ` ${capital(young)}.`}${last || calm}`);
}

function free(available, capacity, now) {
  if (!available) return "No available rate was measured.";
  const old = age(available, now);
  const of = capacity ? ` of ${said(capacity, "bit/s")}` : "";
  return `${capital(said(available, "bit/s"))}${of} ${old ? `was free ${old} ago` : "is free now"}.`;
}

/** The capacity over time; the newest one, if that was measured before. */
function roofOf(series, newest) {
  return newest ? { ...series, points: series.points.length ? series.points : [newest], holds_ms: newest.stale_after_ms } : null;
}

function newest(all, target) {
  const rows = Object.keys(SIGNALS).filter((signal) => target.newest[signal]).map((signal) => {
    const value = target.newest[signal];
    const old = age(value, all.at_ms);
    return h("div", {}, h("dt", {}, SIGNALS[signal]),
      h("dd", { class: old && "old" }, old ? "was " : "", said(value, value.unit), h("small", {}, [interval(value, value.unit), old && `${old} ago`, value.unit === "bit/s" && value.basis === "single" && "from this end alone"].filter(Boolean).join("; "))));
  });
  return rows.length > 0 && h("dl", { class: "facts wide" }, rows);
}

function numbered(events) {
  const list = timeline(events);
  [...list.children].forEach((item, n) => item.firstChild.prepend(h("strong", { class: "changed" }, n + 1), "   "));
  return list;
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** Opens the run that gave a value: the last that began before it stood. */
async function openRun(name, point, series) {
  const steps = series.points.slice(1).map((next, n) => next.at_ms - series.points[n].at_ms);
  const step = Math.max(120e3, ...steps.slice(-1));
  const { runs } = await ask("runs", { target: name, since: point.at_ms - step, until: point.at_ms + step, limit: 500 });
  const fits = runs.filter((run) => run.kind !== "route" && run.outcome !== "running");
  const far = (run) => Math.abs(run.began_ms - point.at_ms);
  const best = (fits.length ? fits : runs).reduce((best, run) => (best && far(best) <= far(run) ? best : run), null);
  if (best) location.href = `/run/${best.id}`;
}

/** What people may ask for. */
function orders(name) {
  const answer = h("p", { role: "status", class: "soft" });
  const send = (path, body) => async (event) => {
    event.preventDefault();
    const button = event.submitter ?? event.currentTarget;
    button.disabled = true;
    try {
      answer.textContent = (await post(path, body())).text;
    } catch (error) {
      answer.textContent = `Not done: ${error.message}`;
    }
    button.disabled = false;
  };
  const kind = h("select", {}, ["slice", "capacity", "hops", "route", "test"].map((kind) => h("option", {}, kind)));
  const minutes = h("input", { type: "number", min: "1", max: "43200", value: "60", required: true });
  const text = h("input", { maxlength: "500", required: true, size: "30" });
  return h("section", {}, h("h2", {}, "Ask for something"),
    h("form", { class: "inline", onsubmit: send("runs", () => ({ target: name, kind: kind.value })) },
      h("label", {}, "Measure now, within the send budget", kind), h("button", {}, "Measure")),
    h("form", { class: "inline", onsubmit: send("silences", () => ({ target: name, minutes: Number(minutes.value) })) },
      h("label", {}, "No alerts for so many minutes", minutes), h("button", {}, "Silence")),
    h("form", { class: "inline", onsubmit: send("notes", () => ({ target: name, text: text.value })) },
      h("label", {}, "A note beside the events", text), h("button", {}, "Keep")),
    answer);
}

/** The paths of a target, with a slider over their changes. */
export async function showPath(main, name) {
  document.title = `Path to ${name} - narrows watch`;
  const [all, target] = await find(name);
  const { paths } = await ask("paths", { target: target.name, since: "1y" });
  const back = h("p", {}, h("a", { href: link(target.name) }, `All about ${target.name}`));
  if (paths.length === 0) return main.replaceChildren(h("h1", {}, `Path to ${target.name}`), h("p", { class: "soft" }, "No route was traced yet."), back);
  const old = [...paths].reverse();
  const body = h("div", {});
  const label = h("output", {});
  const slider = h("input", { type: "range", min: "1", max: String(old.length), value: String(old.length), "aria-describedby": "moved" });
  const step = (by) => () => { slider.value = String(Number(slider.value) + by); draw(); };
  const [earlier, later] = [h("button", { onclick: step(-1) }, "◀ Earlier"), h("button", { onclick: step(1) }, "Later ▶")];
  const draw = () => {
    const n = Number(slider.value) - 1;
    const [path, before] = [old[n], old[n - 1]];
    const until = old[n + 1] ? `until ${time(old[n + 1].at_ms)}` : "until now";
    label.textContent = `${n + 1} of ${old.length}: from ${time(path.at_ms)} ${until}`;
    slider.setAttribute("aria-valuetext", label.textContent);
    const latest = n === old.length - 1;
    [earlier.disabled, later.disabled] = [n === 0, latest];
    body.replaceChildren(
      pipe({ name: target.name, path, capacity: latest ? target.newest.capacity : null, available: latest ? target.newest.available : null, incident: latest ? target.incident : null, old: age(target.newest.available, all.at_ms) }),
      h("p", {}, changes(path, before)),
      hops(path, before),
      h("dl", { class: "facts" }, ["address", "source", "interface", "next_hop"].map((key) => [h("dt", {}, key.replace("_", " ")), h("dd", {}, path[key] ?? "not known")])));
  };
  slider.addEventListener("input", draw);
  main.replaceChildren(...[h("h1", {}, `Path to ${target.name}`), back,
    h("p", { id: "moved" }, old.length === 1 ? "One path was seen in a year." : `${old.length} paths were seen in a year. Move the slider, or press the buttons, to see each.`),
    old.length > 1 && h("div", { class: "slide" }, earlier, h("label", {}, "Path", slider), later), h("p", {}, h("strong", {}, label)), body].filter(Boolean));
  draw();
  return null;
}

function changes(path, before) {
  if (!before) return "This is the first path that was seen.";
  const said = [];
  if (path.hops.length !== before.hops.length) said.push(`${before.hops.length} hops became ${path.hops.length}`);
  const first = path.hops.findIndex((hop, n) => JSON.stringify(hop.addresses) !== JSON.stringify(before.hops[n]?.addresses));
  if (first >= 0) said.push(`the first hop that differs is ${first + 1}`);
  if (path.mtu_octets !== before.mtu_octets) said.push(`the MTU changed from ${before.mtu_octets ?? "unknown"} to ${path.mtu_octets ?? "unknown"} octets`);
  for (const key of ["address", "source", "interface", "next_hop"]) {
    if (path[key] !== before[key]) said.push(`${key.replace("_", " ")} ${before[key] ?? "unknown"} became ${path[key] ?? "unknown"}`);
  }
  const last = (path) => path.hops[path.hops.length - 1]?.round_trip_ns ?? null;
  if (last(path) !== null && last(before) !== null && last(path) !== last(before)) {
    said.push(`the least round trip went from ${amount(last(before), "ns")} to ${amount(last(path), "ns")}`);
  }
  return said.length ? `Against the path before: ${said.join("; ")}.` : "Nothing that is shown here differs from the path before.";
}
