// SPDX-License-Identifier: Apache-2.0
// The frame of the page: it shows the view that the address names.

import { makeElement, replaceChildren, setOptions } from "./dom.js";
import { onConnection } from "./stream.js";
import { formatAge, language, languages, setLanguage, text } from "./text.js";
import { showBudgets } from "./budgets.js";
import { showDecisions } from "./decisions.js";
import { showPolicies } from "./policies.js";
import { showWorkload } from "./workload.js";
import { showWorkloads } from "./workloads.js";

const views = { workloads: showWorkloads, decisions: showDecisions, policies: showPolicies, budgets: showBudgets };
const themes = ["system", "light", "dark"];
let close = () => {};

function currentRoute() {
  try {
    const [view, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
    if (Object.hasOwn(views, view)) return { view, rest };
  } catch { // the address is not encoded as an address is
  }
  return { view: "workloads", rest: [] };
}

function drawFrame(view) {
  document.documentElement.lang = language();
  document.getElementById("skip").textContent = text("skip");
  document.getElementById("nav").setAttribute("aria-label", text("pages"));
  replaceChildren(document.getElementById("nav"), Object.keys(views).map((name) =>
    makeElement("a", { href: `#/${name}`, "aria-current": name === view ? "page" : undefined }, text(name))));
  document.getElementById("language-label").textContent = text("language");
  document.getElementById("theme-label").textContent = text("theme");
  setOptions(document.getElementById("language"), Object.entries(languages), language());
  setOptions(document.getElementById("theme"), themes.map((name) => [name, text(`theme-${name}`)]), currentTheme());
}

function currentTheme() {
  const saved = localStorage.getItem("theme");
  return themes.includes(saved) ? saved : "system";
}

function applyTheme() {
  document.documentElement.dataset.theme = currentTheme();
}

function showRoute() {
  close();
  const { view, rest } = currentRoute();
  drawFrame(view);
  const main = document.getElementById("main");
  main.replaceChildren();
  const show = view === "workloads" && rest.length > 1 ? showWorkload : views[view];
  close = show(main, rest) ?? (() => {});
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment of the address names the view
  document.getElementById("main").focus();
});
document.getElementById("language").addEventListener("change", (event) => {
  setLanguage(event.target.value);
  showRoute();
});
document.getElementById("theme").addEventListener("change", (event) => {
  localStorage.setItem("theme", event.target.value);
  applyTheme();
});
addEventListener("hashchange", () => {
  showRoute();
  document.getElementById("main").focus({ preventScroll: true });
  scrollTo(0, 0);
});
onConnection((connected) => {
  const status = document.getElementById("connection");
  status.textContent = connected ? "" : text("disconnected");
});
setInterval(() => {
  for (const age of document.querySelectorAll("[data-since]")) age.textContent = formatAge(Number(age.dataset.since));
}, 10_000);
applyTheme();
showRoute();
