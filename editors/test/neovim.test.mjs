// Neovim without a window, with the settings in docs/editor.md for its version.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { files, installed, program, workspace } from "./lib/files.mjs";
import { settings } from "./lib/settings.mjs";

const version = installed("nvim", "--version")?.split("\n")[0];
const current = version !== undefined && version.localeCompare("NVIM v0.11", "en", { numeric: true }) >= 0;
const skip = !program ? "the variable TERRACE does not name the program" : !version ? "nvim is not installed" : false;

test("Neovim", { skip }, (t) => {
  t.diagnostic(version);
  const dir = workspace(t);
  const out = path.join(dir, "results.json");
  const config = path.join(dir, "init.lua");
  writeFileSync(config, settings("Neovim", "lua", current ? 0 : 1));
  execFileSync("nvim", ["--headless", "-u", config, "-i", "NONE", "-n", "-c", `luafile ${fileURLToPath(new URL("neovim.lua", import.meta.url))}`], {
    cwd: dir, timeout: 120_000, stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, RESULTS: out, HOME: dir, PATH: `${path.dirname(program)}:${process.env.PATH}` },
  });
  const r = JSON.parse(readFileSync(out, "utf8"));
  assert.equal(r.status, "ok");
  assert.match(r.diagnostics, /nam/);
  assert.ok(r.actions.some((title) => title.includes('"name"')));
  assert.match(r.fixed, /local\.name/);
  assert.equal(r.definition, "main.tf:7");
  assert.deepEqual(r.references.sort(), ["main.tf:7", "terraform.tfvars:1"]);
  assert.match(r.hover, /n-3/);
  assert.ok(r.completion.includes("name"), r.completion.join());
  assert.equal(r.omnifunc, "v:lua.vim.lsp.omnifunc");
  assert.equal(r.formatted, "locals {\n  ugly   = 1\n  longer = 2\n}");
  assert.match(r.lenses[0], /^2 uses/);
  assert.equal(r.renamed + "\n", files["main.tf"].replace('variable "size"', 'variable "count_of"').replace("var.size", "var.count_of"));
  assert.equal(r.tfvars, "count_of = 3");
  if (current) {
    assert.deepEqual(r.filetypes, ["terraform", "terraform-vars", "hcl", "opentofu"]);
    assert.match(r.hints, /overridden in web_override\.tf:2/);
    assert.equal(r.token, "namespace");
    assert.equal(r.pulled, true);
    assert.deepEqual(r.folded, [1, 1]);
    assert.ok(r.symbols > 5, String(r.symbols));
    assert.equal(r.moved, 'source = "./moved"');
  }
});
