// SPDX-License-Identifier: Apache-2.0
// What was decided about a workload or a pod, by which rule, and what would change it.

import { makeElement, makeTable, replaceChildren } from "./dom.js";
import { makeFacts } from "./parts.js";
import { findText, formatTime, text } from "./text.js";

// The time in milliseconds that an answer may take.
const answerTimeout = 60_000;

/** Returns a verdict in words. */
export function describeVerdict(verdict) {
  return findText(`pod-${verdict}`) ?? text("pod-other", verdict);
}

/** Draws an answer of the managers about a workload or a pod. */
export function drawExplanation(answer) {
  return [
    makeElement("p", { class: "verdict" }, makeElement("strong", {}, describeVerdict(answer.verdict)), answer.reason && ` (${answer.reason})`, answer.message && `: ${answer.message}`),
    answer.outcome && answer.outcome !== "Decided" && makeElement("p", { class: "problem" }, text("fallback", answer.outcome, answer.error ?? "")),
    makeFacts([
      [text("rule"), describeRule(answer)],
      ["", answer.place && text("place", answer.place, answer.bundle ?? "")],
      [text("revision"), describeRevisions(answer)],
      ["", answer.until && text("until", formatTime(answer.until))],
    ]),
    answer.why?.length > 0 && makeTable(text("reason"), [text("pods"), text("state"), text("reason"), text("rule"), text("message")],
      makeElement("tbody", {}, answer.why.map((y) => makeElement("tr", {},
        makeElement("td", { class: "number" }, String(y.pods)), makeElement("td", {}, describeVerdict(y.verdict)), makeElement("td", {}, y.reason),
        makeElement("td", {}, y.rule ?? ""), makeElement("td", { class: "notes" }, y.message))))),
    (answer.others ?? []).filter((h) => !answer.why?.some((y) => y.message === h.message))
      .map((h) => makeElement("p", {}, `${h.rule} (${h.reason}): ${h.message}`)),
    answer.decided && makeElement("p", { class: "quiet" }, text("decided-at", formatTime(answer.decided), answer.policies)),
  ];
}

function describeRule(answer) {
  return answer.rule && [answer.rule, answer.title].filter(Boolean).join(" – ");
}

function describeRevisions(answer) {
  return answer.from && answer.from !== answer.to ? `${answer.from} → ${answer.to}` : answer.to;
}

/** Makes a button that asks the managers what would change the answer about an object. */
export function makeNearest(object) {
  const result = makeElement("div", { "aria-live": "polite" });
  const button = makeElement("button", { type: "button", class: "ask", onclick: ask }, text("what-would-change"));
  async function ask() {
    replaceChildren(result, text("asking"));
    try {
      const response = await fetch(`why?${new URLSearchParams(object)}`, { signal: AbortSignal.timeout(answerTimeout) });
      const reply = await response.json();
      replaceChildren(result, reply.error ? text("no-answer", reply.error) : drawNearest(reply.answer.nearest));
    } catch (error) {
      replaceChildren(result, text("no-answer", error.message));
    }
  }
  return makeElement("div", {}, button, result);
}

function drawNearest(nearest) {
  const { now = [], almost = [] } = nearest ?? {};
  if (!now.length && !almost.length) return text("nothing-near");
  return [
    now.length > 0 && [makeElement("p", {}, text("now-holds")), makeElement("ul", {}, now.map(drawRule))],
    almost.length > 0 && [makeElement("p", {}, text("almost-holds")), makeElement("ul", {}, almost.map(drawRule))],
  ];
}

function drawRule(rule) {
  return makeElement("li", {}, makeElement("strong", {}, rule.rule), rule.title && ` – ${rule.title}`, rule.place && makeElement("span", { class: "quiet" }, ` ${rule.place}`),
    makeElement("ul", {}, (rule.conditions ?? []).map((c) => makeElement("li", {}, makeElement("code", {}, c.text), c.why && ` ${c.why}`))));
}
