// SPDX-License-Identifier: Apache-2.0
// PodUnavailableBudgets, with the pods that used them.

import { makeElement, makeTable, reconcileChildren, replaceChildren } from "./dom.js";
import { drawNotices, drawRefusal, isSynced, makeBadge, makeBar } from "./parts.js";
import { openStream, rowsOfType } from "./stream.js";
import { formatTime, text } from "./text.js";

export function showBudgets(main) {
  const notices = makeElement("div");
  const empty = makeElement("p", { class: "quiet", hidden: true }, text("none"));
  const body = makeElement("tbody");
  replaceChildren(main, makeElement("h1", {}, text("budgets")), notices, empty,
    makeTable(text("budgets"), [text("namespace"), text("name"), text("allowed"), text("is-available"), text("desired"), text("total"), text("uses")], body));
  const draw = (rows) => {
    const budgets = rowsOfType(rows, "budget").sort((a, b) => a.allowed - b.allowed || a.id.localeCompare(b.id));
    drawNotices(notices, rows);
    empty.hidden = budgets.length > 0 || !isSynced(rows);
    reconcileChildren(body, budgets, (b) => b.id, drawBudget);
  };
  return openStream("streams/budgets", draw, (problem) => drawRefusal(notices, problem));
}

function drawBudget(b) {
  return makeElement("tr", {},
    makeElement("td", {}, b.namespace),
    makeElement("th", { scope: "row" }, b.name),
    makeElement("td", { class: "number" }, makeBadge(String(b.allowed), b.allowed > 0 ? "good" : "held"), !b.seen && ` ${text("unseen")}`),
    makeElement("td", { class: "number" }, makeBar(b.available, b.available, b.total), ` ${b.available}`),
    makeElement("td", { class: "number" }, b.desired > 0 ? String(b.desired) : text("unprotected")),
    makeElement("td", { class: "number" }, String(b.total)),
    makeElement("td", { class: "notes" }, (b.uses ?? []).map((u) => makeElement("div", {}, `${u.pod} (${text(`use-${u.purpose}`)}, ${formatTime(u.at)})`)),
      (b.conditions ?? []).filter((c) => c.message).map((c) => makeElement("div", {}, `${c.type}=${c.status}: ${c.message}`))));
}
