// The only script of the deck: live pictures, and sorting of tables. All pages work without it.
"use strict";
const live = document.querySelector("[data-events]");
if (live) {
  const source = new EventSource(live.dataset.events);
  const note = document.querySelector("[data-connection]");
  source.addEventListener("frame", (event) => {
    const open = [...live.querySelectorAll("details")].map((part) => part.open);
    live.innerHTML = JSON.parse(event.data);
    live.querySelectorAll("details").forEach((part, at) => { part.open = open[at] ?? part.open; });
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
