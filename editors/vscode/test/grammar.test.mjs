// The grammars, with the engine of the editor: each token of a line has the scope that the theme colors.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import test from "node:test";

const require = createRequire(import.meta.url);
const { Registry, parseRawGrammar, INITIAL } = require("vscode-textmate");
const { loadWASM, OnigScanner, OnigString } = require("vscode-oniguruma");

const root = new URL("../", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL("package.json", root)));
const paths = Object.fromEntries(manifest.contributes.grammars.map((g) => [g.scopeName, g.path]));
await loadWASM(readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm")).buffer);
const registry = new Registry({
  onigLib: Promise.resolve({ createOnigScanner: (p) => new OnigScanner(p), createOnigString: (s) => new OnigString(s) }),
  loadGrammar: async (scope) => (paths[scope] ? parseRawGrammar(readFileSync(new URL(paths[scope], root), "utf8"), "x.json") : null),
});

// tokens returns the tokens of a text as [text, last scope without its suffix], without white space.
async function tokens(scope, text) {
  const grammar = await registry.loadGrammar(scope);
  let stack = INITIAL;
  const out = [];
  for (const line of text.split("\n")) {
    const r = grammar.tokenizeLine(line, stack);
    stack = r.ruleStack;
    for (const t of r.tokens) {
      const word = line.slice(t.startIndex, t.endIndex).trim();
      if (word) {
        out.push([word, t.scopes.at(-1).replace(/\.terrace$/, ""), t.scopes.map((s) => s.replace(/\.terrace$/, ""))]);
      }
    }
  }
  return { all: out, depth: stack.depth };
}

// has asserts that each pair of a word and a scope is among the tokens, in this order.
async function has(scope, text, ...want) {
  const { all } = await tokens(scope, text);
  let i = 0;
  for (const [word, name] of want) {
    const at = all.findIndex((t, j) => j >= i && t[0] === word);
    assert.ok(at >= 0, `no token ${word} in ${JSON.stringify(all.map((t) => t.slice(0, 2)))}`);
    assert.equal(all[at][1], name, `${word} in ${text}`);
    i = at + 1;
  }
}

test("each language has a grammar, a configuration and a name", () => {
  const languages = manifest.contributes.languages.map((l) => l.id);
  assert.deepEqual(manifest.contributes.grammars.map((g) => g.language).sort(), languages.sort());
  for (const l of manifest.contributes.languages) {
    JSON.parse(readFileSync(new URL(l.configuration, root)));
  }
});

test("blocks of modules", async () => {
  await has("source.terrace.module", 'resource "aws_vpc" "main" {\n  cidr = var.cidr # text\n}', ["resource", "keyword.other.block"], ['"aws_vpc"', "string.quoted.double.label"], ["cidr", "variable.other.property"], ["=", "keyword.operator.assignment"], ["var", "variable.language"], ["cidr", "variable.other.member"], ["# text", "comment.line.number-sign"]);
  await has("source.terrace.module", "_ {\n}\nnested {\n  a = 1\n}", ["nested", "entity.name.type.block"], ["1", "constant.numeric"]);
});

test("blocks and functions of units", async () => {
  const text = 'include "root" {\n  path = find_in_parent_folders("root.hcl")\n}\ninputs = {\n  id = dependency.vpc.outputs.id\n  "a b" : true\n  name = run_cmd("echo", upper("x"))\n}';
  await has("source.terrace.unit", text, ["include", "keyword.other.block"], ["path", "variable.other.property"], ["find_in_parent_folders", "support.function.builtin"], ["inputs", "variable.other.property"], ["id", "variable.other.property"], ["dependency", "variable.language"], ["true", "constant.language"], ["run_cmd", "support.function.builtin"], ["upper", "support.function"]);
});

test("rules", async () => {
  await has("source.terrace.rules", 'rule "tags" {\n  resource = "aws_*"\n  enforce {\n    condition = try(attrs.tags.cost, null) != null && length(resources("x")) > 0\n  }\n}', ["rule", "keyword.other.block"], ["resource", "variable.other.property"], ["enforce", "keyword.other.block"], ["try", "support.function"], ["attrs", "variable.language"], ["null", "constant.language"], ["!=", "keyword.operator"], ["&&", "keyword.operator"], ["resources", "support.function.builtin"]);
});

test("templates", async () => {
  const { all } = await tokens("source.terrace.hcl", 'a = "x ${upper(var.y)} $${no} \\n %{ if b }c%{ endif }"\nb = 1');
  const scopes = (word) => all.find((t) => t[0] === word)?.[2] ?? [];
  assert.ok(scopes("upper").includes("support.function") && scopes("upper").includes("meta.interpolation"));
  assert.ok(scopes("if").includes("keyword.control"));
  assert.ok(scopes("\\n").includes("constant.character.escape"));
  assert.ok(scopes("{no}").includes("string.quoted.double") && !scopes("{no}").includes("meta.interpolation"));
  assert.deepEqual(scopes("1"), ["source.hcl".replace("hcl", "terrace.hcl"), "constant.numeric"]);
});

test("heredocs end at their word", async () => {
  const { all } = await tokens("source.terrace.hcl", "a = <<-EOT\n  if ${x} \"\n  EOT\nb = 2");
  const scopes = (word) => all.find((t) => t[0] === word)?.[2] ?? [];
  assert.ok(scopes("if").includes("string.unquoted.heredoc"));
  assert.ok(scopes("x").includes("meta.interpolation"));
  assert.ok(scopes("2").includes("constant.numeric"));
});

test("for expressions, comments and brackets close", async () => {
  const text = "a = { for k, v in var.m : k => [for x in v : x if x != null]... } // c\n/* b\n { */\nc = (1 + 2) ? \"y\" : null";
  const { all, depth } = await tokens("source.terrace.hcl", text);
  assert.equal(depth, 1);
  await has("source.terrace.hcl", text, ["for", "keyword.control"], ["in", "keyword.control"], ["=>", "keyword.operator"], ["if", "keyword.control"], ["// c", "comment.line.double-slash"], ["c", "variable.other.property"], ["null", "constant.language"]);
  assert.ok(all.length > 20);
});

test("what is typed does not color the rest of the file", async () => {
  for (const broken of ['a = "x', "a = upper(", "a = ["]) {
    const { all } = await tokens("source.terrace.hcl", `${broken}\n`);
    assert.ok(all.length > 0);
  }
  await has("source.terrace.hcl", 'a = "x\nb = 2', ["b", "variable.other.property"], ["2", "constant.numeric"]);
});
