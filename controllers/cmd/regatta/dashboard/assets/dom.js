// SPDX-License-Identifier: Apache-2.0
// Elements of the page are made here. All text goes into text nodes, so that no text of the cluster is read as markup.

const svg = "http://www.w3.org/2000/svg";
const svgTags = new Set(["svg", "path", "line", "text", "g", "title"]);

/** Makes an element. Attributes that start with "on" are event listeners; false and undefined leave an attribute out. */
export function makeElement(tag, attributes = {}, ...children) {
  const element = svgTags.has(tag) ? document.createElementNS(svg, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else if (value !== false && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  appendChildren(element, children);
  return element;
}

function appendChildren(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false) element.append(child);
  }
}

/** Replaces the children of an element. */
export function replaceChildren(element, ...children) {
  element.replaceChildren();
  appendChildren(element, children);
}

/** Replaces the children of an element if value is another one than at the last call, so that nothing is read out twice. */
export function replaceIfChanged(element, value, draw) {
  const shown = JSON.stringify(value);
  if (element.drawnValue === shown) return;
  element.drawnValue = shown;
  replaceChildren(element, draw());
}

/**
 * Makes the children of parent those of items, in their order. An element stays while its item has the same key, and draw is
 * called again only for an item that is another object than before: with the old element, to change it, or without.
 */
export function reconcileChildren(parent, items, keyOf, draw) {
  const before = parent.drawnItems ?? new Map();
  const now = new Map(items.map((item) => [keyOf(item), item]));
  // What is gone goes first: else each of the others would have to move.
  for (const [key, old] of before) {
    if (!now.has(key)) old.element.remove();
  }
  let place = parent.firstChild;
  parent.drawnItems = new Map();
  for (const [key, item] of now) {
    const old = before.get(key);
    let element = old?.element;
    if (old?.item !== item) {
      const drawn = draw(item, element);
      if (element && drawn !== element) {
        if (place === element) place = drawn;
        const hadFocus = element.contains(document.activeElement);
        element.replaceWith(drawn);
        if (hadFocus) drawn.querySelector("a, button")?.focus();
      }
      element = drawn;
    }
    parent.drawnItems.set(key, { item, element });
    if (element === place) place = place.nextSibling;
    else parent.insertBefore(element, place);
  }
}

/** Makes a table with a head. Columns are texts. */
export function makeTable(caption, columns, body) {
  return makeElement("div", { class: "scroll" }, makeElement("table", {},
    makeElement("caption", {}, caption),
    makeElement("thead", {}, makeElement("tr", {}, columns.map((c) => makeElement("th", { scope: "col" }, c)))),
    body));
}

/** Makes a select element. options are pairs of a value and a text. */
export function makeSelect(label, options, value, onchange) {
  const select = makeElement("select", { onchange: () => onchange(select.value) });
  setOptions(select, options, value);
  return makeElement("label", { class: "choice" }, label, " ", select);
}

/** Replaces the options of a select element unless they are the same. */
export function setOptions(select, options, value) {
  const text = JSON.stringify(options);
  if (select.dataset.options !== text) {
    select.dataset.options = text;
    replaceChildren(select, options.map(([v, name]) => makeElement("option", { value: v }, name)));
  }
  if (select.value !== value) select.value = value;
}
