// SPDX-License-Identifier: Apache-2.0
// How many pods had the newest revision at which time.

import { makeElement, replaceChildren } from "./dom.js";
import { formatTime, text } from "./text.js";

const width = 800;
const height = 160;
const margin = { left: 40, right: 10, top: 10, bottom: 24 };

/** Draws the timeline of the pods that have the newest revision. */
export function drawTimeline(parent, pods) {
  const updated = pods.filter((pod) => pod.updated && pod.updatedAt).map((pod) => pod.updatedAt).sort((a, b) => a - b);
  const ready = pods.filter((pod) => pod.updated && pod.ready).map((pod) => Math.max(pod.readyAt, pod.updatedAt)).sort((a, b) => a - b);
  if (!updated.length) {
    replaceChildren(parent, makeElement("p", { class: "quiet" }, text("timeline-empty")));
    return;
  }
  const first = updated[0];
  const last = Math.max(updated.at(-1), ready.at(-1) ?? 0, first + 1000);
  const x = (time) => margin.left + ((time - first) / (last - first)) * (width - margin.left - margin.right);
  const y = (count) => height - margin.bottom - (count / pods.length) * (height - margin.top - margin.bottom);
  const label = (px, py, anchor, content) => makeElement("text", { x: px, y: py, "text-anchor": anchor }, content);
  replaceChildren(parent, makeElement("p", { class: "quiet" }, text("timeline-about")),
    makeElement("svg", { viewBox: `0 0 ${width} ${height}`, class: "timeline", role: "img", "aria-label": text("timeline-about") },
      makeElement("path", { class: "timeline-ready", d: `${stepPath(ready, x, y, last)} L ${x(last)} ${y(0)} Z` }),
      makeElement("path", { class: "timeline-updated", d: stepPath(updated, x, y, last) }),
      makeElement("line", { x1: margin.left, x2: width - margin.right, y1: y(0), y2: y(0) }),
      makeElement("line", { x1: margin.left, x2: margin.left, y1: y(0), y2: y(pods.length) }),
      label(margin.left - 4, y(pods.length) + 8, "end", String(pods.length)), label(margin.left - 4, y(0), "end", "0"),
      label(margin.left, height - 6, "start", formatTime(first)), label(width - margin.right, height - 6, "end", formatTime(last))));
}

// stepPath counts times up: a step for each.
function stepPath(times, x, y, last) {
  const points = times.map((time, i) => `V ${y(i)} H ${x(time)} V ${y(i + 1)}`);
  return `M ${x(times[0] ?? last)} ${y(0)} ${points.join(" ")} H ${x(last)}`;
}
