// The list of units that were found, the search, and what is chosen.
const state = { chosen: -1, near: -1, query: "", only: new Set(), found: units.map(() => true), home: "map" };
const list = byId("list");

const rows = units.map((u, i) => {
  const mark = badge(u);
  return make("li", { role: "option", id: "row" + i, "data-i": i, tabindex: "-1", "aria-selected": "false", title: said(u), class: "k-" + u.kind.id },
    make("span", { class: "sign", "aria-hidden": "true" }, u.kind.sign), make("span", { class: "name" }, u.n), make("span", { class: "unseen" }, ": " + u.kind.word + " "), mark ? make("span", { class: "badge" }, mark) : "");
});

const chips = kinds.map((k) => ({ k, n: units.filter((u) => k.is(u)).length })).filter((c) => c.n > 0).map(({ k, n }) => {
  const b = make("button", { type: "button", class: "chip k-" + k.id, "aria-pressed": "false", "data-kind": k.id }, make("span", { class: "sign", "aria-hidden": "true" }, k.sign), `${k.word} ${n}`);
  b.addEventListener("click", () => {
    if (!state.only.delete(k.id)) state.only.add(k.id);
    search();
  });
  return b;
});
byId("chips").append(...chips);
byId("legend").append(...[["+n", "to add", 0], ["~n", "to change", 1], ["−n", "to destroy", 2], ["→n", "to import", 3], [".n", "to forget", 4], ["…n", "deferred", 5], ["——", "needs"], ["- -", "needed by"]]
  .filter(([, , n]) => n === undefined || units.some((u) => (n === 5 ? u.w : count(u, n) > 0)))
  .map(([s, w]) => make("li", {}, make("span", { "aria-hidden": "true" }, s), w)));
byId("about").textContent = [doc.command, doc.made, doc.program].filter((x) => x).join(" · ");

// search finds the units that have every word of the query and are of one of the
// kinds that are asked for.
function search() {
  const all = state.query.toLowerCase().split(/\s+/).filter((w) => w);
  const asked = kinds.filter((k) => state.only.has(k.id));
  let n = 0;
  state.found = units.map((u) => {
    const ok = (asked.length === 0 || asked.some((k) => k.is(u))) && all.every((w) => words(u).includes(w));
    if (ok) n++;
    return ok;
  });
  if (state.near >= 0 && !state.found[state.near]) state.near = -1;
  for (const b of chips) b.setAttribute("aria-pressed", state.only.has(b.dataset.kind));
  byId("found").textContent = n === units.length ? plural(n, "unit") : `${n} of ${plural(units.length, "unit")}`;
  list.replaceChildren(...rows.filter((r, i) => state.found[i]));
  if (n === 0) list.append(make("li", { role: "presentation", class: "none" }, units.length ? "No unit is like that." : "There are no units."));
  showMatches();
  showChosen();
  listStop();
  remember();
}

// listStop makes one row the one that the tab key stops at.
function listStop() {
  for (const r of list.querySelectorAll('[tabindex="0"]')) r.setAttribute("tabindex", "-1");
  const at = state.chosen >= 0 && state.found[state.chosen] ? state.chosen : state.found.indexOf(true);
  if (at >= 0) rows[at].setAttribute("tabindex", "0");
}

// choose shows a unit, or with -1 the whole.
function choose(i) {
  if (state.chosen >= 0) rows[state.chosen].setAttribute("aria-selected", "false");
  if (i < 0) state.near = state.chosen;
  state.chosen = i;
  if (i >= 0) {
    rows[i].setAttribute("aria-selected", "true");
    if (state.found[i]) rows[i].scrollIntoView({ block: "nearest" });
  }
  showChosen();
  listStop();
  showPanel();
  remember();
}

// back leaves the details, or the unit.
function back() {
  const inside = panel.contains(document.activeElement);
  const i = state.chosen;
  if (!inside || i < 0 || document.activeElement.classList.contains("close")) choose(-1);
  if (i < 0 || !inside) return;
  (state.home === "list" && state.found[i] ? rows[i] : map.boxes[i]).focus();
}

// remember keeps in the address what is looked at, so that it can be sent to others.
function remember() {
  const p = new URLSearchParams();
  if (state.chosen >= 0) p.set("unit", units[state.chosen].n);
  if (state.query) p.set("q", state.query);
  if (state.only.size > 0) p.set("show", [...state.only].join(","));
  try {
    history.replaceState(null, "", "#" + p);
  } catch { /* some browsers do not let files do this */ }
}

function recall() {
  const p = new URLSearchParams(location.hash.slice(1));
  state.query = p.get("q") || "";
  byId("q").value = state.query;
  state.only = new Set((p.get("show") || "").split(",").filter((id) => kinds.some((k) => k.id === id)));
  const i = units.findIndex((u) => u.n === p.get("unit"));
  search();
  choose(i);
  if (i >= 0) reveal(i);
}
