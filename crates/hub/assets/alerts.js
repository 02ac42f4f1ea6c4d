// Alerts: what fires, what is silenced, and by what people are told.

import { ask, h, post, table, when } from "./kit.js";
import { ago, list, long, order, pairLink, plural } from "./words.js";

const HOUR = 3600e3;
const TIMES = { 1: "1 hour", 8: "8 hours", 24: "1 day", 168: "7 days" };
/** More paths than this are folded away. */
const FEW = 4;

/** Rules for a beginning. */
const EXAMPLE = `[[alert]]
name = "slow"
when = "available < 20 Mbit/s"

[[alert]]
name = "no-answer"
when = "silent > 15 min"
`;

export async function show(main) {
  document.title = "Alerts - narrows fleet";
  const said = h("p", { role: "status", class: "soft" });
  const body = h("div", {});
  const render = async () => {
    const [{ alerts, channels, now_ms }, { silences }] = await Promise.all([ask("alerts"), ask("silences")]);
    // Whoever is about to choose a time or to press keeps the button.
    if (body.contains(document.activeElement) && document.activeElement !== body) return;
    const done = (text) => {
      said.textContent = text;
      document.activeElement?.blur();
      return render();
    };
    body.replaceChildren(...[
      h("h1", {}, alerts.length ? `${plural(alerts.length, "alert")} ${alerts.length === 1 ? "fires" : "fire"}` : "Nothing fires"),
      ...alerts.map((alert) => card(alert, now_ms, done)),
      ...none(alerts),
      ...quiet(silences, now_ms, done),
      ...told(channels, now_ms),
    ]);
  };
  await render();
  main.replaceChildren(body, said);
  return (kind) => (kind === "run" || kind === "plan" ? null : render());
}

function card(alert, now, done) {
  const name = alert.rule ?? (alert.bottleneck ? "link" : "agent");
  const to = alert.notify.length ? `told to ${list(alert.notify)}` : "told to nobody: it stands here";
  const paths = h("ul", { class: "plain" }, alert.pairs.map((pair) => h("li", {}, pairLink(pair.source, pair.target))));
  return h("section", { class: "held", "aria-label": `Alert ${name}` },
    h("p", { class: "lead" }, h("strong", {}, `▲ ${name}: `), alert.text),
    h("p", { class: "soft small" }, `For ${long(now - alert.since_ms)}; ${alert.silenced ? "silenced" : to}. `, alert.bottleneck && h("a", { href: `/bottlenecks#${encodeURIComponent(alert.bottleneck)}` }, "See the link")),
    alert.pairs.length > FEW ? h("details", {}, h("summary", {}, plural(alert.pairs.length, "path")), paths) : alert.pairs.length > 0 && paths,
    alert.rule !== null && !alert.silenced && silence(alert, done));
}

/** What stands for the same alert tomorrow: its rule, and its link or its one path. */
function silence(alert, done) {
  const hours = h("select", { name: "hours" }, Object.entries(TIMES).map(([value, text]) => h("option", { value }, text)));
  const about = alert.bottleneck ? { link: alert.bottleneck } : alert.pairs[0];
  const send = async () => {
    const made = await post("silences", { rule: alert.rule, ...about, ends_ms: Date.now() + Number(hours.value) * HOUR, reason: "" });
    await done(`Silence ${made.id} is made. What still fires when it ends is told then.`);
  };
  const press = order("Silence", send, () => "");
  press.prepend(h("label", {}, "For", hours), " ");
  return press;
}

function none(alerts) {
  if (alerts.some((alert) => alert.rule !== null)) return [];
  return [h("div", { class: "note" }, h("p", {}, "Links that carry less than before, and agents that are gone, stand here by themselves. For more, write rules into the fleet's file, such as these:"), h("pre", { tabindex: "0" }, EXAMPLE),
    h("p", {}, h("code", {}, "narrows fleet plan fleet.toml"), " says what they change, ", h("code", {}, "narrows fleet apply fleet.toml"), " begins."))];
}

function quiet(silences, now, done) {
  if (silences.length === 0) return [];
  const end = (row) => order("End", async () => {
    await post(`silences/${row.id}/end`, {});
    await done(`Silence ${row.id} is over.`);
  }, () => "");
  const what = (row) => [row.rule && `alert ${row.rule}`, row.link && `link ${row.link}`, row.source && `from ${row.source}`, row.target && `to ${row.target}`].filter(Boolean);
  return [h("h2", {}, "Silences"), table("Nobody is told of these", [
    ["silence", (row) => h("span", { class: "remark" }, `${row.id}: ${list(what(row)) || "everything"}`)],
    ["until", (row) => [when(row.ends_ms), h("div", { class: "soft small" }, row.begins_ms > now ? `from ${new Date(row.begins_ms).toLocaleString()}` : `for ${long(row.ends_ms - now)} more`)]],
    ["who", (row) => row.who],
    ["why", (row) => h("span", { class: "remark" }, row.reason)],
    ["end", end],
  ], silences)];
}

function told(channels, now) {
  if (channels.length === 0) {
    return [h("h2", {}, "Channels"), h("p", { class: "soft" }, "Nobody is told elsewhere: the hub's own file, /etc/narrows/hub.toml, names no channel.")];
  }
  return [h("h2", {}, "Channels"), table("By what people are told; counts since the start of the hub", [
    ["channel", (row) => row.name],
    ["delivered", (row) => row.delivered, true],
    ["failed", (row) => row.failed, true],
    ["given up", (row) => row.undelivered, true],
    ["last answer", (row) => (row.last_ms === null ? h("span", { class: "soft" }, "none yet") : ago(row.last_ms, now))],
    ["fault", (row) => h("span", { class: row.fault ? "changed remark" : "remark" }, row.fault ? `▲ ${row.fault}` : "none")],
  ], channels)];
}
