// SPDX-License-Identifier: Apache-2.0
// Decisions as they are made.

import { makeElement, makeSelect, makeTable, reconcileChildren, replaceChildren } from "./dom.js";
import { drawNotices, drawRefusal, offerValues, makeBadge } from "./parts.js";
import { openStream, rowsOfType } from "./stream.js";
import { formatTime, text } from "./text.js";

const mostShown = 300;

export function showDecisions(main) {
  const filter = { point: "", namespace: "", rule: "", search: "", reasons: false };
  let rows = new Map();
  const notices = makeElement("div");
  const summary = makeElement("p", { class: "quiet", role: "status" });
  const body = makeElement("tbody");
  const choose = (name) => (value) => { filter[name] = value; draw(); };
  const selects = Object.fromEntries(["point", "namespace", "rule"].map((name) => [name, makeSelect(text(name), [], "", choose(name))]));
  const search = makeElement("input", { type: "search", "aria-label": text("search"), placeholder: text("search"), oninput: () => choose("search")(search.value.toLowerCase()) });
  const only = makeElement("input", { type: "checkbox", onchange: () => choose("reasons")(only.checked) });
  replaceChildren(main, makeElement("h1", {}, text("decisions")),
    makeElement("div", { class: "filters" }, search, Object.values(selects), makeElement("label", { class: "choice" }, only, " ", text("only-reasons"))), notices, summary,
    makeTable(text("decisions"), [text("time"), text("point"), text("subject"), text("outcome"), text("reason"), text("rule"), text("took")], body));

  function draw() {
    const all = rowsOfType(rows, "decision").sort((a, b) => b.at - a.at || b.id.localeCompare(a.id));
    offerValues(selects.point, all.map((d) => d.point), filter.point);
    offerValues(selects.namespace, all.map((d) => d.namespace), filter.namespace);
    offerValues(selects.rule, all.flatMap((d) => d.rules ?? []), filter.rule);
    const found = all.filter((d) => isSelected(d, filter));
    const shown = found.slice(0, mostShown);
    drawNotices(notices, rows);
    summary.textContent = text("shown", shown.length, all.length);
    reconcileChildren(body, shown, (d) => d.id, drawDecision);
  }
  return openStream("streams/decisions", (next) => { rows = next; draw(); }, (problem) => drawRefusal(notices, problem));
}

function isSelected(d, filter) {
  return (!filter.point || d.point === filter.point) && (!filter.namespace || d.namespace === filter.namespace) &&
    (!filter.rule || d.rules?.includes(filter.rule)) && (!filter.reasons || d.reasons?.length > 0) &&
    (!filter.search || [d.kind, d.name, d.namespace, ...(d.reasons ?? []).map((r) => r.message)].some((t) => t?.toLowerCase().includes(filter.search)));
}

function drawDecision(d) {
  return makeElement("tr", {},
    makeElement("td", { class: "number" }, formatTime(d.at)),
    makeElement("td", {}, d.point),
    makeElement("th", { scope: "row" }, `${d.kind} ${[d.namespace, d.name].filter(Boolean).join("/")}`),
    makeElement("td", {}, makeBadge(d.outcome, d.outcome === "Decided" ? "plain" : "bad"), d.shadow && ` ${text("shadow", d.shadow)}`),
    makeElement("td", { class: "notes" }, d.error, (d.reasons ?? []).map((r) => makeElement("div", {}, `${r.reason}: ${r.message}`))),
    makeElement("td", { class: "notes" }, (d.rules ?? []).join(", ")),
    makeElement("td", { class: "number" }, `${(d.micros / 1000).toFixed(1)} ms`));
}
