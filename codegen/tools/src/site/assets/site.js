// The search, the colours, the menu on narrow windows, buttons that copy code, and the mark of the section in view.
"use strict";
{
  const root = document.body.dataset.root;
  const $ = (selector, within = document) => within.querySelector(selector);

  // Colours: as the system, light, dark; kept where the browser keeps things for files.
  const theme = $(".theme");
  const themes = ["", "light", "dark"];
  const titles = ["Colours: as the system", "Colours: light", "Colours: dark"];
  const label = () => theme.setAttribute("aria-label", titles[Math.max(0, themes.indexOf(document.documentElement.dataset.theme ?? ""))]);
  theme.addEventListener("click", () => {
    const next = themes[(themes.indexOf(document.documentElement.dataset.theme ?? "") + 1) % themes.length];
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("opsmith-theme", next); } catch { /* Kept for this page alone. */ }
    label();
  });
  label();

  // The menu.
  const menu = $(".menu"), sidebar = $(".sidebar");
  const setMenu = (open) => { sidebar.classList.toggle("open", open); menu.setAttribute("aria-expanded", open); };
  menu.addEventListener("click", () => setMenu(!sidebar.classList.contains("open")));
  $("main").addEventListener("click", () => setMenu(false));
  const here = $("[aria-current=page]", sidebar);
  if (here && sidebar.offsetParent) sidebar.scrollTop = here.offsetTop - sidebar.clientHeight / 3;

  // Code is copied by a button.
  if (navigator.clipboard) for (const block of document.querySelectorAll(".code")) {
    const button = document.createElement("button");
    button.type = "button"; button.className = "copy"; button.textContent = "Copy";
    button.addEventListener("click", () => navigator.clipboard.writeText($("pre", block).innerText).then(
      () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); },
      () => { button.textContent = "Select and copy"; }));
    block.append(button);
  }

  // The section in view.
  const entries = new Map([...document.querySelectorAll(".contents li")].map((item) => [decodeURIComponent($("a", item).hash.slice(1)), item]));
  if (entries.size && "IntersectionObserver" in window) {
    const headings = [...entries.keys()].map((id) => document.getElementById(id)).filter(Boolean);
    const mark = () => {
      const passed = headings.filter((heading) => heading.getBoundingClientRect().top < 120);
      const current = (passed.at(-1) ?? headings[0])?.id;
      for (const [id, item] of entries) item.classList.toggle("here", id === current);
    };
    const observer = new IntersectionObserver(mark, { rootMargin: "-100px 0px -60% 0px", threshold: [0, 1] });
    headings.forEach((heading) => observer.observe(heading));
    mark();
  }

  // The number of single changes, exchanges of neighbours among them, between two short words; `most` + 1 if more.
  const edits = (a, b, most) => {
    if (Math.abs(a.length - b.length) > most) return most + 1;
    let before = [], last = Array.from({ length: b.length + 1 }, (_, index) => index);
    for (let i = 1; i <= a.length; i++) {
      const row = [i];
      for (let j = 1; j <= b.length; j++) {
        const same = a[i - 1] === b[j - 1] ? 0 : 1;
        row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + same);
        if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j], before[j - 2] + 1);
      }
      [before, last] = [last, row];
    }
    return last[b.length];
  };

  // The places of the letters of a query in a text, in order, or nothing; the better the closer to starts of words.
  const scattered = (query, text) => {
    const places = [];
    let score = 0, from = 0;
    for (const letter of query) {
      const place = text.indexOf(letter, from);
      if (place < 0) return null;
      const isStart = place === 0 || /[^a-z0-9]/.test(text[place - 1]);
      score += place === from && places.length ? 3 : isStart ? 2 : -Math.min(3, place - from);
      places.push(place); from = place + 1;
    }
    return { score, places };
  };
  const range = (start, length) => Array.from({ length }, (_, index) => start + index);

  // The score of a row of the index for a query, and the letters to mark.
  const judge = (row, query) => {
    const { title, name, words, about } = row;
    if (title === query) return { score: 1000, places: range(0, query.length) };
    if (name === query) return { score: 900, places: range(0, query.length) };
    if (title.startsWith(query)) return { score: 800 - title.length, places: range(0, query.length) };
    if (words.includes(query)) return { score: 700, places: [] };
    const inside = title.indexOf(query);
    if (inside >= 0) return { score: (/[a-z0-9]/.test(title[inside - 1] ?? "") ? 520 : 640) - title.length, places: range(inside, query.length) };
    if (words.some((word) => word.includes(query))) return { score: 430, places: [] };
    if (query.length > 2) {
      const most = query.length > 5 ? 2 : 1;
      const count = Math.min(edits(query, name, most), edits(query, name.slice(0, query.length), most) + .5);
      if (count <= most + .5) return { score: 420 - 60 * count - title.length, places: [] };
      if (about.includes(query)) return { score: 240, places: [] };
    }
    const loose = scattered(query, title);
    return loose && loose.score > -query.length ? { score: 120 + 8 * loose.score - title.length, places: loose.places } : null;
  };

  // The search.
  const finder = $(".finder"), input = $("input", finder), list = $("#found"), hint = $(".hint", finder);
  const rank = { operator: 0, guide: 5, family: -5, page: 0, formula: -60 };
  const index = (window.opsmithIndex ?? []).map(([title, page, kind, about, words]) => ({
    shown: title, page, kind, text: about, title: title.toLowerCase(), name: title.toLowerCase().split(".")[0],
    about: about.toLowerCase(), words: words.toLowerCase().split(/[ .:]+/).concat(words.toLowerCase().split(" ")),
  }));
  let found = [], selected = 0;
  const select = (number) => {
    selected = (number + found.length) % Math.max(1, found.length);
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", at === selected));
    const item = list.children[selected];
    if (item) { input.setAttribute("aria-activedescendant", item.id); item.scrollIntoView({ block: "nearest" }); }
    else input.removeAttribute("aria-activedescendant");
  };
  const marked = (text, places) => {
    const element = document.createElement("b");
    const marks = new Set(places);
    for (let at = 0; at < text.length; at++) {
      if (marks.has(at)) { const mark = document.createElement("mark"); mark.textContent = text[at]; element.append(mark); }
      else element.append(text[at]);
    }
    return element;
  };
  const find = () => {
    const query = input.value.trim().toLowerCase();
    const judged = query ? index.map((row) => ({ row, ...judge(row, query) })).filter((hit) => hit.score !== undefined) : [];
    judged.sort((a, b) => (b.score + rank[b.row.kind]) - (a.score + rank[a.row.kind]) || (a.row.title < b.row.title ? -1 : 1));
    found = judged.slice(0, 30);
    list.replaceChildren(...found.map(({ row, places }, at) => {
      const item = document.createElement("li");
      item.id = `found-${at}`; item.setAttribute("role", "option");
      const kind = document.createElement("span"); kind.className = "kind"; kind.textContent = row.kind;
      const about = document.createElement("span"); about.className = "about"; about.textContent = row.text;
      item.append(kind, marked(row.shown, places), about);
      item.addEventListener("click", () => go(at));
      item.addEventListener("pointermove", () => { if (selected !== at) select(at); });
      return item;
    }));
    hint.textContent = !query ? "Names, names in other libraries, words of summaries; small mistakes are forgiven"
      : found.length ? `${judged.length} found; arrows choose, Enter opens` : `Nothing is called “${input.value.trim()}”`;
    input.setAttribute("aria-expanded", found.length > 0);
    select(0);
  };
  const go = (at) => { if (found[at]) location.href = root + found[at].row.page; };
  const open = () => { if (!finder.open) { finder.showModal(); input.select(); find(); } };
  input.addEventListener("input", find);
  input.addEventListener("keydown", (event) => {
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves) { event.preventDefault(); select(selected + moves[event.key]); }
    else if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); go(selected); }
  });
  $(".search").addEventListener("click", open);
  $(".close", finder).addEventListener("click", () => finder.close());
  finder.addEventListener("click", (event) => { if (event.target === finder) finder.close(); });
  document.addEventListener("keydown", (event) => {
    const writes = event.target.closest?.("input, textarea, select, [contenteditable]");
    const asks = event.key === "/" && !writes && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (asks || (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey))) { event.preventDefault(); open(); }
    else if (event.key === "Escape" && sidebar.classList.contains("open")) { setMenu(false); menu.focus(); }
  });
}
