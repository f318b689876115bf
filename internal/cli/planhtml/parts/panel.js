// The panel: what changes in the units that were found, or one unit.
const opSigns = { create: "+", update: "~", delete: "−", read: "≤", forget: ".", "delete-create": "±", "create-delete": "±", "forget-create": "±" };
const panel = byId("panel");
const narrow = window.matchMedia("(max-width: 1000px)");

function goTo(i, label) {
  return make("button", { type: "button", class: "go k-" + units[i].kind.id, title: said(units[i]), onclick: () => { choose(i); reveal(i); enter(); } },
    make("span", { class: "sign", "aria-hidden": "true" }, units[i].kind.sign), make("bdi", {}, ...soft(label || units[i].n)));
}

// some puts a list into a place piece by piece, with a button for the next ones.
function some(host, list, step, write) {
  let at = 0;
  const more = () => {
    const begin = at;
    for (; at < list.length && at < begin + step; at++) host.append(write(list[at]));
    if (at < list.length) {
      const b = make("button", { type: "button", class: "more" }, `Show ${Math.min(step, list.length - at)} more of ${list.length - at}`);
      b.addEventListener("click", () => {
        const before = b.previousElementSibling;
        b.remove();
        more();
        const next = before && before.nextElementSibling;
        const target = next && (next.matches("button, summary, [tabindex]") ? next : next.querySelector("button, summary, [tabindex]"));
        if (target) target.focus();
      });
      host.append(b);
    }
  };
  more();
  return host;
}

const gos = (list) => some(make("p", { class: "gos" }), list, 20, (i) => goTo(i));

// fold is something that opens; what is in it is written then.
function fold(cls, head, open, write) {
  const body = make("div", { class: "body" });
  const d = make("details", { class: cls }, make("summary", {}, ...head), body);
  d.fill = () => { if (!body.firstChild) body.append(...write()); };
  d.addEventListener("toggle", () => { if (d.open) d.fill(); });
  if (open) {
    d.fill();
    d.open = true;
  }
  return d;
}

const hitChange = (n) => state.hits.some((h) => h.changes[n]);

function changeHead(c, name, note) {
  return [make("span", { class: "sign", "aria-hidden": "true" }, opSigns[c.op] || "·"), make("span", { class: "what" }, ...soft(name)), note ? make("span", { class: "note" }, ...soft(note)) : ""];
}

// changeView is one change. from are the units that it is shown of, null for one unit.
function changeView(n, open, from, whose) {
  const c = doc.changes[n], all = users[n].length;
  const note = from ? (from.length > 1 ? `the same in ${plural(from.length, noun)}` : single ? "" : units[from[0]].n) : all > 1 ? `the same in ${plural(all - 1, "other " + noun)}` : "";
  const others = () => fold("others", [`The other ${noun}s`], false, () => [gos(users[n].filter((i) => i !== state.chosen))]);
  return fold("change o-" + (c.op || "none") + (hitChange(n) ? " found" : ""), changeHead(c, from && c.op !== "no-op" ? shortName(n) : changeName(n), note), open,
    () => [whose ? make("p", { class: "note" }, "What does not change is that of ", make("bdi", {}, units[from[0]].n), ".") : "", diff(c.l, causesOf(n, from || [state.chosen])), from ? (single ? "" : gos(from)) : all > 1 ? others() : ""].filter((x) => x));
}

// changing is what changes by a change: updates that differ in what stays alone are alike.
function changing(n) {
  const c = doc.changes[n];
  if (c.changing === undefined) {
    const kind = c.op === "update" ? kindsOf(c.l) : [];
    c.changing = c.op === "update" ? c.l.filter((l, i) => kind[i] !== "").join() : "=" + n;
  }
  return c.changing;
}

// What changes have in common is told before what each of them is about.
const sections = [
  ["Changed lines", (c) => c.k === 3], ["Found changed outside", (c) => !c.k], ["To destroy", (c) => c.op === "delete" && c.k === 1], ["To replace", (c) => /-create|create-/.test(c.op) && c.k === 1], ["To forget", (c) => c.op === "forget" && c.k === 1],
  ["To change", (c) => c.op === "update" && c.k === 1], ["To create", (c) => c.op === "create" && c.k === 1], ["To read", (c) => c.op === "read" && c.k === 1], ["Other changes", (c) => c.k === 1], ["Outputs", () => true],
];

// alike are the changes of the units that were found, those with the same name together,
// the ones in most units first.
function alike() {
  const by = new Map();
  const searched = state.hits.length > 0 && doc.changes.some((c, n) => hitChange(n) && users[n].some((i) => state.found[i]));
  doc.changes.forEach((c, n) => {
    const mine = users[n].filter((i) => state.found[i]);
    if (mine.length === 0 || searched && !hitChange(n)) return;
    const key = `${c.k || 0} ${c.op || ""} ${c.t}`;
    if (!by.has(key)) by.set(key, { c, n, ways: new Map(), units: new Set() });
    const g = by.get(key), way = g.ways.get(changing(n));
    if (way) {
      way.mine.push(...mine);
      way.whose = true;
    } else g.ways.set(changing(n), { n, mine, whose: false });
    for (const i of mine) g.units.add(i);
  });
  const left = [...by.values()].sort((a, b) => b.units.size - a.units.size || a.n - b.n);
  return sections.map(([title, is]) => {
    const list = left.filter((g) => !g.taken && is(g.c));
    for (const g of list) g.taken = true;
    return { title, list };
  }).filter((s) => s.list.length > 0);
}

function alikeView(g) {
  const of = [...g.ways.values()].sort((a, b) => b.mine.length - a.mine.length || a.n - b.n);
  if (of.length === 1) return changeView(of[0].n, single, of[0].mine, of[0].whose);
  return fold("change o-" + (g.c.op || "none"), changeHead(g.c, g.c.op !== "no-op" ? shortName(g.n) : changeName(g.n), `in ${plural(g.units.size, noun)}, ${of.length} ways`), false,
    () => [some(make("div", { class: "ways" }), of, 20, (x) => changeView(x.n, false, x.mine, x.whose))]);
}

function section(title, ...inside) {
  return make("section", {}, make("h3", {}, title), ...inside);
}

function waitView(w) {
  const li = make("li", { class: state.hits.some((h) => waitHit(w, h)) ? "found" : undefined }, make("code", {}, text(w.a) || "all of it"), ": " + text(w.y), w.at ? make("span", { class: "place" }, " " + text(w.at)) : "");
  if (w.for) {
    li.append(make("ul", { class: "waits" }, ...w.for.map((f) => make("li", {}, "waits for ", make("code", {}, text(f[1])), " of ", f[0] >= 0 ? goTo(f[0]) : "a unit that is not here",
      f[2] ? ", input " : "", f[2] ? make("code", {}, text(f[2])) : "", f[3] ? make("span", { class: "place" }, " " + text(f[3])) : ""))));
  }
  return li;
}

function stepView(n) {
  const [what, file, line, column, role, replaced] = doc.steps[n];
  return make("li", { class: replaced ? "replaced" : undefined }, make("span", { class: "what" }, text(what)), " ",
    make("code", { class: "place" }, `${text(file)}:${line}:${column}`), text(role) ? make("span", { class: "role" }, text(role)) : "");
}

function inputView(x) {
  const value = text(x.v);
  return make("li", { class: state.hits.some((h) => inputHit(x, h)) ? "found" : undefined }, make("code", { class: "key" }, text(x.n)), value ? " = " : "", value ? make("code", { class: "value" }, value) : "",
    x.p ? make("ol", { class: "way" }, ...x.p.map(stepView)) : make("p", { class: "place" }, "Its way cannot be told."));
}

// hitsBar leads from one place that the search found to the next.
function hitsBar() {
  const places = [...panel.querySelectorAll(".found")].filter((el) => !el.querySelector(".found"));
  if (state.hits.length === 0 || places.length === 0) return;
  let at = -1;
  const b = make("button", { type: "button" }, "Next place");
  b.addEventListener("click", () => {
    at = (at + 1) % places.length;
    const el = places[at].matches("summary, .change") ? places[at].querySelector("summary") || places[at] : places[at];
    el.tabIndex = el.tabIndex >= 0 ? 0 : -1;
    el.scrollIntoView({ block: "center" });
    for (const o of places) o.classList.toggle("now", o === places[at]);
    b.textContent = `Next place (${at + 1} of ${places.length})`;
  });
  panel.querySelector(".summary").after(make("p", { class: "hits" }, `The search stands in ${plural(places.length, "place")} here. `, b));
}

function unitView(i) {
  const u = units[i], out = [];
  out.push(make("div", { class: "title k-" + u.kind.id },
    make("h2", { tabindex: "-1", id: "chosen" }, make("span", { class: "sign", "aria-hidden": "true" }, u.kind.sign), make("bdi", {}, ...soft(u.n))),
    make("button", { type: "button", class: "close", "aria-label": compares ? "Back to all differences" : "Back to the whole estate", onclick: back }, "×")));
  out.push(make("p", { class: "summary" }, text(u.t) || u.kind.word));
  if (u.m) out.push(section(`Messages (${u.m.length})`, ...u.m.map(messageView)));
  if (u.w) out.push(section(`Deferred (${u.w.length})`, some(make("ul", { class: "plain" }), u.w, 100, waitView)));
  for (const [kind, title] of [[3, "Changed lines"], [0, "Found changed outside"], [1, "Changes"], [2, "Outputs"]]) {
    const mine = (u.x || []).filter((c) => (doc.changes[c].k || 0) === kind);
    if (mine.length > 0) out.push(section(`${title} (${mine.length})`, some(make("div"), mine, 100, (c) => changeView(c, mine.length <= 20 || hitChange(c), null))));
  }
  if (u.i) out.push(section(`Inputs (${u.i.length})`, some(make("ul", { class: "plain inputs" }), u.i, 200, inputView)));
  if (u.needs.length > 0) out.push(section(`Needs (${u.needs.length})`, gos(u.needs)));
  if (neededBy[i].length > 0) out.push(section(`Needed by (${neededBy[i].length})`, gos(neededBy[i])));
  return out;
}

function messageView(m) {
  return make("pre", { class: "message " + (m.error ? "error" : "warning"), tabindex: "0", role: "group", "aria-label": m.error ? "Error" : "Warning" }, m.lines.map(text).join("\n"));
}

// merged are the errors or the warnings of units, those of most units first. Equal ones are one.
function merged(found, error) {
  const by = new Map();
  for (const i of found) {
    for (const m of units[i].m || []) {
      if (!!m.error !== error) continue;
      const key = m.lines.join();
      if (!by.has(key)) by.set(key, { m, of: [] });
      by.get(key).of.push(i);
    }
  }
  const all = [...by.values()].sort((a, b) => b.of.length - a.of.length || a.of[0] - b.of[0]);
  if (all.length === 0) return "";
  const head = (w) => (w.m.lines.map(text).find((l) => l.trim()) || "").replace(/^(Error|Warning): /, "");
  return section(`${error ? "Errors" : "Warnings"} (${all.length})`, some(make("div"), all, 20, (w) => fold("change " + (error ? "error" : "warning"), [make("span", { class: "sign", "aria-hidden": "true" }, error ? "×" : "!"), make("span", { class: "what" }, head(w)),
    make("span", { class: "note" }, w.of.length > 1 ? `in ${w.of.length} units` : units[w.of[0]].n)], false, () => [messageView(w.m), gos(w.of)])));
}

// troubles are the units of a kind, by what happened to them.
function troubles(k, found) {
  const by = new Map();
  for (const i of found) {
    if (units[i].kind === k) by.set(units[i].t, [...(by.get(units[i].t) || []), i]);
  }
  const all = [...by].sort((a, b) => b[1].length - a[1].length || a[1][0] - b[1][0]);
  const n = all.reduce((sum, [, list]) => sum + list.length, 0);
  if (n === 0) return "";
  return section(`${k.word[0].toUpperCase()}${k.word.slice(1)} (${n})`, some(make("ul", { class: "plain" }), all, 5, ([t, list]) => make("li", {}, make("p", {}, text(t)), some(make("p", { class: "gos" }), list, 10, (i) => goTo(i)))));
}

function estateView() {
  const found = listed.filter((i) => state.found[i]), whole = found.length === units.length, out = [];
  out.push(make("div", { class: "title" }, make("h2", { tabindex: "-1", id: "chosen" }, whole ? (compares ? "All differences" : "The whole estate") : plural(found.length, noun) + " of " + units.length)));
  if (state.missing) out.push(make("p", { class: "message" }, `There is no ${noun} `, make("bdi", {}, state.missing), " on this page."));
  out.push(make("p", { class: "summary" }, totals(found.map((i) => units[i])) + "."));
  for (const k of kinds.slice(0, 2)) out.push(troubles(k, found));
  out.push(merged(found, true), merged(found, false));
  const changes = alike();
  for (const s of changes) out.push(section(`${s.title} (${s.list.length})`, some(make("div"), s.list, 40, alikeView)));
  const waiting = found.filter((i) => units[i].w);
  if (waiting.length > 0) out.push(section(`Deferred (${plural(waiting.length, "unit")})`, some(make("div"), waiting, 20, (i) => make("div", {}, make("h4", {}, goTo(i)), some(make("ul", { class: "plain" }), units[i].w, 10, waitView)))));
  if (changes.length === 0 && waiting.length === 0) out.push(make("p", {}, compares ? "No value differs." : "Nothing changes."));
  return out.filter((x) => x);
}

function showPanel() {
  panel.replaceChildren(...(state.chosen >= 0 ? unitView(state.chosen) : estateView()));
  panel.scrollTop = 0;
  if (state.chosen >= 0) hitsBar();
}

// enter moves the focus into the panel.
function enter() {
  const h = byId("chosen");
  if (h) h.focus();
}
