// All links that traces have seen, the slowest first.

import { ask, h, table } from "./kit.js";
import { asked, chooser, number, plural, range } from "./words.js";

const METRICS = { capacity: "Capacity", available: "Available rate" };
/** A longer table helps nobody; the filter finds the rest. */
const MOST = 300;
/** The hub reckons links anew this often. */
const SELDOM_MS = 30e3;

export async function show(main) {
  document.title = "Links - narrows fleet";
  let metric = asked("metric", METRICS, "capacity");
  const filter = h("input", { type: "search", name: "find", size: "24", placeholder: "address or name" });
  const body = h("div", {});
  const heading = h("h1", {}, "Links");
  const sentence = h("p", {});
  let links = [];
  let fetched = 0;
  const draw = () => {
    const wanted = filter.value.trim().toLowerCase();
    const found = links.filter((link) => [link.from, link.to].some((text) => text.toLowerCase().includes(wanted)));
    body.replaceChildren(...(found.length ? [rows(found, links)] : [h("p", { class: "soft" }, links.length ? "No link has this in its name." : "Each pair is traced once a day, and around each run: links are listed after the first traces.")]));
  };
  const render = async () => {
    links = (await ask("links", { metric })).links.sort((a, b) => (a.value ?? Infinity) - (b.value ?? Infinity) || (a.lower_bound ?? Infinity) - (b.lower_bound ?? Infinity));
    fetched = Date.now();
    const known = links.filter((link) => link.value !== null).length;
    heading.textContent = links.length ? plural(links.length, "link") : "No link is known yet";
    const valued = known ? `${known} ${known === 1 ? "has" : "have"} a value, because paths are held back there. Of the others,` : "None has a value: no path is known to be held back there. Of each,";
    sentence.textContent = links.length ? `${valued} a lower bound is known: whatever the fastest path through them carried. Links that the same pairs cross cannot be told apart, and share one value.` : "";
    draw();
  };
  filter.addEventListener("input", draw);
  const choose = chooser("Show", "metric", METRICS, metric, (value) => { metric = value; return render(); });
  await render();
  main.replaceChildren(heading, sentence, h("form", { class: "inline", onsubmit: (event) => event.preventDefault() }, choose, h("label", {}, "Find", filter)), body);
  return () => (Date.now() - fetched > SELDOM_MS ? render() : null);
}

/** In one column, so that a telephone shows it too. */
function carries(link) {
  if (link.value !== null) return [h("b", {}, number(link.value, "bit/s")), h("div", { class: "soft small" }, range(link, "bit/s"))];
  return link.lower_bound === null ? h("span", { class: "soft" }, "not known") : `at least ${number(link.lower_bound, "bit/s")}`;
}

function rows(found, links) {
  const together = new Map();
  for (const link of links) together.set(link.segment, (together.get(link.segment) ?? 0) + 1);
  const shown = found.slice(0, MOST);
  const name = found.length > MOST ? `The slowest ${MOST} of ${found.length}` : plural(found.length, "link");
  return table(`${name}; 90 % intervals`, [
    ["from → to", (link) => h("span", { class: "ends" }, h("span", {}, link.from), " ", h("span", {}, "→ ", link.to))],
    ["carries", carries, true],
    ["pairs", (link) => link.pairs, true],
    ["told apart", (link) => h("span", { class: "remark" }, together.get(link.segment) > 1 ? `not from ${plural(together.get(link.segment) - 1, "other link")}` : "yes")],
  ], shown);
}
