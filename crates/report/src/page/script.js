"use strict";
document.querySelectorAll("table.sortable").forEach(function (table) {
  var body = table.tBodies[0], heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach(function (head, column) {
    var button = document.createElement("button");
    button.type = "button";
    while (head.firstChild) { button.appendChild(head.firstChild); }
    head.appendChild(button);
    button.addEventListener("click", function () {
      var up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      var value = function (row) {
        var cell = row.cells[column];
        if (!cell) { return null; }
        if (cell.classList.contains("n")) {
          return cell.hasAttribute("data-v") ? parseFloat(cell.getAttribute("data-v")) : null;
        }
        return cell.textContent;
      };
      var rows = Array.from(body.rows).map(function (row) { return [value(row), row]; });
      rows.sort(function (a, b) {
        if (a[0] === null || b[0] === null) { return (a[0] === null ? 1 : 0) - (b[0] === null ? 1 : 0); }
        var order = typeof a[0] === "number" ? a[0] - b[0] : a[0].localeCompare(b[0], "en", { numeric: true });
        return up ? order : -order;
      });
      rows.forEach(function (pair) { body.appendChild(pair[1]); });
      table.classList.add("sorted");
    });
  });
});
var section = document.getElementById("table");
if (section.querySelector("table")) {
  var input = document.createElement("input");
  input.type = "search";
  input.placeholder = "Filter rows: words of scenario, method, world";
  input.setAttribute("aria-label", "Filter rows");
  input.addEventListener("input", function () {
    section.querySelectorAll("table").forEach(function (table) { table.classList.add("sorted"); });
    var words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    section.querySelectorAll("tbody tr").forEach(function (row) {
      var text = row.textContent.toLowerCase();
      row.hidden = !words.every(function (word) { return text.includes(word); });
    });
    section.querySelectorAll("details").forEach(function (part) {
      var any = Array.from(part.querySelectorAll("tbody tr")).some(function (row) { return !row.hidden; });
      part.hidden = !any;
      if (words.length) { part.open = any; }
    });
  });
  section.querySelector("h2").after(input);
}
var opened = [];
window.addEventListener("beforeprint", function () {
  opened = Array.from(document.querySelectorAll("details:not([open])"));
  opened.forEach(function (part) { part.open = true; });
});
window.addEventListener("afterprint", function () {
  opened.forEach(function (part) { part.open = false; });
});
