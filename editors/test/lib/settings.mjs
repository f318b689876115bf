import { readFileSync } from "node:fs";

// settings returns the nth code block in a language, counted from 0, in a section of docs/editor.md.
export function settings(section, language, n = 0) {
  const text = readFileSync(new URL("../../../docs/editor.md", import.meta.url), "utf8");
  const at = text.indexOf(`\n## ${section}\n`);
  if (at < 0) {
    throw new Error(`docs/editor.md has no section ${section}`);
  }
  const body = text.slice(at + 4).split("\n## ")[0];
  const block = [...body.matchAll(new RegExp("```" + language + "\\n([\\s\\S]*?)```", "g"))][n];
  if (!block) {
    throw new Error(`the section ${section} of docs/editor.md has no block ${n} in ${language}`);
  }
  return block[1];
}
