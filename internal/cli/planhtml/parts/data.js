// The data, and what is worked out of it once. Numbers in lists are indices into
// doc.texts where nothing else is said.
const doc = JSON.parse(document.getElementById("data").textContent);
const units = doc.units;
const text = (i) => doc.texts[i];
// A page that compares two revisions speaks of what differs, and not of what will be done. It can be
// about other things than units. With one of them, there is nothing to choose: the list and the map
// are hidden.
const compares = !!doc.compares, noun = doc.noun || "unit";
const single = compares && units.length === 1;
document.body.classList.toggle("single", single);
const byId = (id) => document.getElementById(id);

// linesOf writes a list of lines out, in which a number n below zero stands for the -n
// texts that follow the one before it.
function linesOf(list) {
  const out = [];
  for (let n of list) {
    if (n >= 0) out.push(n);
    else for (; n < 0; n++) out.push(out[out.length - 1] + 1);
  }
  return out;
}

// The kinds of units, the gravest first: a unit looks like the first one that it is,
// and is found by every one that it is.
const kinds = [
  { id: "failed", sign: "!", word: "failed", is: (u) => u.s === "failed" },
  { id: "notrun", sign: "×", word: "not run", is: (u) => u.s === "not run" },
  { id: "destroys", sign: "−", word: compares ? "removes" : "destroys", is: (u) => count(u, 2) > 0 },
  { id: "changes", sign: "~", word: "changes", is: (u) => count(u, 1) + count(u, 3) + count(u, 4) > 0 || (u.x && count(u, 0) + count(u, 2) === 0) },
  { id: "adds", sign: "+", word: "adds", is: (u) => count(u, 0) > 0 },
  { id: "deferred", sign: "…", word: "deferred", is: (u) => !!u.w },
  { id: "excluded", sign: "ø", word: "excluded", is: (u) => u.s === "excluded" },
  { id: "outside", sign: "°", word: "outside", is: (u) => u.s === "outside" },
  { id: "same", sign: "=", word: compares ? "no differences" : "no changes", is: (u) => !u.s && !u.c && !u.x && !u.w },
];
// What the list can be held to: a kind, or anything that will be done.
const filters = [{ id: "any", sign: "Δ", word: compares ? "with differences" : "with changes", is: (u) => !!(u.c || u.x || u.w) }, ...kinds];

function count(u, what) { return u.c ? u.c[what] : 0; }

const neededBy = units.map(() => []);
const users = doc.changes.map(() => []); // the units that have a change
for (const c of doc.changes) c.l = linesOf(c.l);
units.forEach((u, i) => {
  u.needs = u.needs || [];
  if (u.m) u.m = u.m.map((l, k) => ({ lines: linesOf(l), error: (u.e || []).includes(k) }));
  for (const n of u.needs) neededBy[n].push(i);
  for (const c of u.x || []) if (users[c][users[c].length - 1] !== i) users[c].push(i);
  u.kind = kinds.find((k) => k.is(u)) || kinds[kinds.length - 1];
});

// folders are the units by directory: the deepest ones that hold two units and more on
// average. short is what is left of a unit's name.
const folders = [];
{
  const up = (s) => s.slice(0, Math.max(0, s.lastIndexOf("/")));
  let of = units.map((u) => up(u.n));
  while (new Set(of).size > Math.max(1, units.length / 2) && of.some((s) => s)) of = of.map(up);
  const at = new Map();
  units.forEach((u, i) => {
    if (!at.has(of[i])) {
      at.set(of[i], folders.length);
      folders.push({ name: of[i], units: [] });
    }
    folders[at.get(of[i])].units.push(i);
  });
  for (const f of folders) for (const i of f.units) units[i].short = f.name ? units[i].n.slice(f.name.length + 1) : units[i].n;
}
const listed = folders.flatMap((f) => f.units); // in the order of the list

// badge is a unit's counts in short.
function badge(u) {
  const out = [];
  if (count(u, 0)) out.push("+" + u.c[0]);
  if (count(u, 1)) out.push("~" + u.c[1]);
  if (count(u, 2)) out.push("−" + u.c[2]);
  if (count(u, 3)) out.push("→" + u.c[3]);
  if (count(u, 4)) out.push("." + u.c[4]);
  if (u.w) out.push("…" + u.w.length);
  return out.join(" ");
}

// make makes an element. Text from the data only ever becomes text.
function make(tag, attrs, ...inside) {
  const el = document.createElement(tag);
  for (const k in attrs || {}) {
    if (k.startsWith("on")) el.addEventListener(k.slice(2), attrs[k]);
    else if (attrs[k] !== undefined && attrs[k] !== false) el.setAttribute(k, attrs[k] === true ? "" : attrs[k]);
  }
  el.append(...inside.filter((x) => x !== null && x !== undefined && x !== ""));
  return el;
}

function svg(tag, attrs, inside) {
  const el = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const k in attrs || {}) el.setAttribute(k, attrs[k]);
  if (inside !== undefined) el.textContent = inside;
  return el;
}

// soft makes text that may be broken after the signs that part names, and not inside of a word.
function soft(s) {
  const out = [];
  for (const part of s.split(/(?<=[./\[\]:_-])(?=[^\s./\[\]:_-])/)) {
    if (out.length > 0) out.push(document.createElement("wbr"));
    out.push(part);
  }
  return out;
}

const plural = (n, one) => n + " " + one + (n === 1 ? "" : "s");
