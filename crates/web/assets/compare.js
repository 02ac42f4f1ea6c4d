// Two times of a target beside each other.

import { amount, ask, between, h, link, s, SIGNALS, table, time } from "./kit.js";
import { hops } from "./pipe.js";

const HOUR = 3600e3;
const field = (ms) => time(ms).replace(" ", "T");

export async function show(main) {
  document.title = "Compare - narrows watch";
  const [{ targets, at_ms: now }, asked] = [await ask("targets"), new URLSearchParams(location.search)];
  if (targets.length === 0) return main.replaceChildren(h("h1", {}, "Compare two times"), h("p", {}, "No target is followed yet."));
  const times = { a_since: now - 25 * HOUR, a_until: now - 24 * HOUR, b_since: now - HOUR, b_until: now };
  const inputs = Object.fromEntries(Object.entries(times).map(([key, ms]) => {
    const given = asked.get(key);
    return [key, h("input", { type: "datetime-local", name: key, required: true, value: field(given && !Number.isNaN(Number(given)) ? Number(given) : ms) })];
  }));
  const choice = h("select", { name: "target" }, targets.map((target) =>
    h("option", { value: target.name, selected: target.name === asked.get("target") }, target.name)));
  const result = h("div", { role: "region", "aria-label": "Comparison", "aria-live": "polite" });
  const compare = async () => {
    const query = { target: choice.value };
    for (const [key, input] of Object.entries(inputs)) query[key] = new Date(input.value).getTime();
    try {
      const of = await ask("compare", query);
      result.replaceChildren(...answer(of));
      history.replaceState(null, "", `?${new URLSearchParams(query)}`);
    } catch (error) {
      result.replaceChildren(h("p", { class: "note bad" }, error.message));
    }
  };
  const shift = (hours) => () => {
    const length = new Date(inputs.b_until.value) - new Date(inputs.b_since.value);
    const end = new Date(inputs.b_until.value).getTime() - hours * HOUR;
    inputs.a_until.value = field(end);
    inputs.a_since.value = field(end - length);
    return compare();
  };
  const span = (name, side) => h("fieldset", {}, h("legend", {}, name),
    h("label", {}, "from", inputs[`${side}_since`]), h("label", {}, "until", inputs[`${side}_until`]));
  main.replaceChildren(h("h1", {}, "Compare two times"),
    h("form", { onsubmit: (event) => { event.preventDefault(); compare(); } },
      h("label", { class: "short" }, "Target", choice),
      h("div", { class: "two" }, span("First time (A)", "a"), span("Second time (B)", "b")),
      h("p", {}, h("button", { class: "first" }, "Compare"), " ",
        h("button", { type: "button", onclick: shift(24) }, "A: a day before B"), " ",
        h("button", { type: "button", onclick: shift(168) }, "A: a week before B"))),
    result);
  await compare();
  return null;
}

function answer(of) {
  const words = { higher: "higher in B", lower: "lower in B", unclear: "no clear difference" };
  const spread = (of, unit) => [amount(of.median, unit), h("br"), h("span", { class: "soft small" }, between(of.low, of.high, unit, of.median))];
  const clear = of.signals.filter((row) => row.verdict !== "unclear");
  const sentence = clear.length
    ? clear.map((row) => `The ${SIGNALS[row.signal]} is ${row.verdict} in B: ${amount(row.b.median, row.unit)} against ${amount(row.a.median, row.unit)} in A`).join(". ")
    : of.signals.length ? "No signal differs clearly" : "There are no values in both times";
  const way = of.same_path === null ? "The path of one time is not known." : of.same_path ? "Both took the same path." : "The path differs.";
  return [
    h("h2", {}, "What differs"),
    h("p", {}, `${sentence}. ${way}`),
    of.signals.length > 0 && h("p", { class: "soft small" }, "Clear means: the middle halves of the values do not overlap. The smaller figures are these middle halves."),
    of.signals.length > 0 && table(`${of.target}: medians of A (${time(of.a.since_ms)} to ${time(of.a.until_ms)}) and B (${time(of.b.since_ms)} to ${time(of.b.until_ms)})`, [
      ["signal", (row) => [SIGNALS[row.signal], h("br"), h("span", { class: row.verdict !== "unclear" ? "changed" : "soft small" }, `${{ higher: "▲ ", lower: "▼ ", unclear: "" }[row.verdict]}${words[row.verdict]}`)]],
      ["A", (row) => spread(row.a, row.unit), true],
      ["B", (row) => spread(row.b, row.unit), true],
      ["A above, B below", bars],
    ], of.signals),
    h("div", { class: "two" }, [["A", of.a, null], ["B", of.b, of.a.path]].map(([side, one, before]) =>
      h("section", {}, h("h3", {}, `Path in ${side}`), one.path ? hops(one.path, before, `Hops of the path in ${side}`) : h("p", {}, "not known")))),
    h("p", {}, h("a", { href: link(of.target) }, `All about ${of.target}`)),
  ].filter(Boolean);
}

function bars(row) {
  const most = Math.max(row.a.high, row.b.high, 1);
  const x = (value) => 4 + (value / most) * 192;
  const one = (of, y, side) => s("g", { class: side },
    s("path", { class: "range", d: `M${x(of.low)} ${y}H${Math.max(x(of.high), x(of.low) + 1)}` }), s("circle", { class: "dot", cx: x(of.median), cy: y, r: 4 }));
  return s("svg", { class: "span-bar", viewBox: "0 0 200 26", role: "img", "aria-label": `A ${amount(row.a.median, row.unit)}, B ${amount(row.b.median, row.unit)}` },
    one(row.a, 7, "a"), one(row.b, 19, "b"));
}
