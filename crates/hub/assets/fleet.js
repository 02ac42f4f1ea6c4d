// The fleet itself: its agents, how one more joins, who changed what.

import { amount, ask, h, lasting, post, table, when } from "./kit.js";
import { joinBox } from "./join.js";
import { ago, list, plural } from "./words.js";

const STATES = { joined: ["mark", "◌ joined"], online: ["good", "● online"], late: ["mark", "◐ late"], gone: ["bad", "✕ gone"], left: ["mark", "◌ left"], revoked: ["mark", "■ revoked"] };
/** Whoever looks for trouble finds it first. */
const URGENT = ["gone", "late", "joined", "online", "left", "revoked"];
const PAGE = 50;
/** Agents complain from here on. */
const DIFFERS_MS = 2000;

/** An agent that never spoke has joined, and that is all that is known of it. */
const stateOf = (row) => (row.heard_ms === null && row.state !== "left" && row.state !== "revoked" ? "joined" : row.state);

/** A text whose commands stand between backticks. */
const commands = (text) => text.split("`").map((part, n) => (n % 2 ? h("code", {}, part) : part));

export async function show(main) {
  document.title = "Agents - narrows fleet";
  const agents = h("div", {});
  const said = h("p", { role: "status", class: "soft" });
  const join = h("div", {});
  const audit = h("div", {});
  let joined = -1;
  const render = async () => {
    const [all, { entries }] = await Promise.all([ask("agents"), ask("audit", { limit: PAGE })]);
    // A button under the finger stays where it is.
    if (!agents.contains(document.activeElement)) agents.replaceChildren(...roster(all, revoked));
    // A fresh join line is shown once: news must not take it away.
    if (joined < 0 || (joined === 0) !== (all.agents.length === 0)) join.replaceChildren(joinBox(all.agents.length));
    joined = all.agents.length;
    audit.replaceChildren(...log(entries, audit));
  };
  const revoked = (name) => {
    said.textContent = `${name} is revoked: the bus has cut it off, and its peers will refuse it.`;
    return render();
  };
  await render();
  main.replaceChildren(agents, said, join, audit);
  return (kind) => (kind === "run" ? null : render());
}

function roster(all, revoked) {
  const rows = [...all.agents].sort((a, b) => URGENT.indexOf(stateOf(a)) - URGENT.indexOf(stateOf(b)) || b.faults.length - a.faults.length || (a.name < b.name ? -1 : 1));
  if (rows.length === 0) {
    return [h("h1", {}, "No agent has joined yet"), h("p", {}, "Make a join line below, and type it on a host. It is listed here within five seconds; with three hosts the matrix fills within two minutes.")];
  }
  const count = (state) => rows.filter((row) => stateOf(row) === state).length;
  const states = URGENT.filter((state) => count(state)).map((state) => `${count(state)} ${state}`);
  const known = (cell) => (row) => (row.heard_ms === null ? h("span", { class: "soft" }, "not known yet") : cell(row));
  const members = rows.length - count("left") - count("revoked");
  return [
    h("h1", {}, `${plural(members, "agent")}: ${list(states)}`),
    count("joined") > 0 && h("p", { class: "note" }, "A host that joined stays silent until its agent runs. Type there: ", h("code", {}, "narrows agent run"), ", or ", h("code", {}, "systemctl enable --now narrows-agent"), "."),
    ...rows.flatMap((row) => row.faults.map((fault) => h("p", { class: "note bad" }, h("strong", {}, `${row.name}: `), commands(fault)))),
    ...rows.flatMap((row) => (row.declined ?? []).map((what) => h("p", { class: "note" }, h("strong", {}, `${row.name}: `), "left out of its plan: ", what))),
    table("Agents", [
      ["agent", (row) => [h("b", {}, row.name), row.site && h("div", { class: "soft small" }, row.site), h("div", { class: "soft small" }, Object.entries(row.labels).map(([key, value]) => `${key}=${value}`).join(", "))]],
      ["state", (row) => [h("span", { class: `badge ${STATES[stateOf(row)]?.[0] ?? "mark"}` }, STATES[stateOf(row)]?.[1] ?? row.state), h("div", { class: "soft small" }, row.heard_ms === null ? "not heard yet" : `heard ${ago(row.heard_ms, all.now_ms)}`)]],
      ["does", known((row) => [row.running ? "measures" : h("span", { class: "soft" }, "waits"), row.leases_lost > 0 && h("div", { class: "soft small" }, `${plural(row.leases_lost, "lease")} lost`)])],
      ["version", known((row) => row.version)],
      ["clock", known((row) => [row.clock_synchronised ? "synchronised" : h("span", { class: "changed" }, "▲ not synchronised"), Math.abs(row.clock_ahead_ms ?? 0) > DIFFERS_MS && h("div", { class: "changed" }, `▲ ${lasting(Math.abs(row.clock_ahead_ms))} ${row.clock_ahead_ms > 0 ? "ahead of" : "behind"} the hub's`), row.clock_error_ms > 0 && h("div", { class: "soft small" }, `within ${amount(row.clock_error_ms * 1e6, "ns")}`)])],
      ["spool", known((row) => [row.spool_runs ? `${plural(row.spool_runs, "result")}, ${amount(row.spool_octets, "octets")}` : "empty", row.spool_lost > 0 && h("div", { class: "changed" }, `${row.spool_lost} lost`)])],
      ["plan", known((row) => [String(row.plan_serial), !row.plan_current && h("div", { class: "changed" }, "▲ not the newest")])],
      ["address", (row) => row.address],
      ["membership", (row) => (row.state === "left" || row.state === "revoked" ? null : revoke(row.name, revoked))],
    ], rows),
  ].filter(Boolean);
}

/** Two presses: the first one asks. */
function revoke(name, revoked) {
  const answer = h("span", { role: "status", class: "soft small" });
  const button = h("button", { "aria-label": `Revoke ${name}` }, "Revoke");
  button.addEventListener("click", async () => {
    if (button.dataset.sure !== "yes") {
      button.dataset.sure = "yes";
      button.textContent = "Really revoke?";
      button.setAttribute("aria-label", `Really revoke ${name}?`);
      return;
    }
    button.disabled = true;
    try {
      await post(`agents/${encodeURIComponent(name)}/revoke`, {});
      button.remove();
      await revoked(name);
    } catch (error) {
      answer.textContent = `Not done: ${error.message}`;
      button.disabled = false;
    }
  });
  button.addEventListener("blur", () => {
    if (button.disabled) return;
    button.dataset.sure = "";
    button.textContent = "Revoke";
    button.setAttribute("aria-label", `Revoke ${name}`);
  });
  return [button, answer];
}

function log(entries, holder) {
  if (entries.length === 0) return [h("h2", {}, "Audit"), h("p", { class: "soft" }, "Nothing was changed yet: joins, tokens, plans and orders are written here.")];
  const last = entries[entries.length - 1].number;
  const older = h("button", { onclick: async () => {
    const more = await ask("audit", { before: last, limit: PAGE });
    if (more.entries.length) holder.replaceChildren(...log([...entries, ...more.entries], holder));
    else older.remove();
  } }, "Older");
  return [h("h2", {}, "Audit"), h("p", {}, "See also ", h("a", { href: "/configuration" }, "the configuration with its last change"), " and ", h("a", { href: "/orders" }, "what was ordered"), "."), table("Who changed what; each entry holds the hash of the one before", [
    ["no.", (entry) => entry.number, true],
    ["when", (entry) => when(entry.at_ms)],
    ["who", (entry) => entry.who],
    ["what", (entry) => entry.what],
    ["more", (entry) => h("span", { class: "remark" }, entry.text)],
    ["hash", (entry) => h("code", { title: entry.hash }, entry.hash.slice(0, 8))],
  ], entries), last > 1 && h("p", {}, older)].filter(Boolean);
}
