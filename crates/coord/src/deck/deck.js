// What the deck has beside the script of the reports: live pictures, and statements to choose. All pages work
// without it.
"use strict";
const live = document.querySelector("[data-events]");

// Shows a new picture. A chart that both pictures have stays, with its zoom, and gets the new data.
function show(html) {
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
    kept.push([data(old), JSON.parse(data(chart).textContent)]);
    chart.replaceWith(old);
  }
  const open = [...live.querySelectorAll("details")].map((part) => part.open);
  live.replaceChildren(...next.childNodes);
  live.querySelectorAll("details").forEach((part, at) => { part.open = open[at] ?? part.open; });
  kept.forEach(([script, now]) => encore.update(script, now));
  encore.charts(live);
  encore.tables(live);
}

if (live) {
  const source = new EventSource(live.dataset.events);
  const note = document.querySelector("[data-connection]");
  source.addEventListener("frame", (event) => {
    show(JSON.parse(event.data));
    note.textContent = "";
  });
  source.addEventListener("last", () => {
    source.close();
    location.replace(live.dataset.then);
  });
  source.addEventListener("error", () => { note.textContent = "The connection is lost; trying again …"; });
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
