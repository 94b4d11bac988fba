// SPDX-License-Identifier: Apache-2.0
// Parts that several views have.

import { makeElement, replaceIfChanged, setOptions } from "./dom.js";
import { rowsOfType } from "./stream.js";
import { text } from "./text.js";

/** Makes a badge with the phase of a workload or another state. kind chooses its colour: good, busy, held, bad or plain. */
export function makeBadge(label, kind) {
  return makeElement("span", { class: `badge ${kind}` }, label);
}

const phaseColours = { complete: "good", updating: "busy", held: "held", paused: "held", late: "bad", failing: "bad", manual: "held", unseen: "plain", unreadable: "bad" };

export function makePhaseBadge(phase) {
  return makeBadge(text(phase), phaseColours[phase]);
}

/** Makes a bar: done of total is full, and updated is half as strong. */
export function makeBar(done, updated, total) {
  const percent = (n) => (total > 0 ? Math.min(100, (100 * n) / total) : 100);
  const full = makeElement("span", { class: "bar-done" });
  const half = makeElement("span", { class: "bar-updated" });
  full.style.width = `${percent(done)}%`;
  half.style.width = `${Math.max(0, percent(updated) - percent(done))}%`;
  return makeElement("span", { class: "bar", "aria-hidden": "true" }, full, half);
}

/** Shows what the page cannot show, that rows are on their way, and other texts. */
export function drawNotices(element, rows, ...others) {
  const problems = [...rowsOfType(rows, "problem").map((p) => text("problem", p.message)), ...others.filter(Boolean)];
  const loading = rowsOfType(rows, "sync").some((s) => !s.synced) && !problems.length;
  replaceIfChanged(element, [problems, loading], () => [
    problems.map((p) => makeElement("p", { class: "problem", role: "alert" }, p)),
    loading && makeElement("p", { class: "quiet", role: "status" }, text("loading"))]);
}

/** Shows why the server refuses a page. */
export function drawRefusal(element, problem) {
  replaceIfChanged(element, problem, () => makeElement("p", { class: "problem", role: "alert" }, problem));
}

/** Returns whether all rows are there. */
export function isSynced(rows) {
  return rowsOfType(rows, "sync").some((s) => s.synced);
}

/** Makes a command line with a button that copies it. */
export function makeCommand(command) {
  const button = makeElement("button", { type: "button", onclick: copy }, text("copy"));
  async function copy() {
    await navigator.clipboard.writeText(command.line);
    button.textContent = text("copied");
    setTimeout(() => { button.textContent = text("copy"); }, 2000);
  }
  return makeElement("div", { class: "command" },
    makeElement("span", { class: "quiet" }, text(`command-${command.purpose}`)),
    makeElement("code", {}, command.line), button,
    command.blocked && makeElement("p", { class: "quiet" }, text("blocked", command.blocked.join(" "))));
}

/** Makes a list of names and values. Pairs without a value are left out. */
export function makeFacts(pairs) {
  return makeElement("dl", {}, pairs.filter(([, value]) => value).map(([name, value]) => [makeElement("dt", {}, name), makeElement("dd", {}, value)]));
}

/** Returns the address of the page of a workload, or undefined for an object that has none. */
export function workloadAddress(resource, namespace, name) {
  return `#/workloads/${[resource, namespace, name].filter(Boolean).map(encodeURIComponent).join("/")}`;
}

/** Makes the section of a page. */
export function makeSection(title, ...children) {
  return makeElement("section", {}, makeElement("h2", {}, title), children);
}

/** Offers the values of a filter, and all of them, in its select element. */
export function offerValues(label, values, chosen) {
  const names = [...new Set(values)].filter(Boolean).sort();
  setOptions(label.querySelector("select"), [["", text("all")], ...names.map((n) => [n, n])], chosen);
}
