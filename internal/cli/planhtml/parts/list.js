// The list of units that were found, and what is chosen.
const state = { chosen: -1, near: -1, query: "", only: new Set(), found: units.map(() => true), where: units.map(() => ""), hits: [], home: "map", missing: "", quiet: true };
const list = byId("list");

const rows = units.map((u, i) => {
  const mark = badge(u);
  return make("div", { role: "option", id: "row" + i, "data-i": i, tabindex: "-1", "aria-selected": "false", title: said(u), class: "row k-" + u.kind.id },
    make("span", { class: "sign", "aria-hidden": "true" }, u.kind.sign),
    make("span", { class: "name" }, make("span", {}, ...soft(u.short)), make("span", { class: "where" })),
    make("span", { class: "unseen" }, ": " + u.kind.word + " "), mark ? make("span", { class: "badge" }, mark) : "");
});
const groups = folders.map((f, k) => {
  if (folders.length < 2 && !f.name) return make("div", { role: "group", "aria-label": "All" });
  const name = make("span", {}, ...soft(f.name || "(top)"));
  return make("div", { role: "group", "aria-labelledby": "folder" + k }, make("div", { class: "folder", id: "folder" + k, role: "presentation" }, name));
});

const chips = filters.map((k) => ({ k, n: units.filter((u) => k.is(u)).length })).filter((c) => c.n > 0).map(({ k, n }) => {
  const b = make("button", { type: "button", class: "chip k-" + k.id, "aria-pressed": "false", "data-kind": k.id }, make("span", { class: "sign", "aria-hidden": "true" }, k.sign), `${k.word} ${n}`);
  b.addEventListener("click", () => {
    if (!state.only.delete(k.id)) state.only.add(k.id);
    search();
  });
  return b;
});
byId("chips").append(...chips);

// The legend: what the signs of units mean, and those of their counts.
byId("legend").append(
  ...kinds.filter((k) => units.some((u) => u.kind === k)).map((k) => make("li", { class: "k-" + k.id }, make("span", { class: "sign", "aria-hidden": "true" }, k.sign), k.word)),
  ...[["+1", compares ? "added" : "to add", 0], ["~1", compares ? "changed" : "to change", 1], ["−1", compares ? "removed" : "to destroy", 2], ["→1", "to import", 3], [".1", "to forget", 4], ["…1", "deferred", 5], ["——", "needs", 6], ["- -", "is needed by", 7]]
    .filter(([, , n]) => n > 5 || units.some((u) => (n === 5 ? u.w : count(u, n) > 0)))
    .map(([s, w, n]) => make("li", {}, make("span", { "aria-hidden": "true", class: n > 5 ? "line" + n : "count" }, s), w)));
byId("about").textContent = byId("about").title = [totals(units), doc.from, doc.command, doc.made, doc.program].filter((x) => x).join(" · ");

// totals counts what some units do.
function totals(some) {
  const total = [0, 0, 0, 0, 0];
  let put = 0;
  for (const u of some) {
    (u.c || []).forEach((n, k) => { total[k] += n; });
    put += u.w ? u.w.length : 0;
  }
  const parts = compares ? [`${total[0]} added`, `${total[1]} changed`, `${total[2]} removed`] : [`${total[0]} to add`, `${total[1]} to change`, `${total[2]} to destroy`];
  if (total[3]) parts.unshift(`${total[3]} to import`);
  if (total[4]) parts.push(`${total[4]} to forget`);
  if (put) parts.push(`${put} deferred`);
  return parts.join(", ");
}

// search finds the units that have every word of the query and are of one of the
// kinds that are asked for.
function search() {
  const r = find(state.query, state.only);
  Object.assign(state, r);
  const n = r.found.filter((x) => x).length;
  if (state.near >= 0 && !state.found[state.near]) state.near = -1;
  for (const b of chips) b.setAttribute("aria-pressed", state.only.has(b.dataset.kind));
  byId("found").textContent = single ? "" : n === units.length ? plural(n, noun) : `${n} of ${plural(units.length, noun)}`;
  list.replaceChildren(...folders.flatMap((f, k) => {
    const mine = f.units.filter((i) => state.found[i]);
    for (const i of mine) rows[i].querySelector(".where").textContent = r.where[i];
    const head = groups[k].querySelector(".folder");
    groups[k].replaceChildren(...(head ? [head] : []), ...mine.map((i) => rows[i]));
    return mine.length > 0 ? [groups[k]] : [];
  }));
  byId("none").textContent = n > 0 ? "" : units.length ? `No ${noun} is like that.` : compares ? "Nothing differs." : `There are no ${noun}s.`;
  list.hidden = n === 0;
  showMatches();
  showChosen();
  listStop();
  showPanel();
  remember(false);
}

// listStop makes one row the one that the tab key stops at.
function listStop() {
  for (const r of list.querySelectorAll('[tabindex="0"]')) r.setAttribute("tabindex", "-1");
  const at = state.chosen >= 0 && state.found[state.chosen] ? state.chosen : firstFound();
  if (at >= 0) rows[at].setAttribute("tabindex", "0");
}

// firstFound is the first unit that was found, by its name if there is one.
function firstFound() {
  const ok = listed.filter((n) => state.found[n]), named = ok.find((n) => state.where[n] === "");
  return named !== undefined ? named : ok.length > 0 ? ok[0] : -1;
}

// choose shows a unit, or with -1 the whole. A step that walking makes replaces the one
// before it in the browser's history.
function choose(i, walking) {
  const before = state.chosen;
  if (before >= 0) rows[before].setAttribute("aria-selected", "false");
  if (i < 0) state.near = before;
  state.chosen = i;
  state.missing = "";
  if (i >= 0) {
    rows[i].setAttribute("aria-selected", "true");
    if (state.found[i]) rows[i].scrollIntoView({ block: "nearest" });
  }
  showChosen();
  listStop();
  showPanel();
  tellUnder(i);
  remember(before !== i && !(walking && before >= 0));
}

// back leaves the details, or the unit.
function back() {
  const inside = panel.contains(document.activeElement);
  const i = state.chosen;
  if (!inside || i < 0 || document.activeElement.classList.contains("close")) choose(-1);
  if (i < 0 || !inside) return;
  (state.home === "list" && state.found[i] ? rows[i] : map.hits[i]).focus();
}

// remember keeps in the address what is looked at, so that it can be sent to others
// and the browser's keys for back and forward lead through it.
function remember(push) {
  if (state.quiet) return;
  const p = new URLSearchParams();
  if (state.chosen >= 0) p.set("unit", units[state.chosen].n);
  if (state.query) p.set("q", state.query);
  if (state.only.size > 0) p.set("show", [...state.only].join(","));
  const hash = "#" + p.toString().replaceAll("%2F", "/");
  if (hash === (location.hash || "#")) return;
  try {
    if (push) history.pushState(null, "", hash);
    else history.replaceState(null, "", hash);
  } catch { /* some browsers do not let files do this */ }
}

// recall shows what the address says. "#NAME" alone is a unit, too.
function recall() {
  const p = new URLSearchParams(location.hash.slice(1));
  let name = p.get("unit");
  if (name === null && location.hash.length > 1 && !p.has("q") && !p.has("show")) {
    try { name = decodeURIComponent(location.hash.slice(1)); } catch { name = location.hash.slice(1); }
  }
  state.quiet = true;
  state.query = p.get("q") || "";
  byId("q").value = state.query;
  state.only = new Set((p.get("show") || "").split(",").filter((id) => filters.some((k) => k.id === id)));
  const i = units.findIndex((u) => u.n === name);
  search();
  choose(i);
  if (i >= 0) reveal(i);
  else if (name) {
    state.missing = name;
    showPanel();
  }
  state.quiet = false;
}
