// SPDX-License-Identifier: Apache-2.0
// The list of workloads.

import { makeElement, makeSelect, makeTable, reconcileChildren, replaceChildren } from "./dom.js";
import { drawNotices, drawRefusal, isSynced, makeBar, makePhaseBadge, offerValues, workloadAddress } from "./parts.js";
import { openStream, rowsOfType } from "./stream.js";
import { formatAge, text } from "./text.js";

// What a user has to know of comes first.
const phases = ["failing", "late", "unreadable", "held", "paused", "manual", "updating", "unseen", "complete"];
const firstRows = 500;

export function showWorkloads(main) {
  const filter = { search: "", namespace: "", kind: "", phase: "" };
  let rows = new Map();
  let limit = firstRows;
  const notices = makeElement("div");
  const summary = makeElement("p", { class: "quiet", role: "status" });
  const body = makeElement("tbody");
  const more = makeElement("button", { type: "button", hidden: true, onclick: () => { limit = Infinity; draw(); } });
  const choose = (name) => (value) => { filter[name] = value; draw(); };
  const selects = {
    namespace: makeSelect(text("namespace"), [], "", choose("namespace")),
    kind: makeSelect(text("kind"), [], "", choose("kind")),
    phase: makeSelect(text("state"), [["", text("all")], ...phases.map((p) => [p, text(p)])], "", choose("phase")),
  };
  const search = makeElement("input", { type: "search", "aria-label": text("search"), placeholder: text("search"), oninput: () => choose("search")(search.value.toLowerCase()) });
  replaceChildren(main, makeElement("h1", {}, text("workloads")), makeElement("div", { class: "filters" }, search, Object.values(selects)), notices, summary,
    makeTable(text("workloads"), [text("state"), text("kind"), text("namespace"), text("name"), text("progress"), text("available"), text("age"), text("notes")], body), more);

  function draw() {
    const all = rowsOfType(rows, "workload");
    offerValues(selects.namespace, all.map((w) => w.namespace ?? ""), filter.namespace);
    offerValues(selects.kind, all.map((w) => w.resource), filter.kind);
    const found = all.filter((w) => isSelected(w, filter)).sort(compareWorkloads);
    const shown = found.slice(0, limit);
    drawNotices(notices, rows);
    summary.textContent = all.length ? text("shown", shown.length, all.length) : isSynced(rows) ? text("none") : "";
    reconcileChildren(body, shown, (w) => w.id, drawWorkload);
    more.hidden = shown.length === found.length;
    more.textContent = text("show-all", found.length);
  }
  return openStream("streams/workloads", (next) => { rows = next; draw(); }, (problem) => drawRefusal(notices, problem));
}

function isSelected(w, filter) {
  return (!filter.namespace || w.namespace === filter.namespace) && (!filter.kind || w.resource === filter.kind) &&
    (!filter.phase || w.phase === filter.phase) &&
    (!filter.search || [w.kind, w.namespace, w.name, ...(w.notes ?? [])].some((t) => t?.toLowerCase().includes(filter.search)));
}

function compareWorkloads(a, b) {
  return phases.indexOf(a.phase) - phases.indexOf(b.phase) || a.id.localeCompare(b.id);
}

function drawWorkload(w) {
  return makeElement("tr", {},
    makeElement("td", {}, makePhaseBadge(w.phase)),
    makeElement("td", { title: w.resource }, w.kind),
    makeElement("td", {}, w.namespace ?? text("cluster-scoped")),
    makeElement("th", { scope: "row" }, makeElement("a", { href: workloadAddress(w.resource, w.namespace, w.name) }, w.name)),
    makeElement("td", { class: "number" }, makeBar(w.done, w.updated, w.target), ` ${Math.min(w.done, w.target)}/${w.target}`),
    makeElement("td", { class: "number" }, `${w.available}/${w.wanted}`),
    makeElement("td", { class: "number", "data-since": w.created }, formatAge(w.created)),
    makeElement("td", { class: "notes" }, (w.notes ?? []).join("; ")));
}
