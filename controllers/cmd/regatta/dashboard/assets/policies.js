// SPDX-License-Identifier: Apache-2.0
// Bundles of policies: the stages of the gate, what managers run, and how a shadow compares.

import { makeElement, makeTable, reconcileChildren, replaceChildren } from "./dom.js";
import { drawNotices, drawRefusal, isSynced, makeBadge, makeCommand, makeFacts } from "./parts.js";
import { openStream, rowsOfType } from "./stream.js";
import { formatTime, text } from "./text.js";

export function showPolicies(main) {
  const notices = makeElement("div");
  const empty = makeElement("p", { class: "quiet", hidden: true }, text("none"));
  const list = makeElement("div");
  replaceChildren(main, makeElement("h1", {}, text("policies")), notices, empty, list);
  const draw = (rows) => {
    const bundles = rowsOfType(rows, "bundle").sort((a, b) => a.ready - b.ready || a.id.localeCompare(b.id));
    drawNotices(notices, rows);
    empty.hidden = bundles.length > 0 || !isSynced(rows);
    reconcileChildren(list, bundles, (b) => b.id, drawBundle);
  };
  return openStream("streams/policies", draw, (problem) => drawRefusal(notices, problem));
}

function drawBundle(b) {
  return makeElement("section", {},
    makeElement("h2", {}, [b.namespace, b.name].filter(Boolean).join("/"), " ", makeBadge(b.mode, "plain"), " ",
      makeBadge(text(b.ready ? "ready" : "not-ready"), b.ready ? "good" : "bad")),
    makeElement("p", {}, [b.reason, b.message].filter(Boolean).join(": ")),
    (b.errors ?? []).map((e) => makeElement("p", { class: "problem" }, makeElement("code", {}, e))),
    makeFacts([
      [text("active"), describeArtifact(b.active)], [text("candidate"), describeArtifact(b.candidate)], [text("withheld"), describeArtifact(b.withheld)],
      [text("stages"), makeElement("span", {}, (b.stages ?? []).map((s) => [makeBadge(s.type, { True: "good", False: "bad" }[s.status] ?? "plain"), " "]))],
      [text("history"), (b.history ?? []).map((a) => a.revision).join(", ")],
    ]),
    b.shadow && drawShadow(b.shadow),
    makeTable(text("replicas"), [text("replicas"), text("active"), text("candidate"), text("notes")], makeElement("tbody", {}, (b.replicas ?? []).map(drawReplica))),
    (b.commands ?? []).map(makeCommand));
}

function describeArtifact(a) {
  if (!a) return "";
  const where = a.namespaces?.length ? ` ${text("in-namespaces", a.namespaces.join(", "))}` : "";
  return `${a.revision}${a.mode ? ` (${a.mode}${where})` : ""} · ${a.reference} · ${formatTime(a.time)}`;
}

function drawReplica(r) {
  return makeElement("tr", {}, makeElement("th", { scope: "row" }, r.name), makeElement("td", {}, r.revision ?? text("nothing")), makeElement("td", {}, r.candidate ?? ""),
    makeElement("td", { class: "notes" }, [r.strict, r.problem, r.shadow?.stopped].filter(Boolean).join("; ")));
}

function drawShadow(s) {
  const counts = [["stricter", s.stricter], ["looser", s.looser], ["changed", s.changed], ["errors", s.errors], ["skipped", s.skipped]];
  return [
    makeElement("p", {}, `${text("shadow-compared", s.compared)}: ${counts.map(([key, n]) => text(key, n ?? 0)).join(", ")}`),
    s.differences?.length > 0 && makeTable(text("shadow-compared", s.compared), [text("times"), text("point"), text("type"), text("enforced"), text("instead")],
      makeElement("tbody", {}, s.differences.map((d) => makeElement("tr", {}, makeElement("td", { class: "number" }, String(d.count)), makeElement("td", {}, d.point),
        makeElement("td", {}, d.kind), makeElement("td", {}, d.reason ?? ""), makeElement("td", {}, d.candidate ?? ""))))),
  ];
}
