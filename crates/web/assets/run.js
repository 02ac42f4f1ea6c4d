// One run: its answer, its values with intervals, the whole document.

import { amount, ask, h, lasting, link, time } from "./kit.js";
import { report } from "./report.js";

export async function show(main, id) {
  const run = await ask(`runs/${id}`);
  const document_ = run.document ?? null;
  document.title = `${run.kind} of ${run.target} - narrows watch`;
  const took = run.ended_ms === null ? "it is running" : `it took ${lasting(run.ended_ms - run.began_ms)}`;
  const outcome = OUTCOMES[run.outcome] ?? ["mark", run.outcome];
  main.replaceChildren(...[
    h("h1", {}, `${run.kind[0].toUpperCase()}${run.kind.slice(1)} of ${run.target} `, h("span", { class: `badge ${outcome[0]}` }, outcome[1])),
    h("p", { class: "soft" }, `${time(run.began_ms)}; ${took}; because: ${run.why}`, run.octets === null ? "" : `; ${amount(run.octets, "octets")} sent`),
    h("p", {}, h("a", { href: link(run.target) }, `All about ${run.target}`)),
    run.reason && h("p", { class: "note" }, `${run.reason[0].toUpperCase()}${run.reason.slice(1)}.`),
    ...(document_ ? report(document_) : [h("p", { class: run.reason ? "soft" : "note" }, missing(run))]),
  ].filter(Boolean));
  return null;
}

/** A mark, and what became of the run. */
const OUTCOMES = {
  done: ["good", "● measured"], void: ["mark", "◐ void"], running: ["mark", "▶ running"], lost: ["bad", "✕ lost"], failed: ["bad", "✕ failed"],
  link_busy: ["mark", "◌ link busy"], server_busy: ["mark", "◌ server busy"], refused: ["bad", "✕ refused"], server_gone: ["bad", "✕ no answer"],
};

/** Why there is no document. */
function missing({ kind, outcome }) {
  if (outcome === "running") return "Its result comes when it ends.";
  if (outcome !== "done") return "It has no result.";
  return kind === "route" ? "The page of the path shows what routes found." : "Its document is no longer kept.";
}
