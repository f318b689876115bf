// The text of a change, with long runs of equal lines folded away.
const lineKinds = { "+": "add", "-": "del", "~": "mod", "#": "rem", "<=": "read", "-/+": "mod", "+/-": "mod", ".": "rem" };

// kindsOf tells what happens to each line. Within a text of several lines a sign is one
// only in the column that signs have there: what looks like one elsewhere is text.
function kindsOf(lines) {
  let column = -1, inherited = "";
  return lines.map((n) => {
    const line = text(n);
    if (column >= 0) {
      if (line.search(/\S/) === column && line.slice(column, column + 3) === "EOT") {
        column = -1;
        return inherited;
      }
      const sign = line[column] && line[column + 1] === " " ? line[column] : "";
      return sign === "+" ? "add" : sign === "-" ? "del" : inherited;
    }
    const m = /^(\s*)(?:(-\/\+|\+\/-|\+|-|~|<=|#|\.) |(?=\S))/.exec(line);
    const kind = m && m[2] ? lineKinds[m[2]] : "";
    if (/<<-EOT_*( #.*)?$/.test(line)) {
      column = m[0].length;
      inherited = kind === "add" || kind === "del" ? kind : "";
    }
    return kind;
  });
}

// causesOf returns, for each line of a change with a cause, the places that set its new value in some
// units: the text, and the units.
function causesOf(n, of) {
  const by = new Map();
  for (const i of of) {
    const at = (units[i].x || []).indexOf(n), list = units[i].z && at >= 0 ? doc.causes[units[i].z[at]] : [];
    for (let k = 0; k < list.length; k += 2) {
      if (!by.has(list[k])) by.set(list[k], new Map());
      const texts = by.get(list[k]);
      if (!texts.has(list[k + 1])) texts.set(list[k + 1], new Set());
      texts.get(list[k + 1]).add(i);
    }
  }
  return by;
}

// causeText is the text of the places of a line: the most frequent ones first.
function causeText(texts) {
  const all = [...texts].sort((a, b) => b[1].size - a[1].size), most = 5;
  const out = all.slice(0, most).map(([t, of]) => text(t) + (all.length > 1 ? ` in ${plural(of.size, noun)}` : ""));
  if (all.length > most) out.push(`and ${all.length - most} more places`);
  return out.join(", ");
}

// diff writes the lines of a change. Lines that begin with the same sign share an
// element; of many lines that follow each other the middle ones are folded, unless the
// search found something in them. A line with a cause is an element of its own: a click on it
// shows the cause above it, and the Enter key shows all.
function diff(lines, causes) {
  const pre = make("pre", { tabindex: "0", role: "group", "aria-label": "Text of the change" });
  if (causes.size > 0) {
    pre.title = "Click a dotted line, or press Enter, to see what sets its value";
    pre.addEventListener("click", (e) => {
      const at = e.target.closest(".at");
      if (at && String(getSelection()) === "") toggleCause(at);
    });
    pre.addEventListener("keydown", (e) => {
      if (e.key !== "Enter" || e.target !== pre) return;
      e.preventDefault();
      const all = [...pre.querySelectorAll(".at")], closed = all.some((l) => !l.classList.contains("open"));
      for (const l of all) if (l.classList.contains("open") !== closed) toggleCause(l);
    });
  }
  const kind = kindsOf(lines), hit = lines.map((n) => state.hits.some((h) => h.texts[n]));
  for (let at = 0; at < lines.length;) {
    let end = at + 1;
    while (end < lines.length && kind[end] === kind[at] && hit[end] === hit[at] && !causes.has(end) && !causes.has(at)) end++;
    const cls = [kind[at] ? "d-" + kind[at] : "", hit[at] ? "found" : ""].filter((x) => x).join(" ");
    const span = (from, to) => make("span", cls ? { class: cls } : {}, lines.slice(from, to).map((n) => text(n) + "\n").join(""));
    const keep = kind[at] === "" ? 4 : 60;
    if (causes.has(at)) {
      const line = text(lines[at]), indent = line.search(/\S/);
      const el = make("span", { class: ("at " + cls).trim() }, line.slice(0, indent), make("span", { class: "line" }, line.slice(indent)), "\n");
      el.cause = " ".repeat(indent + 2) + "# " + causeText(causes.get(at)) + "\n";
      pre.append(el);
    } else if (hit[at] || end - at <= 3 * keep) pre.append(span(at, end));
    else {
      const from = at + keep, to = end - keep;
      const b = make("button", { type: "button", class: "folded" }, `Show ${to - from} more lines`);
      b.addEventListener("click", () => {
        const inside = span(from, to);
        inside.tabIndex = -1;
        b.replaceWith(inside);
        inside.focus();
      });
      pre.append(span(at, from), b, "\n", span(to, end));
    }
    at = end;
  }
  return pre;
}

// toggleCause shows the cause of a line above it, or hides it.
function toggleCause(line) {
  if (line.classList.toggle("open")) line.before(make("span", { class: "cause" }, line.cause));
  else line.previousElementSibling.remove();
}
