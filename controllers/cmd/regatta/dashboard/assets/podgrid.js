// SPDX-License-Identifier: Apache-2.0
// The pods of a workload as squares, in groups, with what was decided about the pod that is chosen.

import { makeElement, makeSelect, reconcileChildren, replaceChildren, replaceIfChanged, setOptions } from "./dom.js";
import { makeFacts } from "./parts.js";
import { findText, formatTime, text } from "./text.js";
import { describeVerdict, makeNearest } from "./why.js";

// Each state has a sign besides its colour.
const signs = { UpToDate: "✓", Updating: "↻", Moved: "↻", Held: "‖", Waiting: "·", Hooked: "⚓", Deleting: "×", NotReady: "!", Lacking: "−", Ready: "•", Outdated: "○" };
const states = Object.keys(signs);

const groupings = {
  none: () => "",
  state: (pod) => describeVerdict(pod.state),
  wave: (pod) => (pod.wave ? text("wave", pod.wave) : text("not-updated")),
  zone: (pod) => pod.zone || text("unknown"),
  node: (pod) => pod.node || text("unknown"),
  revision: (pod) => pod.revision || text("unknown"),
  namespace: (pod) => pod.namespace,
};

/** Makes the grid. Its method draw shows pods. */
export function makePodGrid() {
  let pods = [];
  let chosen;
  const legend = makeElement("p", { class: "legend", role: "status" });
  const groups = makeElement("div", { class: "groups", role: "group", "aria-label": text("pods"), onkeydown: moveFocus, onclick: choose });
  const facts = makeElement("div", {}, text("choose-pod"));
  const nearest = makeElement("div");
  const detail = makeElement("div", { class: "detail", "aria-live": "polite" }, facts, nearest);
  const grouping = makeSelect(text("group-by"), [], "", (value) => { localStorage.setItem("group-by", value); draw(pods); });
  const element = makeElement("div", {}, grouping, legend, makeElement("p", { class: "quiet" }, text("pod-keys")), groups, detail);

  function draw(next) {
    pods = next.sort(comparePods);
    const by = currentGrouping(pods);
    setOptions(grouping.querySelector("select"), listGroupings(pods), by);
    drawLegend(legend, pods);
    const groupOf = groupings[by] ?? ((pod) => pod.labels?.[by.slice("label:".length)] ?? text("unknown"));
    const byName = Map.groupBy(pods, groupOf);
    const names = [...byName.keys()];
    if (!["none", "wave"].includes(by)) names.sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
    const focused = groups.contains(document.activeElement) ? document.activeElement.dataset.id : undefined;
    reconcileChildren(groups, names.map((name) => ({ name, pods: byName.get(name) })), (g) => g.name, drawGroup);
    // A pod that has gone to another group is another element there.
    if (focused && !groups.contains(document.activeElement)) findSquare(focused)?.focus();
    for (const pressed of groups.querySelectorAll("[aria-pressed='true']")) pressed.setAttribute("aria-pressed", "false");
    if (chosen) findSquare(chosen)?.setAttribute("aria-pressed", "true");
    if (!groups.querySelector("[tabindex='0']")) groups.querySelector("button")?.setAttribute("tabindex", "0");
    drawDetail();
  }

  function findSquare(id) {
    return groups.querySelector(`button[data-id="${CSS.escape(id)}"]`);
  }

  function drawDetail() {
    if (!chosen) return;
    const pod = pods.find((p) => p.id === chosen);
    replaceIfChanged(facts, pod ?? "", () => (pod ? describePod(pod) : text("none")));
    // What would change the answer stays until the answer is another one.
    replaceIfChanged(nearest, pod ? [pod.id, pod.state, pod.reason] : "", () =>
      pod && makeNearest({ group: "", kind: "Pod", namespace: pod.namespace, name: pod.name }));
  }

  function choose(event) {
    const button = event.target.closest("button");
    if (!button) return;
    groups.querySelector("[aria-pressed='true']")?.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-pressed", "true");
    focusPod(button);
    chosen = button.dataset.id;
    drawDetail();
  }

  function focusPod(button) {
    groups.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    button.setAttribute("tabindex", "0");
    button.focus();
  }

  function moveFocus(event) {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const all = [...groups.querySelectorAll("button")];
    const at = all.indexOf(document.activeElement);
    if (!step || at < 0) return;
    event.preventDefault();
    focusPod(all[Math.min(Math.max(at + step, 0), all.length - 1)]);
  }
  return { element, draw };
}

// comparePods sorts pods as they are updated: those that have the newest revision by the time of their update, then the others in their order.
function comparePods(a, b) {
  return (a.wave || Infinity) - (b.wave || Infinity) || (a.wave ? a.updatedAt - b.updatedAt : a.position - b.position) || (a.id < b.id ? -1 : 1);
}

function currentGrouping(pods) {
  const saved = localStorage.getItem("group-by") ?? "wave";
  return listGroupings(pods).some(([value]) => value === saved) ? saved : "wave";
}

function listGroupings(pods) {
  const labels = new Set(pods.slice(0, 100).flatMap((pod) => Object.keys(pod.labels ?? {})));
  return [...Object.keys(groupings).map((name) => [name, text(`by-${name}`)]), ...[...labels].sort().map((key) => [`label:${key}`, text("by-label", key)])];
}

function drawLegend(legend, pods) {
  const counts = Map.groupBy(pods, (pod) => pod.state);
  const order = [...counts.keys()].sort((a, b) => states.indexOf(a) - states.indexOf(b));
  replaceChildren(legend, order.map((state) => [
    makeElement("span", { class: `pod ${stateClass(state)}`, "aria-hidden": "true" }, signs[state] ?? "?"), ` ${counts.get(state).length} ${describeVerdict(state)} `]));
}

function stateClass(state) {
  return `s-${findText(`pod-${state}`) ? state : "other"}`;
}

function drawGroup(group, old) {
  const element = old ?? makeElement("div", { class: "group" }, makeElement("h3"), makeElement("div", { class: "squares" }));
  const [head, squares] = element.children;
  const ready = group.pods.filter((pod) => pod.updated && pod.ready).length;
  head.hidden = !group.name;
  head.textContent = `${group.name} (${ready}/${group.pods.length})`;
  reconcileChildren(squares, group.pods, (pod) => pod.id, drawPod);
  return element;
}

function drawPod(pod, old) {
  const square = old ?? makeElement("button", { type: "button", tabindex: "-1", "aria-pressed": "false", "data-id": pod.id });
  square.className = `pod ${stateClass(pod.state)}`;
  square.textContent = signs[pod.state] ?? "?";
  const label = `${pod.name}: ${describeVerdict(pod.state)}${pod.reason ? ` (${pod.reason})` : ""}`;
  square.setAttribute("aria-label", label);
  square.title = label;
  return square;
}

function describePod(pod) {
  return [
    makeElement("h3", {}, `${pod.namespace}/${pod.name}`),
    makeElement("p", {}, makeElement("strong", {}, describeVerdict(pod.state)), pod.reason && ` (${pod.reason})`, pod.message && `: ${pod.message}`),
    makeFacts([
      [text("rule"), pod.rule], [text("container-problem"), pod.problem], [text("node"), pod.node], [text("zone"), pod.zone], [text("revision"), pod.revision],
      [text("updated-at"), pod.updatedAt && formatTime(pod.updatedAt)], [text("ready-at"), pod.readyAt && formatTime(pod.readyAt)],
      ["", pod.until && text("until", formatTime(pod.until))],
    ]),
  ];
}
