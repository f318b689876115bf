// The data, and what is worked out of it once. Numbers in lists are indices into
// doc.texts where nothing else is said.
const doc = JSON.parse(document.getElementById("data").textContent);
const units = doc.units;
const text = (i) => doc.texts[i];
const byId = (id) => document.getElementById(id);

// The kinds of units, the gravest first: a unit looks like the first one that it is,
// and is found by every one that it is.
const kinds = [
  { id: "failed", sign: "!", word: "failed", is: (u) => u.s === "failed" },
  { id: "notrun", sign: "×", word: "not run", is: (u) => u.s === "not run" },
  { id: "destroys", sign: "−", word: "destroys", is: (u) => count(u, 2) > 0 },
  { id: "changes", sign: "~", word: "changes", is: (u) => count(u, 1) + count(u, 3) + count(u, 4) > 0 || (u.x && count(u, 0) + count(u, 2) === 0) },
  { id: "adds", sign: "+", word: "adds", is: (u) => count(u, 0) > 0 },
  { id: "deferred", sign: "…", word: "deferred", is: (u) => !!u.w },
  { id: "excluded", sign: "ø", word: "excluded", is: (u) => u.s === "excluded" },
  { id: "outside", sign: "°", word: "outside", is: (u) => u.s === "outside" },
  { id: "same", sign: "=", word: "no changes", is: (u) => !u.s && !u.c && !u.x && !u.w },
];

function count(u, what) { return u.c ? u.c[what] : 0; }

const neededBy = units.map(() => []);
const users = doc.changes.map(() => []); // the units that have a change
units.forEach((u, i) => {
  u.needs = u.needs || [];
  for (const n of u.needs) neededBy[n].push(i);
  for (const c of u.x || []) if (users[c][users[c].length - 1] !== i) users[c].push(i);
  u.kind = kinds.find((k) => k.is(u)) || kinds[kinds.length - 1];
  u.words = null;
});

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

// words is all that a unit is found by.
function words(u) {
  if (u.words === null) {
    const all = [u.n];
    for (const c of u.x || []) all.push(text(doc.changes[c].t));
    for (const w of u.w || []) all.push(text(w.a));
    for (const i of u.i || []) all.push("inputs." + text(i.n));
    u.words = all.join("\n").toLowerCase();
  }
  return u.words;
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

const plural = (n, one) => n + " " + one + (n === 1 ? "" : "s");
