// One run: its answer, its values with intervals, the whole document.

import { amount, ask, h, lasting, link, time } from "./kit.js";
import { report } from "./report.js";

export async function show(main, id) {
  const run = await ask(`runs/${id}`);
  const document_ = run.document ?? null;
  document.title = `${run.kind} of ${run.target} - narrows watch`;
  const took = run.ended_ms === null ? "it is running" : `it took ${lasting(run.ended_ms - run.began_ms)}`;
  const outcome = { done: ["good", "● measured"], void: ["mark", "◐ void"], failed: ["bad", "✕ failed"], lost: ["bad", "✕ lost"], running: ["mark", "▶ running"] }[run.outcome];
  main.replaceChildren(...[
    h("h1", {}, `${run.kind[0].toUpperCase()}${run.kind.slice(1)} of ${run.target} `, h("span", { class: `badge ${outcome[0]}` }, outcome[1])),
    h("p", { class: "soft" }, `${time(run.began_ms)}; ${took}; because: ${run.why}`, run.octets === null ? "" : `; ${amount(run.octets, "octets")} sent`),
    h("p", {}, h("a", { href: link(run.target) }, `All about ${run.target}`)),
    ...(document_ ? report(document_) : [h("p", { class: "note" }, "This run has no document: it did not end, or documents of that time are no longer kept.")]),
  ]);
  return null;
}
