// The matrix itself: a table with roles that arrow keys walk through. Ten thousand cells stay quick,
// because each is one element whose look is a class.

import { h } from "./kit.js";
import { ago, brief, failing, long, pairPath, range, said } from "./words.js";
import { shades } from "./shades.js";

const MARKS = { at_least: "bound-low", at_most: "bound-high", inferred: "inferred", inconclusive: "hatched", failed: "crossed", value: "" };

/** How much a cell says, by the number of columns. */
const density = (columns) => (columns <= 12 ? "full" : columns <= 30 ? "brief" : "dots");

/** The words of a cell: what a screen reader says, and the card shows. */
export function words(cell, matrix) {
  if (!cell) return "unknown";
  const [interval, age] = [range(cell, matrix.unit), ago(cell.at_ms, matrix.now_ms)];
  const parts = [said(cell, matrix.unit), interval, cell.state === "inferred" && "inferred", cell.pairs > 1 && `${cell.pairs} pairs`, age, failing(cell, matrix.now_ms)];
  return parts.filter(Boolean).join(", ");
}

/**
 * Builds the grid of `matrix`. `look(source, target, cell)` is called for the cell that is under the
 * pointer or has the focus, `shadeBy` is `value` or `age`; where it `opens`, cells lead to pairs.
 */
export function grid(matrix, { title, worse, shadeBy, look, opens }) {
  const { sources, targets } = matrix;
  const kind = density(targets.length);
  const rows = new Map(sources.map((name, n) => [name, n]));
  const columns = new Map(targets.map((name, n) => [name, n]));
  const [cells, elements, keys] = [[], [], []];
  const at = (row, column) => row * targets.length + column;
  let state = { matrix, shade: null };

  const learn = (of) => {
    cells.length = 0;
    for (const cell of of.cells) cells[at(rows.get(cell.source), columns.get(cell.target))] = cell;
    const number = (cell) => (shadeBy === "age" ? of.now_ms - cell.at_ms : cell.value);
    const known = of.cells.filter((cell) => (shadeBy === "age" ? true : cell.value !== null && cell.state !== "failed"));
    const shade = shades(known.map(number), shadeBy === "age" ? "ms" : of.unit, shadeBy === "age" ? "high" : worse);
    state = { matrix: of, shade, of: (cell) => (shadeBy === "value" && (cell.value === null || cell.state === "failed") ? null : shade.of(number(cell))) };
  };

  const dress = (element, n, self) => {
    const cell = cells[n];
    const shade = cell && state.of(cell);
    const look = self ? "self" : cell ? `${MARKS[cell.state] ?? ""}${cell.failing && cell.value !== null ? " failing" : ""}${shade === null ? "" : ` c${shade}`}` : "unknown";
    const text = self ? "the same" : words(cell, state.matrix);
    // Most cells stay as they are when news come.
    if (keys[n] === look + text) return;
    keys[n] = look + text;
    element.className = look;
    if (kind === "dots") {
      element.setAttribute("aria-label", text);
      return;
    }
    // Eyes get few words, ears get all of them.
    const seen = self || !cell ? [] : kind === "brief" ? [h("span", { "aria-hidden": "true" }, short(cell, state.matrix.unit))] : full(cell, state.matrix);
    element.replaceChildren(...seen, h("span", { class: "unseen" }, text));
  };

  learn(matrix);
  const blank = document.createElement("td");
  blank.tabIndex = -1;
  const body = h("tbody");
  sources.forEach((source, row) => {
    const line = h("tr", {}, h("th", { scope: "row" }, heading(source, kind)));
    targets.forEach((target, column) => {
      const element = blank.cloneNode();
      elements[at(row, column)] = element;
      dress(element, at(row, column), source === target && matrix.by !== "site");
      line.append(element);
    });
    body.append(line);
  });
  const table = h("table", { class: `grid ${kind}`, role: "grid", "aria-label": `${title}. Rows send, columns receive. Arrow keys move${opens ? ", Enter opens a pair" : ""}.` },
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", {}, "from \\ to")), targets.map((target) => h("th", { scope: "col" }, heading(target, kind))))), body);
  // Columns of a fixed width are laid out without looking into ten thousand cells.
  table.style.setProperty("--columns", targets.length);
  walk(table, { sources, targets, elements, at, opens, look: (row, column) => look(sources[row], targets[column], cells[at(row, column)], state.matrix) });

  return {
    element: h("div", { class: "grid-box" }, table),
    legend: () => state.shade.legend,
    /** Whether `of` has the same hosts; then only what changed is drawn anew. */
    update(of) {
      const same = of.sources.join() === sources.join() && of.targets.join() === targets.join();
      if (same) {
        learn(of);
        elements.forEach((element, n) => dress(element, n, sources[Math.floor(n / targets.length)] === targets[n % targets.length] && of.by !== "site"));
      }
      return same;
    },
  };
}

/** A name, cut in its middle where it is long: hosts differ at the end as often as at the beginning. */
function heading(name, kind) {
  const most = kind === "dots" ? 12 : 18;
  if (name.length <= most) return h("span", {}, name);
  const cut = `${name.slice(0, most - 8)}…${name.slice(-7)}`;
  return [h("span", { "aria-hidden": "true", title: name }, cut), h("span", { class: "unseen" }, name)];
}

function short(cell, unit) {
  if (cell.state === "failed") return "✕";
  return cell.value === null ? "?" : `${{ at_least: "≥ ", at_most: "≤ ", inferred: "~ " }[cell.state] ?? ""}${brief(cell.value, unit)}`;
}

const full = (cell, { unit, now_ms }) => [h("b", { "aria-hidden": "true" }, short(cell, unit)),
  h("small", { "aria-hidden": "true" }, cell.value === null ? "" : briefRange(cell, unit)), h("small", { "aria-hidden": "true" }, long(now_ms - cell.at_ms))];

/** The interval without its unit, which the value above it has. */
const briefRange = (cell, unit) => range(cell, unit).replace(" to ", "–").replace(/ [^ ]+$/, "");

/** Keys, pointer and touch: one cell of the grid is a stop of the tab key. */
function walk(table, { sources, targets, elements, at, opens, look }) {
  let [row, column] = [0, Math.min(1, targets.length - 1)];
  const now = () => elements[at(row, column)];
  now().tabIndex = 0;
  const select = (to) => {
    now().tabIndex = -1;
    [row, column] = to;
    now().tabIndex = 0;
    look(row, column);
  };
  const place = (target) => {
    const cell = target.closest?.("td");
    return cell && [cell.parentElement.rowIndex - 1, cell.cellIndex - 1];
  };
  const open = () => {
    if (opens && sources[row] !== targets[column]) location.href = pairPath(sources[row], targets[column]);
  };
  table.addEventListener("keydown", (event) => {
    const end = event.ctrlKey || event.metaKey;
    const [last, lowest] = [targets.length - 1, sources.length - 1];
    const to = {
      ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1], ArrowUp: [row - 1, column], ArrowDown: [row + 1, column],
      Home: [end ? 0 : row, 0], End: [end ? lowest : row, last], PageUp: [row - 10, column], PageDown: [row + 10, column],
    }[event.key];
    if (event.key === "Enter") open();
    if (!to) return;
    event.preventDefault();
    select([Math.min(lowest, Math.max(0, to[0])), Math.min(last, Math.max(0, to[1]))]);
    now().focus();
  });
  table.addEventListener("focusin", (event) => {
    const to = place(event.target);
    if (to) select(to);
  });
  let over = null;
  table.addEventListener("pointermove", (event) => {
    const to = event.pointerType === "mouse" && event.target !== over ? place(event.target) : null;
    over = event.target;
    if (to) look(...to);
  });
  table.addEventListener("click", (event) => {
    const to = place(event.target);
    if (!to) return;
    select(to);
    // A finger has no way to hover: its first touch shows the card, whose link opens the pair.
    if (event.pointerType !== "touch" && event.pointerType !== "pen") open();
  });
}
