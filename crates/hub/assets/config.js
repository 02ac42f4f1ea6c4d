// The configuration: the fleet's file, what its last change was, and what another text would change.

import { ask, h, post, when } from "./kit.js";
import { plural } from "./words.js";

/** Lines around a change that are shown with it. */
const AROUND = 3;
/** Longer files are shown without their changes: the table of the comparison has the square of it. */
const MOST = 3000;

export async function show(main) {
  document.title = "Configuration - narrows fleet";
  const body = h("div", {});
  const trial = h("div", {});
  const render = async () => {
    const config = await ask("config");
    body.replaceChildren(...file(config));
    if (trial.children.length === 0) trial.append(...other(config.toml, render));
  };
  await render();
  main.replaceChildren(body, trial);
  return (kind) => (kind === "plan" || kind === "resync" ? render() : null);
}

function file(config) {
  if (config.toml === "" && config.before === null) {
    return [h("h1", {}, "No configuration was applied yet"), h("p", {}, "The mesh measures round trips, available rates and capacities without one. Sites, tests and alerts are named in the fleet's file: write it below, or in a file, and ", h("code", {}, "narrows fleet apply FILE"), ".")];
  }
  const applied = config.applied;
  return [
    h("h1", {}, "Configuration"),
    applied && h("p", {}, "In force since ", when(applied.at_ms), `, by ${applied.who}.`),
    h("pre", { tabindex: "0", "aria-label": "The fleet's file" }, config.toml || "(empty)"),
    ...(config.before === null ? [] : changed(config)),
  ].filter(Boolean);
}

function changed(config) {
  const [old, now] = [config.before, config.toml].map(lines);
  if (old.length > MOST || now.length > MOST) return [h("h2", {}, "Change"), h("p", {}, "These files are too long to be compared here.")];
  const rows = compare(old, now);
  const count = (sign) => rows.filter((row) => row.sign === sign).length;
  if (count("+") + count("-") === 0) return [h("h2", {}, "Change"), h("p", {}, "The last change left every line as it was.")];
  const near = rows.map((_, n) => rows.slice(Math.max(0, n - AROUND), n + AROUND + 1).some((row) => row.sign !== " "));
  const words = { "+": "added: ", "-": "removed: ", " ": "" };
  const line = (row) => h("li", { class: { "+": "added", "-": "removed" }[row.sign] }, h("span", { "aria-hidden": "true" }, `${row.sign} `), words[row.sign] && h("span", { class: "unseen" }, words[row.sign]), row.text || " ");
  const gap = () => h("li", { class: "soft" }, "…");
  return [h("h2", {}, `Change: ${plural(count("+"), "line")} added, ${count("-")} removed`),
    h("ol", { class: "diff", tabindex: "0", "aria-label": "The file before and now" }, rows.flatMap((row, n) => (near[n] ? [line(row)] : n === 0 || near[n - 1] ? [gap()] : [])))];
}

const lines = (text) => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** The lines of both, those that both have once: a longest common subsequence. */
export function compare(old, now) {
  const common = Array.from({ length: old.length + 1 }, () => new Uint16Array(now.length + 1));
  for (let a = old.length - 1; a >= 0; a--) {
    for (let b = now.length - 1; b >= 0; b--) {
      common[a][b] = old[a] === now[b] ? common[a + 1][b + 1] + 1 : Math.max(common[a + 1][b], common[a][b + 1]);
    }
  }
  const rows = [];
  for (let a = 0, b = 0; a < old.length || b < now.length;) {
    if (a < old.length && b < now.length && old[a] === now[b]) {
      rows.push({ sign: " ", text: old[a] });
      a++, b++;
    } else if (b >= now.length || (a < old.length && common[a + 1][b] >= common[a][b + 1])) rows.push({ sign: "-", text: old[a++] });
    else rows.push({ sign: "+", text: now[b++] });
  }
  return rows;
}

/** A text to try. It is applied by the press after the one that said what it changes. */
function other(toml, applied) {
  const text = h("textarea", { name: "toml", rows: "14", spellcheck: "false" });
  text.value = toml;
  const said = h("div", { role: "status" });
  const apply = h("button", { hidden: true }, "Apply");
  const ask_ = h("button", { class: "first" }, "What would it change?");
  const send = async (dry_run) => {
    for (const button of [ask_, apply]) button.disabled = true;
    try {
      const { changes } = await post("config", { toml: text.value, dry_run });
      const words = dry_run ? (changes.length ? `${plural(changes.length, "change")}:` : "Nothing would change.") : "Applied.";
      said.replaceChildren(h("p", {}, words), ...(changes.length ? [h("ul", {}, changes.map((line) => h("li", {}, line)))] : []));
      apply.hidden = !dry_run;
      if (!dry_run) await applied();
    } catch (error) {
      said.replaceChildren(h("p", { class: "note bad" }, `Not done: ${error.message}`));
      apply.hidden = true;
    }
    for (const button of [ask_, apply]) button.disabled = false;
  };
  // What was said was said of another text.
  text.addEventListener("input", () => { apply.hidden = true; });
  ask_.addEventListener("click", () => send(true));
  apply.addEventListener("click", () => send(false));
  return [h("h2", {}, "Another text"), h("form", { class: "config", onsubmit: (event) => event.preventDefault() }, h("label", {}, "Sites, groups, tests and alerts (TOML)", text), h("p", { class: "order" }, ask_, " ", apply), said)];
}
