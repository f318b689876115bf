// What a reader does with the page, by keyboard. It runs in the page and writes what
// it saw into an element with the id "seen", as JSON.
(() => {
  const seen = { errors: [] };
  window.addEventListener("error", (e) => seen.errors.push(e.message));
  const by = (id) => document.getElementById(id);
  const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const type = (word) => { by("q").value = word; by("q").dispatchEvent(new Event("input", { bubbles: true })); };
  const rows = () => by("list").querySelectorAll("[data-i]").length;
  const heading = () => by("panel").querySelector("h2").textContent;
  const focus = () => {
    const a = document.activeElement;
    return a.id && !a.dataset.i ? a.id : (a.closest("#map") ? "map" : a.closest("#list") ? "list" : a.tagName) + " " + (a.dataset.i || "");
  };
  const left = (i) => document.querySelector(`#map [data-i="${i}"]`).getBoundingClientRect().left;

  // Contrast, by the formula of WCAG 2.
  const parts = (color) => color.match(/[\d.]+/g).map(Number);
  const light = (color) => {
    const [r, g, b] = parts(color).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const ground = (el) => {
    for (; el; el = el.parentElement) {
      const c = parts(getComputedStyle(el).backgroundColor);
      if (c.length < 4 || c[3] > 0) return getComputedStyle(el).backgroundColor;
    }
    return "rgb(255, 255, 255)";
  };
  // No box lies over another one: none of those that begin before it ends, from left to
  // right, is at its height.
  const apart = (boxes) => {
    const sorted = boxes.map((b) => [b.left, b.right, b.top, b.bottom]).sort((a, b) => a[0] - b[0]);
    return sorted.every((b, i) => {
      for (let k = i + 1; k < sorted.length && sorted[k][0] < b[1] - 1; k++) {
        if (sorted[k][2] < b[3] - 1 && b[2] < sorted[k][3] - 1) return false;
      }
      return true;
    });
  };
  const check = () => {
    const boxes = [...document.querySelectorAll("#map .unit")];
    for (const g of boxes.slice(0, 60)) { // all kinds are among them
      const fill = getComputedStyle(g.querySelector("rect")).fill;
      for (const t of g.querySelectorAll("text")) {
        const c = contrast(getComputedStyle(t).fill, fill);
        if (c < 4.5) seen.faint[g.getAttribute("class")] = c.toFixed(2);
        seen.smallest = Math.min(seen.smallest, parseFloat(getComputedStyle(t).fontSize));
      }
      const [name, mark] = [g.querySelector(".name"), g.querySelector(".badge")];
      const box = g.querySelector("rect").getBoundingClientRect();
      const right = mark ? mark.getBoundingClientRect().left : box.right;
      if (name && name.getBoundingClientRect().right > right) seen.overlap++;
    }
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let n = walk.nextNode(); n; n = walk.nextNode()) {
      const el = n.parentElement;
      if (!n.data.trim() || el.closest("svg, script, noscript, .unseen, #list [role=group]:nth-child(n+5)") || el.getClientRects().length === 0) continue;
      const c = contrast(getComputedStyle(el).color, ground(el));
      if (c < 4.5) seen.faint[el.tagName + "." + el.className] = c.toFixed(2);
      seen.smallest = Math.min(seen.smallest, parseFloat(getComputedStyle(el).fontSize));
    }
  };

  seen.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  seen.rows = rows();
  seen.boxes = document.querySelectorAll("#map .unit").length;
  seen.begin = heading();
  seen.faint = {};
  seen.overlap = 0;
  seen.smallest = 100;
  check();
  seen.path = [];
  const note = (what) => seen.path.push(`${what}: ${focus()} | ${heading()}`);
  press("/"); note("slash");
  type("unit-0001"); seen.found = by("found").textContent;
  press("ArrowDown"); note("down");
  press("Enter"); note("enter");
  check();
  press("Escape"); note("out of details");
  press("Escape"); note("out of unit");
  press("/"); press("Escape"); seen.cleared = rows();
  press("Escape"); note("to the map");
  press("Home"); press("Home"); note("home");
  const first = document.activeElement.dataset.i;
  press("ArrowRight"); note("right");
  seen.right = left(document.activeElement.dataset.i) > left(first);
  press("ArrowLeft"); seen.back = left(document.activeElement.dataset.i) === left(first);
  press("Enter"); note("into it");
  press("Escape"); press("Escape"); note("out");
  type("test_thing.late"); seen.byAddress = rows();
  type("inputs.tags"); seen.byInput = rows();
  type("");
  const chip = document.querySelector('#chips [data-kind="deferred"]');
  chip.click(); seen.deferred = rows();
  seen.dimmed = document.querySelectorAll("#map .unit.dim").length;
  press("Escape"); seen.all = rows();
  // Each kind of unit has a sign of its own.
  const signs = {};
  for (const g of document.querySelectorAll("#map .unit")) signs[g.getAttribute("class").match(/k-(\w+)/)[1]] = g.querySelector(".sign").textContent;
  seen.kinds = Object.keys(signs).length;
  seen.signs = new Set(Object.values(signs)).size;
  const all = document.querySelectorAll("#map .unit").length;
  seen.views = 0;
  for (const view of ["names", "order", "folders"]) {
    document.querySelector(`[data-view="${view}"]`).click();
    const boxes = [...document.querySelectorAll("#map .unit rect, #map .label")].map((r) => r.getBoundingClientRect());
    if (boxes.length >= all && apart(boxes)) seen.views++;
    if (view === "folders") check();
  }
  // Values, files and what stands in changes are found, and told where.
  type("live/root.hcl"); seen.byFile = rows();
  seen.where = by("list").querySelector(".where").textContent;
  type("known after apply"); seen.byChange = rows();
  by("list").querySelector("[data-i]").click();
  seen.marked = by("panel").querySelectorAll("pre .found").length;
  type("");
  press("Escape"); press("Escape");
  // A click on a changed line shows the place that sets its value, and another one hides it.
  type(document.querySelectorAll("#list .row").length > 11 ? "unit-0011" : "unit-0001"); by("list").querySelector("[data-i]").click();
  const lines = [...by("panel").querySelectorAll(".at")];
  seen.causes = [];
  for (const l of lines) {
    l.querySelector(".line").click();
    seen.causes.push(by("panel").querySelector(".cause").textContent.trim());
    check();
    l.click();
  }
  seen.hidden = by("panel").querySelectorAll(".cause").length === 0;
  type(""); press("Escape"); press("Escape");
  seen.warnings = [...by("panel").querySelectorAll(".change.warning .note")].map((n) => n.textContent).join();
  // A closed group inside an open one has the triangle of a closed group.
  const outer = [...by("panel").querySelectorAll("details.change")].find((d) => / ways$/.test(d.querySelector(".note")?.textContent || ""));
  if (outer) {
    outer.open = true;
    outer.fill();
    const inner = outer.querySelector(".ways details > summary");
    seen.triangles = getComputedStyle(outer.firstChild, "::before").content + getComputedStyle(inner, "::before").content;
  }
  seen.tiles = document.querySelectorAll("#map .unit").length;
  check();
  seen.tabStops = document.querySelectorAll('#map [tabindex="0"]').length + document.querySelectorAll('#list [tabindex="0"]').length;
  seen.hacked = window.hacked === 1;
  seen.scripts = document.scripts.length;
  seen.asked = performance.getEntriesByType("resource").length;
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
})();
