// Keys and the pointer, and the beginning.
const arrows = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];
const indexAt = (el) => {
  const at = el.closest && el.closest("[data-i]");
  return at ? Number(at.dataset.i) : -1;
};

byId("q").addEventListener("input", (e) => { state.query = e.target.value; search(); });
byId("q").addEventListener("keydown", (e) => {
  const at = firstFound();
  if (e.key === "Escape") {
    e.preventDefault();
    e.stopPropagation();
    if (state.query) {
      state.query = e.target.value = "";
      search();
    } else if (units.length > 0) {
      stop().focus();
    }
  } else if ((e.key === "ArrowDown" || e.key === "Enter") && at >= 0) {
    e.preventDefault();
    state.home = "list";
    if (e.key === "Enter") {
      choose(at);
      reveal(at);
      enter();
    } else {
      const row = list.querySelector('[tabindex="0"]');
      row.focus();
      choose(Number(row.dataset.i), true);
      reveal(state.chosen);
    }
  }
});

list.addEventListener("click", (e) => {
  const i = indexAt(e.target);
  if (i < 0) return;
  state.home = "list";
  choose(i);
  reveal(i);
  if (narrow.matches) enter();
  else rows[i].focus();
});
list.addEventListener("keydown", (e) => {
  const i = indexAt(e.target);
  if (i < 0) return;
  if (e.key === "Enter" || e.key === " ") {
    e.preventDefault();
    state.home = "list";
    choose(i);
    enter();
    return;
  }
  const all = [...list.querySelectorAll("[data-i]")], at = all.indexOf(rows[i]);
  const to = { ArrowUp: at - 1, ArrowDown: at + 1, Home: 0, End: all.length - 1, PageUp: Math.max(0, at - 15), PageDown: Math.min(all.length - 1, at + 15) }[e.key];
  if (to === undefined) return;
  e.preventDefault();
  if (!all[to]) {
    if (to < 0) byId("q").focus();
    return;
  }
  state.home = "list";
  all[to].focus();
  choose(Number(all[to].dataset.i), true);
  reveal(state.chosen);
});

let drag = null;
map.host.addEventListener("pointerdown", (e) => {
  if (e.button === 0 && e.pointerType === "mouse" && indexAt(e.target) < 0) {
    drag = { x: e.clientX + map.host.scrollLeft, y: e.clientY + map.host.scrollTop };
  }
});
window.addEventListener("pointermove", (e) => {
  if (!drag) return;
  map.host.scrollLeft = drag.x - e.clientX;
  map.host.scrollTop = drag.y - e.clientY;
});
window.addEventListener("pointerup", () => { drag = null; });
map.host.addEventListener("click", (e) => {
  const i = indexAt(e.target);
  if (i < 0) return;
  state.home = "map";
  choose(i);
  if (narrow.matches) enter();
  else map.hits[i].focus({ preventScroll: true });
});
map.host.addEventListener("wheel", (e) => {
  if (!e.ctrlKey && !e.metaKey) return;
  e.preventDefault();
  const box = map.host.getBoundingClientRect();
  zoom(map.scale * (e.deltaY < 0 ? 1.15 : 1 / 1.15), { x: e.clientX - box.left, y: e.clientY - box.top });
}, { passive: false });
map.host.addEventListener("pointerover", (e) => tellUnder(indexAt(e.target) >= 0 ? indexAt(e.target) : state.chosen));
map.host.addEventListener("pointerleave", () => tellUnder(state.chosen));
map.host.addEventListener("focusin", (e) => tellUnder(indexAt(e.target)));
map.host.addEventListener("keydown", (e) => {
  const i = indexAt(e.target);
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "+" || e.key === "=") zoom(map.scale * 1.25);
  else if (e.key === "-") zoom(map.scale / 1.25);
  else if (e.key === "0") zoom(wholeScale());
  else if (i >= 0 && (e.key === "Enter" || e.key === " ")) {
    state.home = "map";
    choose(i);
    enter();
  } else if (i >= 0 && arrows.includes(e.key)) {
    state.home = "map";
    const to = state.chosen === i ? walk(i, e.key) : i; // the first one chooses the unit itself
    if (to >= 0) {
      choose(to, true);
      reveal(to);
      map.hits[to].focus({ preventScroll: true });
    }
  } else return;
  e.preventDefault();
});

for (const b of document.querySelectorAll("#tools [data-view]")) b.addEventListener("click", () => { show(b.dataset.view); tellUnder(state.chosen); });
byId("widen").addEventListener("click", () => {
  const wide = document.querySelector("main").classList.toggle("wide");
  byId("widen").setAttribute("aria-pressed", wide);
  if (map.view === "folders") show("folders");
  else if (state.chosen >= 0) reveal(state.chosen);
});
// roving makes buttons that belong together one stop of the tab key; the arrow keys lead
// from one to the next.
function roving(host) {
  const all = [...host.querySelectorAll("button")];
  all.forEach((b, i) => { b.tabIndex = i === 0 ? 0 : -1; });
  host.addEventListener("focusin", (e) => { for (const b of all) b.tabIndex = b === e.target ? 0 : -1; });
  host.addEventListener("keydown", (e) => {
    const at = all.indexOf(e.target);
    const to = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: all.length - 1 }[e.key];
    if (at < 0 || to === undefined) return;
    e.preventDefault();
    all[(to + all.length) % all.length].focus();
  });
}
roving(byId("chips"));
roving(byId("tools"));

byId("larger").addEventListener("click", () => zoom(map.scale * 1.25));
byId("smaller").addEventListener("click", () => zoom(map.scale / 1.25));
byId("fit").addEventListener("click", () => zoom(wholeScale()));

document.addEventListener("keydown", (e) => {
  const typing = e.target === byId("q");
  if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
    e.preventDefault();
    byId("q").focus();
    byId("q").select();
  } else if (e.key === "Escape" && !typing) {
    if (byId("keys").open) byId("keys").open = false;
    else if (state.chosen >= 0) back();
    else if (state.query || state.only.size > 0) {
      state.query = byId("q").value = "";
      state.only.clear();
      search();
    }
  }
});
window.addEventListener("hashchange", recall);
let later = 0;
window.addEventListener("resize", () => {
  clearTimeout(later);
  later = setTimeout(() => { if (map.view === "folders") show("folders"); }, 150);
});
window.addEventListener("beforeprint", () => {
  if (state.chosen < 0) return;
  for (const d of panel.querySelectorAll("details")) {
    d.fill();
    d.open = true;
  }
});

beginMap();
tellUnder(-1);
recall();
