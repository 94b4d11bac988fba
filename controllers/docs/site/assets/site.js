// SPDX-License-Identifier: Apache-2.0
"use strict";

// Everything but the search works without this.
(() => {
  const limit = 40, around = 60, after = 160;
  const root = document.documentElement.dataset.root;
  const form = document.querySelector("form.search");
  const input = form.querySelector("input");
  const results = form.querySelector(".results");
  const list = results.querySelector("ol");
  const words = form.dataset;
  let sections, reading;

  // Browsers that cannot show a closed element by style get it opened where there is room.
  if (!CSS.supports("selector(::details-content)")) {
    if (matchMedia("(min-width: 62rem)").matches) document.querySelector(".pages > .wide").open = true;
    const contents = document.querySelector(".contents > .wide");
    if (contents && matchMedia("(min-width: 86rem)").matches) contents.open = true;
  }

  // The page is in view in the list of pages, where that is long.
  const pages = document.querySelector(".pages > .wide"), current = pages.querySelector("[aria-current]");
  if (current) pages.scrollTop = current.offsetTop - pages.clientHeight / 2;

  // A script is the one thing that a page may read from a disk.
  const readScript = (name) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = root + name;
    script.onload = resolve;
    script.onerror = reject;
    document.head.append(script);
  });

  const readIndex = () => {
    reading ||= Promise.all(words.indexes.split(" ").map(readScript)).then(() => {
      sections = window.regattaPages.flatMap((page) => page.s.map(([anchor, heading, text], i) => ({
        href: root + page.p + (i > 0 ? "#" + encodeURIComponent(anchor) : ""),
        title: page.t, heading: i > 0 ? heading : "", text, lang: page.l,
        titleLower: page.t.toLowerCase(), headingLower: heading.toLowerCase(), textLower: text.toLowerCase(), first: i === 0,
      })));
    }).catch((error) => { reading = undefined; throw error; });
    return reading;
  };

  // rateSection is 0 unless a section has all terms, somewhere.
  const rateSection = (section, terms) => {
    let rate = 0;
    for (const term of terms) {
      let found = 0;
      if (section.headingLower.includes(term)) found += section.first ? 20 : 10;
      if (section.titleLower.includes(term)) found += 2;
      if (section.textLower.includes(term)) found += 1;
      if (found === 0) return 0;
      rate += found;
    }
    return section.lang === document.documentElement.lang ? rate + 1 : rate;
  };

  // appendMarked adds a text with the terms in bold, as text: nothing of it becomes HTML.
  const appendMarked = (parent, text, terms) => {
    const lower = text.toLowerCase();
    for (let at = 0; at < text.length;) {
      let next = -1, length = 0;
      for (const term of terms) {
        const i = lower.indexOf(term, at);
        if (i >= 0 && (next < 0 || i < next)) [next, length] = [i, term.length];
      }
      if (next < 0) { parent.append(text.slice(at)); return; }
      const found = document.createElement("b");
      found.textContent = text.slice(next, next + length);
      parent.append(text.slice(at, next), found);
      at = next + length;
    }
  };

  const showResult = (section, terms) => {
    const item = document.createElement("li"), link = document.createElement("a");
    const title = document.createElement("strong"), text = document.createElement("span");
    link.href = section.href;
    link.lang = section.lang;
    appendMarked(title, section.heading ? section.title + " › " + section.heading : section.title, terms);
    if (words.foreign && section.lang !== document.documentElement.lang) {
      const mark = document.createElement("span");
      mark.className = "mark";
      mark.lang = document.documentElement.lang;
      mark.textContent = words.foreign;
      title.append(" ", mark);
    }
    const places = terms.map((term) => section.textLower.indexOf(term)).filter((i) => i >= 0);
    const start = Math.max(0, Math.min(...(places.length ? places : [0])) - around);
    const end = start + around + after;
    text.className = "text";
    appendMarked(text, (start > 0 ? "…" : "") + section.text.slice(start, end) + (end < section.text.length ? "…" : ""), terms);
    link.append(title, text);
    item.append(link);
    return item;
  };

  // showStatus tells readers of screens, who hear nothing of what was hidden before, and others.
  const showStatus = (sentence) => {
    for (const place of form.querySelectorAll("p")) place.textContent = sentence;
  };

  const closeResults = () => { results.hidden = true; };

  const search = async () => {
    const query = input.value.trim().toLowerCase();
    if (!query) { list.replaceChildren(); closeResults(); return; }
    results.hidden = false;
    if (!sections) {
      showStatus(words.loading);
      try { await readIndex(); } catch { showStatus(words.failed); return; }
      // There may be more to look for by now.
      return search();
    }
    const terms = [...new Set(query.split(/\s+/))];
    const found = sections.map((section) => [rateSection(section, terms), section]).filter(([rate]) => rate > 0);
    found.sort(([a], [b]) => b - a);
    list.replaceChildren(...found.slice(0, limit).map(([, section]) => showResult(section, terms)));
    const sentence = found.length === 0 ? words.none : found.length > limit ? words.first : words.some;
    showStatus(sentence.replace("{n}", found.length).replace("{m}", limit));
  };

  const moveFocus = (event) => {
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "Escape") {
      // The focus opens them, so that they are closed after it.
      input.focus();
      closeResults();
    } else if (event.key === "ArrowDown" && !results.hidden && links.length) {
      links[Math.min(at + 1, links.length - 1)].focus();
    } else if (event.key === "ArrowUp" && at >= 0) {
      (at === 0 ? input : links[at - 1]).focus();
    } else {
      return;
    }
    event.preventDefault();
  };

  form.hidden = false;
  input.addEventListener("focus", () => { readIndex().catch(() => {}); if (input.value.trim()) search(); });
  input.addEventListener("input", search);
  form.addEventListener("keydown", (event) => { if (!event.isComposing) moveFocus(event); });
  form.addEventListener("submit", (event) => { event.preventDefault(); list.querySelector("a")?.click(); });
  list.addEventListener("click", closeResults);
  document.addEventListener("click", (event) => { if (!form.contains(event.target)) closeResults(); });
  form.addEventListener("focusout", (event) => { if (event.relatedTarget && !form.contains(event.relatedTarget)) closeResults(); });
})();
