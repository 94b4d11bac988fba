// SPDX-License-Identifier: Apache-2.0
// The page of one workload.

import { makeElement, makeTable, reconcileChildren, replaceChildren, replaceIfChanged } from "./dom.js";
import { drawExplanation, makeNearest } from "./why.js";
import { drawNotices, drawRefusal, makeBadge, makeBar, makeCommand, makePhaseBadge, makeSection } from "./parts.js";
import { makePodGrid } from "./podgrid.js";
import { openStream, rowsOfType } from "./stream.js";
import { formatTime, text } from "./text.js";
import { drawTimeline } from "./timeline.js";

// The time in milliseconds between two drawings of the timeline.
const timelineInterval = 1000;

export function showWorkload(main, [resource, ...rest]) {
  const name = rest.at(-1);
  const notices = makeElement("div");
  const head = makeElement("div");
  const why = makeElement("div", { "aria-live": "polite" });
  const nearest = makeElement("div");
  const timeline = makeElement("div");
  const events = makeElement("tbody");
  const commands = makeElement("div");
  const grid = makePodGrid();
  replaceChildren(main, makeElement("h1", {}, name), notices, head,
    makeSection(text("what-decided"), why, nearest),
    makeSection(text("pods"), grid.element),
    makeSection(text("timeline"), timeline),
    makeSection(text("events"), makeTable(text("events"), [text("time"), text("type"), text("reason"), text("count"), text("message")], events)),
    makeSection(text("commands"), commands));
  // The timeline of many pods takes a while to draw, and changes little at a time.
  let waiting = 0;
  let latest = [];
  function drawTimelineSoon(pods) {
    latest = pods;
    waiting ||= setTimeout(() => {
      waiting = 0;
      drawTimeline(timeline, latest);
    }, timelineInterval);
  }

  function draw(rows) {
    drawNotices(notices, rows, rows.has("gone") && text("gone"));
    const w = rows.get("workload");
    if (!w) return;
    replaceIfChanged(head, w, () => drawHead(w));
    const answer = rows.get("answer")?.answer;
    replaceIfChanged(why, answer ?? "", () => (answer ? drawExplanation(answer) : text("none")));
    replaceIfChanged(nearest, [answer?.verdict, answer?.reason], () =>
      answer && makeNearest({ group: w.group, kind: w.kind, namespace: w.namespace ?? "", name: w.name }));
    const pods = rowsOfType(rows, "pod");
    grid.draw(pods);
    drawTimelineSoon(pods);
    reconcileChildren(events, rowsOfType(rows, "event").sort((a, b) => b.at - a.at), (e) => e.id, drawEvent);
    replaceIfChanged(commands, rows.get("commands"), () => rows.get("commands").commands.map(makeCommand));
  }
  const close = openStream(`streams/workloads/${[resource, ...rest].map(encodeURIComponent).join("/")}`, draw,
    (problem) => drawRefusal(notices, problem));
  return () => {
    clearTimeout(waiting);
    close();
  };
}

function drawHead(w) {
  return [
    makeElement("p", {}, makePhaseBadge(w.phase), ` ${w.kind} ${[w.namespace, w.name].filter(Boolean).join("/")}`, w.revision && ` · ${text("revision")} ${w.revision}`),
    makeElement("p", { id: "progress" }, makeBar(w.done, w.updated, w.target), " ", text("of-pods", Math.min(w.done, w.target), w.target, w.available)),
    w.strategy && makeElement("p", { class: "quiet" }, w.strategy),
    (w.notes ?? []).map((note) => makeElement("p", { class: "note" }, note)),
  ];
}

function drawEvent(e) {
  return makeElement("tr", {},
    makeElement("td", { class: "number" }, formatTime(e.at)),
    makeElement("td", {}, makeBadge(text(e.warning ? "warning" : "normal"), e.warning ? "bad" : "plain")),
    makeElement("td", {}, e.reason),
    makeElement("td", { class: "number" }, String(e.count)),
    makeElement("td", { class: "notes" }, e.message));
}
