// The panel: the estate as a whole, or one unit.
const opSigns = { create: "+", update: "~", delete: "−", read: "≤", forget: ".", "delete-create": "±", "create-delete": "±", "forget-create": "±" };
const panel = byId("panel");

// diff writes the lines of a change. Lines that begin with the same sign share an
// element.
function diff(lines) {
  const pre = make("pre", { tabindex: "0" });
  let open = null, kind = null;
  for (const n of lines) {
    const line = text(n);
    const sign = /^\s*(-\/\+|\+\/-|\+|-|~|<=|#)( |$)/.exec(line);
    const now = !sign ? "" : { "+": "add", "-": "del", "~": "mod", "#": "rem", "<=": "read" }[sign[1]] || "mod";
    if (now !== kind) {
      open = make("span", now ? { class: "d-" + now } : {});
      pre.append(open);
      kind = now;
    }
    open.append(line + "\n");
  }
  return pre;
}

function goTo(i, label) {
  return make("button", { type: "button", class: "go k-" + units[i].kind.id, title: said(units[i]), onclick: () => { choose(i); reveal(i); enter(); } },
    make("span", { class: "sign", "aria-hidden": "true" }, units[i].kind.sign), label || units[i].n);
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

// changeView is one change; its lines are written when it is opened.
function changeView(n, open, whose) {
  const c = doc.changes[n];
  const body = make("div", { class: "body" });
  const shared = users[n].length;
  const d = make("details", { class: "change o-" + (c.op || "none") },
    make("summary", {}, make("span", { class: "sign", "aria-hidden": "true" }, opSigns[c.op] || "·"), make("span", { class: "what" }, (c.k === 2 ? "output " : "") + text(c.t)),
      shared > 1 ? make("span", { class: "note" }, whose ? `in ${shared} units` : `the same in ${plural(shared - 1, "other unit")}`) : ""), body);
  const write = () => {
    if (body.firstChild) return;
    body.append(diff(c.l));
    if (whose) body.append(some(make("p", { class: "gos" }), users[n], 20, (i) => goTo(i)));
  };
  d.addEventListener("toggle", () => { if (d.open) write(); });
  if (open) { write(); d.open = true; }
  return d;
}

function section(title, ...inside) {
  return make("section", {}, make("h3", {}, title), ...inside);
}

function waitView(w) {
  const li = make("li", {}, make("code", {}, text(w.a) || "all of it"), ": " + text(w.y), w.at ? make("span", { class: "place" }, " " + text(w.at)) : "");
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
  return make("li", {}, make("code", { class: "key" }, text(x.n)), value ? " = " : "", value ? make("code", { class: "value" }, value) : "",
    x.p ? make("ol", { class: "way" }, ...x.p.map(stepView)) : make("p", { class: "place" }, "Its way cannot be told."));
}

function unitView(i) {
  const u = units[i], out = [];
  out.push(make("div", { class: "title k-" + u.kind.id },
    make("h2", { tabindex: "-1", id: "chosen" }, make("span", { class: "sign", "aria-hidden": "true" }, u.kind.sign), u.n),
    make("button", { type: "button", class: "close", "aria-label": "Back to the whole estate", onclick: back }, "×")));
  out.push(make("p", { class: "summary" }, text(u.t) || u.kind.word));
  if (u.m) out.push(section("Messages", ...u.m.map((lines) => make("pre", { class: "message", tabindex: "0" }, lines.map(text).join("\n")))));
  if (u.w) out.push(section("Deferred", some(make("ul", { class: "plain" }), u.w, 100, waitView)));
  for (const [kind, title] of [[0, "Found changed outside"], [1, "Changes"], [2, "Outputs"]]) {
    const mine = (u.x || []).filter((c) => (doc.changes[c].k || 0) === kind);
    if (mine.length > 0) out.push(section(`${title} (${mine.length})`, some(make("div"), mine, 100, (c) => changeView(c, mine.length <= 20))));
  }
  if (u.i) out.push(section(`Inputs (${u.i.length})`, some(make("ul", { class: "plain inputs" }), u.i, 200, inputView)));
  if (u.needs.length > 0) out.push(section(`Needs (${u.needs.length})`, some(make("p", { class: "gos" }), u.needs, 50, (n) => goTo(n))));
  if (neededBy[i].length > 0) out.push(section(`Needed by (${neededBy[i].length})`, some(make("p", { class: "gos" }), neededBy[i], 50, (n) => goTo(n))));
  return out;
}

function estateView() {
  const out = [make("div", { class: "title" }, make("h2", { tabindex: "-1", id: "chosen" }, "The whole estate"))];
  const total = [0, 0, 0, 0, 0];
  let put = 0;
  for (const u of units) {
    (u.c || []).forEach((n, k) => { total[k] += n; });
    put += u.w ? u.w.length : 0;
  }
  const parts = [`${total[0]} to add`, `${total[1]} to change`, `${total[2]} to destroy`];
  if (total[3]) parts.unshift(`${total[3]} to import`);
  if (total[4]) parts.push(`${total[4]} to forget`);
  if (put) parts.push(`${put} deferred`);
  out.push(make("p", { class: "summary" }, parts.join(", ") + "."));
  for (const k of kinds.slice(0, 2)) {
    const those = units.map((u, i) => i).filter((i) => units[i].kind === k);
    if (those.length > 0) out.push(section(`${k.word[0].toUpperCase()}${k.word.slice(1)} (${those.length})`, some(make("ul", { class: "plain" }), those, 50, (i) => make("li", {}, goTo(i), " " + text(units[i].t)))));
  }
  const order = doc.changes.map((c, n) => n).filter((n) => users[n].length > 0).sort((a, b) => users[b].length - users[a].length || users[a][0] - users[b][0] || a - b);
  for (const [title, list] of [["The same in several units", order.filter((n) => users[n].length > 1)], ["In one unit each", order.filter((n) => users[n].length === 1)]]) {
    if (list.length === 0) continue;
    let owner = -1;
    out.push(section(`${title} (${list.length})`, some(make("div"), list, 60, (n) => {
      const whose = users[n].length === 1 && users[n][0] !== owner ? users[n][0] : -1;
      if (whose < 0) return changeView(n, false, users[n].length > 1);
      owner = whose;
      return make("div", {}, make("h4", {}, goTo(whose)), changeView(n, false, false));
    })));
  }
  const waiting = units.map((u, i) => i).filter((i) => units[i].w);
  if (waiting.length > 0) out.push(section(`Deferred (${plural(waiting.length, "unit")})`, some(make("div"), waiting, 30, (i) => make("div", {}, make("h4", {}, goTo(i)), some(make("ul", { class: "plain" }), units[i].w, 10, waitView)))));
  if (order.length === 0 && waiting.length === 0) out.push(make("p", {}, "Nothing changes."));
  return out;
}

function showPanel() {
  panel.replaceChildren(...(state.chosen >= 0 ? unitView(state.chosen) : estateView()));
  panel.scrollTop = 0;
}

// enter moves the focus into the panel.
function enter() {
  const h = byId("chosen");
  if (h) h.focus();
}
