// What the deck has beside the script of the reports: live pictures, and statements to choose. All pages work
// without it.
"use strict";
const live = document.querySelector("[data-events]");

// When the pointer was moved last over the picture.
let moved = 0;
live?.addEventListener("pointermove", () => { moved = Date.now(); });

// A chart that somebody looks into waits for its new data, so that crosshair, keys and a drag stay where they are.
const isInUse = (chart) => chart.matches(":focus-within") || (chart.matches(":hover") && Date.now() - moved < 3000);

// How the tables are sorted, and which of their buttons has the focus, by the names of their columns.
const columns = (table) => [...(table.tHead?.rows[0]?.cells ?? [])];
const title = (table) => columns(table).map((column) => column.textContent).join("|");
const sorting = (table) => ({
  at: columns(table).findIndex((column) => column.hasAttribute("aria-sort")),
  how: columns(table).find((column) => column.hasAttribute("aria-sort"))?.getAttribute("aria-sort"),
  focus: columns(table).findIndex((column) => column.contains(document.activeElement)),
});
function sorted(table, { at, how, focus }) {
  const button = (column) => columns(table)[column]?.querySelector("button");
  for (let click = 0; click < 2 && at >= 0 && columns(table)[at].getAttribute("aria-sort") !== how; click += 1) button(at)?.click();
  button(focus)?.focus();
}

// An element of the new picture that is the one of the old picture: a link by its target, a summary by its words.
function same(old) {
  const alike = [...live.querySelectorAll(old.localName)];
  return old.matches("a[href]") ? alike.find((link) => link.getAttribute("href") === old.getAttribute("href"))
    : old.matches("summary") ? alike.find((summary) => summary.textContent === old.textContent) : undefined;
}

// Shows a new picture. A chart that both pictures have stays, with its zoom, and gets the new data.
function show(html) {
  // An open list of choices would close.
  if (live.contains(document.activeElement) && document.activeElement.matches("select")) return;
  const focused = live.contains(document.activeElement) ? document.activeElement : null;
  const tables = new Map([...live.querySelectorAll("table")].map((table) => [title(table), sorting(table)]));
  const next = document.createElement("div");
  next.innerHTML = html;
  const name = (chart) => chart.querySelector("svg title")?.id;
  const data = (chart) => chart.querySelector("script.chart-data");
  const series = (script) => JSON.parse(script.textContent).series.length;
  const before = new Map([...live.querySelectorAll("div.chart")].map((chart) => [name(chart), chart]));
  const kept = [];
  for (const chart of next.querySelectorAll("div.chart")) {
    const old = before.get(name(chart));
    if (!old || !data(chart) || !data(old) || series(data(chart)) !== series(data(old))) continue;
    if (!isInUse(old)) kept.push([data(old), JSON.parse(data(chart).textContent)]);
    chart.replaceWith(old);
  }
  const open = [...live.querySelectorAll("details")].map((part) => part.open);
  live.replaceChildren(...next.childNodes);
  live.querySelectorAll("details").forEach((part, at) => { part.open = open[at] ?? part.open; });
  kept.forEach(([script, now]) => encore.update(script, now));
  encore.charts(live);
  encore.tables(live);
  // A chart that was moved to the new picture has lost the focus.
  const again = focused?.isConnected ? focused : focused && same(focused);
  again?.focus({ preventScroll: true });
  live.querySelectorAll("table").forEach((table) => { if (tables.has(title(table))) sorted(table, tables.get(title(table))); });
}

if (live) {
  const note = document.querySelector("[data-connection]");
  let source = null;
  const connect = () => {
    source = new EventSource(live.dataset.events);
    source.addEventListener("frame", (event) => {
      show(JSON.parse(event.data));
      note.textContent = "";
    });
    source.addEventListener("last", () => {
      source.close();
      location.replace(live.dataset.then);
    });
    source.addEventListener("error", () => {
      // A deck that was started again has another key, and the browser gives up.
      note.textContent = source.readyState === EventSource.CLOSED
        ? "The deck does not know this browser any more: open the URL that it has printed."
        : "The connection is lost; trying again …";
    });
  };
  // A browser has six connections to a deck, and each live page takes one. A page that nobody sees needs none.
  const follow = () => {
    source?.close();
    if (!document.hidden) connect();
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}
// A comparison that runs; nothing is lost, as long as nothing on the page is in use.
if (document.querySelector("[data-again]")) {
  setInterval(() => { if (getSelection().isCollapsed && document.activeElement === document.body) location.reload(); }, 5000);
}
for (const form of document.querySelectorAll("form[data-at-change]")) {
  form.addEventListener("change", (event) => {
    if (event.target.matches("[data-at-change]")) form.requestSubmit(form.querySelector("[data-reload]"));
  });
}
for (const button of document.querySelectorAll("button[data-statement]")) {
  button.addEventListener("click", () => {
    const field = document.querySelector("textarea[name=q]");
    field.value = button.dataset.statement;
    field.focus();
  });
}
