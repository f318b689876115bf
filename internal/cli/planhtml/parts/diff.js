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

// diff writes the lines of a change. Lines that begin with the same sign share an
// element; of many lines that follow each other the middle ones are folded, unless the
// search found something in them.
function diff(lines) {
  const pre = make("pre", { tabindex: "0", role: "group", "aria-label": "Text of the change" });
  const kind = kindsOf(lines), hit = lines.map((n) => state.hits.some((h) => h.texts[n]));
  for (let at = 0; at < lines.length;) {
    let end = at + 1;
    while (end < lines.length && kind[end] === kind[at] && hit[end] === hit[at]) end++;
    const cls = [kind[at] ? "d-" + kind[at] : "", hit[at] ? "found" : ""].filter((x) => x).join(" ");
    const span = (from, to) => make("span", cls ? { class: cls } : {}, lines.slice(from, to).map((n) => text(n) + "\n").join(""));
    const keep = kind[at] === "" ? 4 : 60;
    if (hit[at] || end - at <= 3 * keep) pre.append(span(at, end));
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
