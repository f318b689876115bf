// The map, in one of three views: boxes with names, in columns with lines to what they
// need; tiles in the same order, which show an estate of thousands at once; and tiles by
// directory, which show where something changes.
const map = { host: byId("map"), view: "names", scale: 1, width: 0, height: 0, boxes: [], hits: [], spots: [], labels: [] };

// In a column, from top to bottom; columns of one layer follow each other.
const layers = [];
doc.columns.forEach((l) => { while (layers.length <= l) layers.push([]); });
units.map((u, i) => i).sort((a, b) => units[a].at[0] - units[b].at[0] || units[a].at[1] - units[b].at[1])
  .forEach((i) => layers[doc.columns[units[i].at[0]]].push(i));
const layerOf = (i) => doc.columns[units[i].at[0]];

function letterWidth() {
  const probe = make("span", { class: "probe" }, "0000000000");
  document.body.append(probe);
  const w = probe.getBoundingClientRect().width / 10;
  probe.remove();
  return w || 8;
}

// letters is how many letters wide a text is.
const wide = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]|[\ud83c-\ud83e][\udc00-\udfff]/g;
const letters = (s) => s.length + (s.match(wide) || []).length;

// place finds where each unit stands, and how large the map is.
function place(view) {
  map.labels = [];
  if (view === "folders") return placeFolders();
  const letter = letterWidth(), named = view === "names";
  const high = named ? 26 : 20, pitch = named ? 36 : 24, gutter = named ? 16 : 4, channel = named ? 56 : 30;
  const width = doc.columns.map(() => 20);
  if (named) {
    for (const u of units) {
      const mark = badge(u);
      width[u.at[0]] = Math.max(width[u.at[0]], Math.ceil((letters(u.l || u.n) + (mark ? mark.length + 2 : 0)) * letter) + 40);
    }
  }
  const left = [];
  let x = 16;
  doc.columns.forEach((l, c) => {
    if (c > 0) x += l === doc.columns[c - 1] ? gutter : channel;
    left.push(x);
    x += width[c];
  });
  map.width = x + 16;
  map.height = 32;
  map.columns = width.map((w, c) => ({ x: left[c], w, rows: new Set() }));
  map.pitch = pitch;
  map.gap = (pitch - high) / 2;
  for (const u of units) map.columns[u.at[0]].rows.add(u.at[1]);
  map.spots = units.map((u) => {
    const s = { x: left[u.at[0]], y: 16 + u.at[1] * pitch, w: width[u.at[0]], h: high };
    map.height = Math.max(map.height, s.y + high + 16);
    return s;
  });
}

// placeFolders puts the tiles of each directory together, directory after directory in rows,
// as large as all of them can be seen at once, if that is large enough.
function placeFolders() {
  const letter = letterWidth();
  for (const scale of [1.25, 1, 0.9, 0.8, 0.7, 0.6]) {
    flow(letter, Math.max(280, (map.host.clientWidth || 800) / scale - 16));
    map.scale = scale;
    if (map.height * scale <= map.host.clientHeight) break;
  }
}

function flow(letter, width) {
  const pitch = 24, head = 20;
  let x = 12, y = 10, high = 0;
  map.labels = [];
  map.spots = [];
  map.width = 0;
  for (const f of folders) {
    const n = f.units.length, label = cut(f.name || "(top)", 40);
    const most = Math.max(1, Math.floor((width - 12) / pitch));
    const across = Math.min(most, n, Math.max(Math.ceil(letters(label) * letter / pitch), Math.ceil(Math.sqrt(n * 2.5))));
    const w = Math.max(across * pitch, letters(label) * letter + 4), h = head + Math.ceil(n / across) * pitch;
    if (x > 12 && x + w > width) {
      x = 12;
      y += high + 10;
      high = 0;
    }
    map.labels.push({ x, y: y + 11, text: label, title: f.name });
    f.units.forEach((i, k) => { map.spots[i] = { x: x + (k % across) * pitch, y: y + head + Math.floor(k / across) * pitch, w: 20, h: 20 }; });
    high = Math.max(high, h);
    map.width = Math.max(map.width, x + w + 12);
    x += w + 18;
  }
  map.height = y + high + 12;
}

function cut(s, most) {
  const r = [...s], half = Math.floor((most - 1) / 2);
  return r.length <= most ? s : r.slice(0, half).join("") + "…" + r.slice(-half).join("");
}

function curve(from, to) {
  const a = map.spots[from], b = map.spots[to];
  if (map.view === "folders") {
    const ax = a.x + a.w / 2, ay = a.y + a.h / 2, bx = b.x + b.w / 2, by = b.y + b.h / 2, d = Math.hypot(bx - ax, by - ay) || 1;
    const r = Math.min(11, d / 3), ux = (bx - ax) / d, uy = (by - ay) / d, bow = Math.min(40, d / 5);
    return `M${round(ax + ux * r)} ${round(ay + uy * r)}Q${round((ax + bx) / 2 + uy * bow)} ${round((ay + by) / 2 - ux * bow)} ${round(bx - ux * r)} ${round(by - uy * r)}`;
  }
  const x1 = a.x, y1 = a.y + a.h / 2, x2 = b.x + b.w, y2 = b.y + b.h / 2, off = map.view === "names" ? 3 : 1;
  let x = x1, y = y1, d = `M${x1} ${y1}`;
  for (let c = units[from].at[0] - 1; c > units[to].at[0]; c--) {
    const col = map.columns[c], end = col.x + col.w + off;
    const at = round(pass(col, y1 + (y2 - y1) * (x1 - (col.x + col.w / 2)) / (x1 - x2)));
    d += bow(x, y, end, at, 0) + `L${col.x - off} ${at}`;
    x = col.x - off;
    y = at;
  }
  return d + bow(x, y, x2, y2, x === x1 ? 20 : 0);
}

// bow is a curve that leaves and arrives level.
function bow(x1, y1, x2, y2, least) {
  const bend = Math.max(least, (x1 - x2) / 2);
  return `C${x1 - bend} ${y1} ${x2 + bend} ${y2} ${x2} ${y2}`;
}

// pass is the height at which a line goes through a column: where it would, or between the
// rows if a box stands there.
function pass(col, y) {
  const row = Math.floor((y - 16 + map.gap) / map.pitch), top = 16 - map.gap + row * map.pitch;
  if (!col.rows.has(row)) return y;
  return y - top < map.pitch / 2 ? top : top + map.pitch;
}

const round = (n) => Math.round(n * 10) / 10;

function said(u) {
  const n = badge(u);
  return `${u.n}: ${u.kind.word}${n ? ", " + text(u.t) : ""}`;
}

// drawBox draws a unit. What is pressed has no text but the name, so that it is called
// as it looks; signs and counts lie over it.
function drawBox(i) {
  const u = units[i], s = map.spots[i], named = map.view === "names";
  const g = svg("g", { class: "unit k-" + u.kind.id + (u.w ? " waits" : ""), transform: `translate(${s.x} ${s.y})`, "data-i": i });
  const hit = svg("g", { class: "hit", role: "button", tabindex: "-1", "aria-label": said(u), "data-i": i });
  hit.append(svg("title", {}, said(u)), svg("rect", { width: s.w, height: s.h, rx: named ? 5 : 3 }));
  g.append(hit, svg("text", { class: "sign", "aria-hidden": "true", x: named ? 14 : s.w / 2, y: s.h / 2 + 0.5 }, u.kind.sign));
  if (named) {
    hit.append(svg("text", { class: "name", x: 26, y: s.h / 2 + 0.5 }, u.l || u.n));
    const mark = badge(u);
    if (mark) g.append(svg("text", { class: "badge", "aria-hidden": "true", x: s.w - 10, y: s.h / 2 + 0.5 }, mark));
  }
  return g;
}

function drawMap() {
  const here = map.host.contains(document.activeElement);
  place(map.view);
  const root = svg("svg", { role: "group", "aria-label": plural(units.length, noun) + " and what they need", viewBox: `0 0 ${map.width} ${map.height}`, class: "v-" + map.view });
  const defs = svg("defs");
  for (const id of ["needs", "neededby"]) {
    const tip = svg("marker", { id: "tip-" + id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 10, markerHeight: 10, markerUnits: "userSpaceOnUse", orient: "auto" });
    tip.append(svg("path", { d: "M0 0L8 4L0 8z", class: "tip " + id }));
    defs.append(tip);
  }
  let d = "";
  if (map.view !== "folders") units.forEach((u, i) => { for (const n of u.needs) d += curve(i, n); });
  map.hot = svg("g", { class: "hot", "aria-hidden": "true" });
  map.boxes = units.map((u, i) => drawBox(i));
  map.hits = map.boxes.map((g) => g.firstChild);
  root.append(defs, svg("path", { class: d.length > 60000 ? "lines thin many" : map.view === "names" ? "lines" : "lines thin", d: d, "aria-hidden": "true" }));
  for (const l of map.labels) {
    const label = svg("text", { class: "label", x: l.x, y: l.y }, l.text);
    label.append(svg("title", {}, l.title));
    root.append(label);
  }
  // Lines of a chosen unit lie below boxes that have names, and above tiles.
  if (map.view === "names") root.append(map.hot);
  for (const i of map.view === "folders" ? listed : layers.flat()) root.append(map.boxes[i]);
  if (map.view !== "names") root.append(map.hot);
  map.root = root;
  map.host.replaceChildren(root);
  for (const b of document.querySelectorAll("#tools [data-view]")) b.setAttribute("aria-pressed", b.dataset.view === map.view);
  resize();
  showMatches();
  showChosen();
  if (here && units.length > 0) stop().focus();
}

function resize() {
  map.root.setAttribute("width", Math.round(map.width * map.scale));
  map.root.setAttribute("height", Math.round(map.height * map.scale));
}

// zoom keeps the middle of what is seen, or another point, where it is.
function zoom(scale, at) {
  const h = map.host, dx = at ? at.x : h.clientWidth / 2, dy = at ? at.y : h.clientHeight / 2;
  const x = (h.scrollLeft + dx) / map.scale, y = (h.scrollTop + dy) / map.scale;
  map.scale = Math.min(3, Math.max(0.02, scale));
  resize();
  h.scrollLeft = x * map.scale - dx;
  h.scrollTop = y * map.scale - dy;
}

function wholeScale() { return Math.min(map.host.clientWidth / map.width, map.host.clientHeight / map.height); }

// show draws a view, as large as its text can be read, or smaller if that shows all.
function show(view) {
  map.view = view;
  place(view);
  if (view !== "folders") map.scale = Math.min(1.25, Math.max(view === "names" ? 0.8 : 0.5, wholeScale()));
  drawMap();
  const h = map.host;
  if (state.chosen >= 0) reveal(state.chosen);
  else if (units.length > 0) {
    h.scrollLeft = 0;
    h.scrollTop = view === "folders" ? 0 : (map.height * map.scale - h.clientHeight) / 2;
  }
}

// beginMap shows names where they can be read with all or most of the map in sight,
// and else where what changes.
function beginMap() {
  place("names");
  show(units.length <= 80 || wholeScale() >= 0.5 || folders.length < 2 && wholeScale() >= 0.3 ? "names" : folders.length < 2 ? "order" : "folders");
}

function reveal(i) {
  const h = map.host, s = map.spots[i], k = map.scale, room = 24;
  if (s.x * k < h.scrollLeft + room) h.scrollLeft = s.x * k - h.clientWidth / 3;
  else if ((s.x + s.w) * k > h.scrollLeft + h.clientWidth - room) h.scrollLeft = (s.x + s.w) * k - h.clientWidth * 2 / 3;
  if (s.y * k < h.scrollTop + room) h.scrollTop = s.y * k - h.clientHeight / 3;
  else if ((s.y + s.h) * k > h.scrollTop + h.clientHeight - room) h.scrollTop = (s.y + s.h) * k - h.clientHeight * 2 / 3;
}

// stop is the one box that the tab key stops at.
function stop() {
  return map.hits[state.chosen >= 0 ? state.chosen : state.near >= 0 ? state.near : first()];
}

function first() {
  const all = map.view === "folders" ? listed : layers.flat();
  const i = all.find((n) => state.found[n]);
  return i === undefined ? all[0] : i;
}

// nearest is the one of the given units that stands nearest to one in height.
function nearest(i, list) {
  let best = -1;
  for (const n of list) {
    if (n !== i && state.found[n] && (best < 0 || Math.abs(map.spots[n].y - map.spots[i].y) < Math.abs(map.spots[best].y - map.spots[i].y))) best = n;
  }
  return best;
}

// walk is the unit that a key leads to from another one.
function walk(i, key) {
  const all = map.view === "folders" ? listed : layers.flat();
  if (key === "Home" || key === "End") {
    const ok = all.filter((n) => state.found[n]);
    return ok.length === 0 ? -1 : ok[key === "Home" ? 0 : ok.length - 1];
  }
  if (map.view === "folders") return walkFolders(i, key);
  const l = layerOf(i);
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const by = key === "ArrowLeft" ? -1 : 1;
    let to = nearest(i, by < 0 ? units[i].needs : neededBy[i]);
    for (let at = l + by; to < 0 && at >= 0 && at < layers.length; at += by) to = nearest(i, layers[at]);
    return to;
  }
  const at = layers[l].indexOf(i);
  const to = (key === "ArrowUp" ? layers[l].slice(0, at).reverse() : layers[l].slice(at + 1)).find((n) => state.found[n]);
  return to === undefined ? -1 : to;
}

// walkFolders goes to the tile beside, or to the nearest one of the next line.
function walkFolders(i, key) {
  const s = map.spots[i], across = key === "ArrowLeft" || key === "ArrowRight", by = key === "ArrowLeft" || key === "ArrowUp" ? -1 : 1;
  const far = (n) => {
    const o = map.spots[n], dx = o.x - s.x, dy = o.y - s.y;
    if (across) return dy === 0 && dx * by > 0 ? Math.abs(dx) : Infinity;
    return dy * by > 0 ? Math.abs(dy) * 10000 + Math.abs(dx) : Infinity;
  };
  let best = -1, least = Infinity;
  for (const n of listed) {
    if (state.found[n] && far(n) < least) {
      best = n;
      least = far(n);
    }
  }
  if (best >= 0 || !across) return best;
  const ok = listed.filter((n) => n === i || state.found[n]), to = ok[ok.indexOf(i) + by];
  return to === undefined ? -1 : to;
}

function showChosen() {
  map.hot.replaceChildren();
  const i = state.chosen;
  map.root.classList.toggle("one", i >= 0);
  for (const b of map.root.querySelectorAll(".chosen, .near")) b.classList.remove("chosen", "near");
  for (const b of map.root.querySelectorAll('[tabindex="0"]')) b.setAttribute("tabindex", "-1");
  if (units.length > 0) stop().setAttribute("tabindex", "0");
  for (const h of map.root.querySelectorAll("[aria-current]")) h.removeAttribute("aria-current");
  if (i < 0) return;
  map.boxes[i].classList.add("chosen");
  map.hits[i].setAttribute("aria-current", "true");
  for (const n of units[i].needs) {
    map.hot.append(svg("path", { d: curve(i, n), class: "needs", "marker-end": "url(#tip-needs)" }));
    map.boxes[n].classList.add("near");
  }
  for (const n of neededBy[i]) {
    map.hot.append(svg("path", { d: curve(n, i), class: "neededby", "marker-end": "url(#tip-neededby)" }));
    map.boxes[n].classList.add("near");
  }
}

function showMatches() {
  map.root.classList.toggle("some", state.found.includes(false));
  map.boxes.forEach((b, i) => b.classList.toggle("dim", !state.found[i]));
}

// tellUnder tells which unit is under the pointer or has the focus.
const Nouns = noun[0].toUpperCase() + noun.slice(1) + "s";
const hint = { names: `${Nouns} stand right of what they need.`, order: `${Nouns} stand right of what they need.`, folders: `${Nouns} by directory. Choose one to see what it needs.` };
function tellUnder(i) {
  byId("under").textContent = i >= 0 ? said(units[i]) : hint[map.view];
}
