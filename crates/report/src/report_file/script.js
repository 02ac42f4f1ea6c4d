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
        if (!cell.classList.contains("n")) { return cell.textContent; }
        return cell.hasAttribute("data-v") ? parseFloat(cell.getAttribute("data-v")) : null;
      };
      var rows = Array.from(body.rows).map(function (row) { return [value(row), row]; });
      rows.sort(function (a, b) {
        if (a[0] === null || b[0] === null) { return (a[0] === null ? 1 : 0) - (b[0] === null ? 1 : 0); }
        var order = typeof a[0] === "number" ? a[0] - b[0] : a[0].localeCompare(b[0], "en", { numeric: true });
        return up ? order : -order;
      });
      rows.forEach(function (pair) { body.appendChild(pair[1]); });
    });
  });
});
