// The map: units in their columns, with lines to what they need. With names it is made
// of boxes, without them of tiles, which show an estate of thousands at once.
const map = { host: byId("map"), names: true, scale: 1, width: 0, height: 0, boxes: [], spots: [] };

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

// place finds where each unit stands, and how large the map is.
function place() {
  const letter = letterWidth(), named = map.names;
  const high = named ? 26 : 20, pitch = named ? 36 : 24, gutter = named ? 20 : 4, channel = named ? 72 : 30;
  const width = doc.columns.map(() => 20);
  if (named) {
    for (const u of units) {
      const mark = badge(u);
      width[u.at[0]] = Math.max(width[u.at[0]], Math.ceil(((u.l || u.n).length + (mark ? mark.length + 2 : 0)) * letter) + 40);
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
  map.spots = units.map((u) => {
    const s = { x: left[u.at[0]], y: 16 + u.at[1] * pitch, w: width[u.at[0]], h: high };
    map.height = Math.max(map.height, s.y + high + 16);
    return s;
  });
}

function curve(from, to) {
  const a = map.spots[from], b = map.spots[to];
  const x1 = a.x, y1 = a.y + a.h / 2, x2 = b.x + b.w, y2 = b.y + b.h / 2;
  const bend = Math.max(20, (x1 - x2) / 2);
  return `M${x1} ${y1}C${x1 - bend} ${y1} ${x2 + bend} ${y2} ${x2} ${y2}`;
}

function said(u) {
  const n = badge(u);
  return `${u.n}: ${u.kind.word}${n ? ", " + text(u.t) : ""}`;
}

function drawBox(i) {
  const u = units[i], s = map.spots[i];
  const g = svg("g", { class: "unit k-" + u.kind.id + (u.w ? " waits" : ""), role: "button", tabindex: "-1", "aria-label": said(u), "data-i": i, transform: `translate(${s.x} ${s.y})` });
  g.append(svg("title", {}, said(u)));
  g.append(svg("rect", { width: s.w, height: s.h, rx: map.names ? 5 : 3 }));
  g.append(svg("text", { class: "sign", "aria-hidden": "true", x: map.names ? 14 : s.w / 2, y: s.h / 2 + 0.5 }, u.kind.sign));
  if (map.names) {
    g.append(svg("text", { class: "name", x: 26, y: s.h / 2 + 0.5 }, u.l || u.n));
    const mark = badge(u);
    if (mark) g.append(svg("text", { class: "badge", "aria-hidden": "true", x: s.w - 10, y: s.h / 2 + 0.5 }, mark));
  } else if (u.w && u.kind.id !== "deferred") {
    g.append(svg("text", { class: "more", "aria-hidden": "true", x: s.w - 4, y: s.h - 1 }, "…"));
  }
  return g;
}

function drawMap() {
  const here = map.host.contains(document.activeElement);
  place();
  const root = svg("svg", { role: "group", "aria-label": plural(units.length, "unit") + " and what they need", viewBox: `0 0 ${map.width} ${map.height}` });
  const defs = svg("defs");
  for (const id of ["needs", "neededby"]) {
    const tip = svg("marker", { id: "tip-" + id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 10, markerHeight: 10, markerUnits: "userSpaceOnUse", orient: "auto" });
    tip.append(svg("path", { d: "M0 0L8 4L0 8z", class: "tip " + id }));
    defs.append(tip);
  }
  let d = "";
  units.forEach((u, i) => { for (const n of u.needs) d += curve(i, n); });
  map.hot = svg("g", { class: "hot", "aria-hidden": "true" });
  map.boxes = units.map((u, i) => drawBox(i));
  root.append(defs, svg("path", { class: d.length > 60000 ? "lines thin many" : map.names ? "lines" : "lines thin", d: d, "aria-hidden": "true" }), map.hot);
  for (const l of layers) for (const i of l) root.append(map.boxes[i]);
  map.root = root;
  map.host.replaceChildren(root);
  byId("names").setAttribute("aria-pressed", map.names);
  resize();
  showMatches();
  showChosen();
  if (here && units.length > 0) stop().focus();
}

function resize() {
  map.root.setAttribute("width", Math.round(map.width * map.scale));
  map.root.setAttribute("height", Math.round(map.height * map.scale));
}

// zoom keeps the middle of what is seen where it is.
function zoom(scale) {
  const h = map.host, x = (h.scrollLeft + h.clientWidth / 2) / map.scale, y = (h.scrollTop + h.clientHeight / 2) / map.scale;
  map.scale = Math.min(3, Math.max(0.1, scale));
  resize();
  h.scrollLeft = x * map.scale - h.clientWidth / 2;
  h.scrollTop = y * map.scale - h.clientHeight / 2;
}

function wholeScale() { return Math.min(map.host.clientWidth / map.width, map.host.clientHeight / map.height); }

// beginMap chooses boxes where their names can be read with all or most of the map in
// sight, and else tiles.
function beginMap() {
  place();
  map.names = units.length <= 60 || wholeScale() >= 0.3;
  place();
  map.scale = Math.min(1.25, Math.max(0.9, wholeScale()));
  drawMap();
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
  return map.boxes[state.chosen >= 0 ? state.chosen : state.near >= 0 ? state.near : first()];
}

function first() {
  for (const l of layers) for (const i of l) if (state.found[i]) return i;
  return layers.length > 0 ? layers[0][0] : -1;
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
  const l = layerOf(i);
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const by = key === "ArrowLeft" ? -1 : 1;
    let to = nearest(i, by < 0 ? units[i].needs : neededBy[i]);
    for (let at = l + by; to < 0 && at >= 0 && at < layers.length; at += by) to = nearest(i, layers[at]);
    return to;
  }
  const all = key === "Home" || key === "End" ? layers.flat() : layers[l];
  const ok = all.filter((n) => state.found[n]);
  if (key === "Home") return ok.length ? ok[0] : -1;
  if (key === "End") return ok.length ? ok[ok.length - 1] : -1;
  const at = all.indexOf(i);
  const rest = key === "ArrowUp" ? all.slice(0, at).reverse() : all.slice(at + 1);
  const to = rest.find((n) => state.found[n]);
  return to === undefined ? -1 : to;
}

function showChosen() {
  map.hot.replaceChildren();
  const i = state.chosen;
  map.root.classList.toggle("one", i >= 0);
  for (const b of map.root.querySelectorAll('.chosen, .near, [tabindex="0"]')) {
    b.classList.remove("chosen", "near");
    b.setAttribute("tabindex", "-1");
  }
  if (units.length > 0) stop().setAttribute("tabindex", "0");
  if (i < 0) return;
  map.boxes[i].classList.add("chosen");
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
