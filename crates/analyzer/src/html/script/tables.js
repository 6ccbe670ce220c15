// Makes tables sortable: each column has a button, and where rows are cards, a list of the columns.
(() => {
  const FACTORS = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 6e10, h: 3.6e12 };

  // What a cell sorts by: its number in its smallest unit, or its words. An empty cell comes last.
  function value(cell) {
    // Times such as 2026-03-01 10:00 sort as they are written.
    const time = /^\d{4}-\d\d-\d\d/.exec(cell?.innerText.trim() ?? "");
    if (time) return cell.innerText.trim();
    const text = (cell?.dataset.sort ?? cell?.innerText ?? "").replace(/[\s\u202f,]/g, "").replace(/−/g, "-");
    const found = /^[≥~(]*([-+]?[\d.]+(?:e[-+]?\d+)?)(ns|us|µs|ms|min|s|h)?/.exec(text);
    return found && found[1] !== "." ? Number(found[1]) * (FACTORS[found[2]] ?? 1) : text === "" || text === "-" ? null : text;
  }

  function compared(a, b, direction) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return (a - b) * direction;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return a.localeCompare(b, undefined, { numeric: true }) * direction;
  }

  function sort(table, column, direction) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, place) => {
      if (place === column) head.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    });
    // Rows with a total stay at the end.
    const isTotal = row => row.querySelector(".total") !== null;
    const rows = [...body.rows].map(row => [isTotal(row), value(row.cells[column]), row]);
    rows.sort((a, b) => a[0] - b[0] || compared(a[1], b[1], direction));
    body.append(...rows.map(([, , row]) => row));
  }

  function prepare(table) {
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
    if (table.dataset.sortable || heads.length < 2 || (table.tBodies[0]?.rows.length ?? 0) < 2) return;
    table.dataset.sortable = "yes";
    const next = (head, place) => {
      const isWord = head.classList.contains("word"), now = head.getAttribute("aria-sort");
      sort(table, place, now === null ? (isWord ? 1 : -1) : now === "ascending" ? -1 : 1);
    };
    const choice = encore.element("select", {}, encore.element("option", { value: "" }, "as they are"));
    heads.forEach((head, place) => {
      const name = head.innerText || head.textContent, button = encore.element("button", { type: "button" });
      button.append(...head.childNodes);
      button.addEventListener("click", () => next(head, place));
      head.replaceChildren(button);
      choice.append(encore.element("option", { value: String(place) }, name));
    });
    choice.addEventListener("change", () => {
      if (choice.value !== "") sort(table, Number(choice.value), heads[choice.value].classList.contains("word") ? 1 : -1);
    });
    table.before(encore.element("label", { class: "sort-by" }, "Sort by ", choice));
  }

  // Makes the tables below an element sortable.
  encore.tables = (root = document) => root.querySelectorAll("table").forEach(prepare);
  addEventListener("DOMContentLoaded", () => encore.tables());
})();
