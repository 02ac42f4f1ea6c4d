// Orders: what was asked for by hand, when its turn is, what became of it.

import { ask, h, table, when } from "./kit.js";
import { EXITS, list, pairLink, plural, runLink } from "./words.js";

const STATES = { waits: ["mark", "◌ waits"], running: ["mark", "▶ running"], lost: ["bad", "✕ lost"], ...EXITS };

export async function show(main) {
  document.title = "Orders - narrows fleet";
  const render = async () => {
    const { orders } = await ask("orders");
    const open = orders.filter((order) => order.state === "waits" || order.state === "running").length;
    main.replaceChildren(...(orders.length ? filled(orders, open) : empty()));
    document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "center" });
  };
  await render();
  return (kind) => (kind === "plan" || kind === "alert" ? null : render());
}

function empty() {
  return [h("h1", {}, "Nothing was ordered"), h("p", {}, "The page of a pair has ", h("b", {}, "Measure now"), ", a bottleneck has ", h("b", {}, "Prove"), ". On the hub's own machine type:"),
    h("pre", { tabindex: "0" }, "narrows fleet run ams-1 fra-1 -- throughput -t 10")];
}

function filled(orders, open) {
  return [
    h("h1", {}, `${plural(orders.length, "order")}, ${open ? `${open} open` : "none open"}`),
    h("p", {}, "A light run begins at once. One that loads waits for the first gap in the timetable of all that it crosses. These are the newest 500; their runs are kept like all others."),
    table("The newest first", [
      ["path", (order) => h("span", { id: order.id }, pairLink(order.source, order.target))],
      ["what", (order) => h("code", {}, order.command)],
      ["begins", (order) => when(order.at_ms)],
      ["state", (order) => h("span", { class: `badge ${STATES[order.state]?.[0] ?? "mark"}` }, STATES[order.state]?.[1] ?? order.state)],
      ["result", (order) => (order.run ? runLink(order.run, "result") : h("span", { class: "soft" }, "none yet"))],
      ["keeps others off", (order) => h("span", { class: "remark" }, list(order.keys) || "nothing: it is light")],
      ["the agent said", (order) => h("span", { class: "remark" }, order.said ?? "")],
    ], orders),
  ];
}
