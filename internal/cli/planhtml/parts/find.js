// The search. A word is looked for in every text once; what a unit has is made of
// these texts.
const lower = { texts: null, names: null };
const known = new Map(); // of words that were looked for

// hitsOf says where a word stands: in which texts, and in which changes.
function hitsOf(word) {
  if (!lower.texts) {
    lower.texts = doc.texts.map((t) => t.toLowerCase());
    lower.names = units.map((u) => u.n.toLowerCase());
  }
  let h = known.get(word);
  if (!h) {
    if (known.size > 40) known.clear();
    const texts = lower.texts.map((t) => t.includes(word));
    h = { word, texts, changes: doc.changes.map((c) => texts[c.t] || c.l.some((n) => texts[n])), inputs: new Map() };
    known.set(word, h);
  }
  return h;
}

const inputHit = (x, h) => h.texts[x.v] || ("inputs." + lower.texts[x.n]).includes(h.word) || (x.p || []).some((n) => h.texts[doc.steps[n][0]] || h.texts[doc.steps[n][1]] || h.texts[doc.steps[n][4]]);
const waitHit = (w, h) => h.texts[w.a] || h.texts[w.y] || h.texts[w.at] || (w.for || []).some((f) => h.texts[f[1]] || h.texts[f[2]] || h.texts[f[3]]);

// whereIn tells where a unit has a word: "" for its name, null for nowhere.
function whereIn(i, h) {
  const u = units[i];
  if (lower.names[i].includes(h.word)) return "";
  const c = (u.x || []).find((n) => h.changes[n]);
  if (c !== undefined) return shortName(c);
  const w = (u.w || []).find((x) => waitHit(x, h));
  if (w) return "deferred: " + (text(w.a) || "all of it");
  if ((u.z || []).some((z) => doc.causes[z].some((n, k) => k % 2 === 1 && h.texts[n]))) return "places of new values";
  const x = (u.i || []).find((y) => inputHit(y, h));
  if (x) return "input " + text(x.n);
  if ((u.m || []).some((m) => m.lines.some((n) => h.texts[n]))) return "messages";
  return h.texts[u.t] ? text(u.t) : null;
}

// shortName is the name of a change without what happens, where that is told otherwise.
const shortName = (n) => doc.changes[n].k === 3 ? changeName(n) : changeName(n).replace(/^(.*) (will be|must be) .*$/, "$1");
const changeName = (n) => (doc.changes[n].k === 2 ? "output " : "") + text(doc.changes[n].t);

// found holds all units against the query and the filters, and tells where the words
// stand that are not in a unit's name.
function find(query, only) {
  const all = query.toLowerCase().split(/\s+/).filter((w) => w).map(hitsOf);
  const asked = filters.filter((k) => only.has(k.id));
  const where = units.map(() => "");
  const found = units.map((u, i) => {
    if (asked.length > 0 && !asked.some((k) => k.is(u))) return false;
    for (const h of all) {
      const at = whereIn(i, h);
      if (at === null) return false;
      where[i] = where[i] || at;
    }
    return true;
  });
  return { found, where, hits: all };
}
