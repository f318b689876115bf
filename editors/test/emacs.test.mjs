// Emacs without a window, with eglot and the settings in docs/editor.md.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { files, installed, program, workspace } from "./lib/files.mjs";
import { settings } from "./lib/settings.mjs";

const version = installed("emacs", "--version")?.split("\n")[0];
const eglot = version && installed("emacs", "--batch", "--eval", "(progn (require 'package) (package-initialize) (kill-emacs (if (locate-library \"eglot\") 0 1)))") !== undefined;
const skip = !program ? "the variable TERRACE does not name the program" : !version ? "emacs is not installed" : !eglot ? "emacs has no eglot" : false;

test("Emacs", { skip }, (t) => {
  t.diagnostic(version);
  const dir = workspace(t);
  const out = path.join(dir, "results.json");
  const config = path.join(dir, "settings.el");
  writeFileSync(config, settings("Emacs", "lisp"));
  execFileSync("emacs", ["-q", "--batch", "-l", fileURLToPath(new URL("emacs.el", import.meta.url))], {
    cwd: dir, timeout: 120_000, stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, RESULTS: out, SETTINGS: config, HOME: dir, PATH: `${path.dirname(program)}:${process.env.PATH}` },
  });
  const r = JSON.parse(readFileSync(out, "utf8"));
  assert.equal(r.status, "ok", JSON.stringify(r));
  assert.match(r.diagnostics, /nam/);
  assert.match(r.fixed, /local\.name/);
  assert.deepEqual(r.definition, ["main.tf:7"]);
  assert.deepEqual(r.references.sort(), ["main.tf:1", "main.tf:7", "terraform.tfvars:1"]);
  assert.match(r.hover, /n-3/);
  assert.ok(r.completion.some((c) => c.trim() === "name"), r.completion.join());
  assert.equal(r.formatted, "locals {\n  ugly   = 1\n  longer = 2\n}\n");
  assert.match(r.lens, /^2 uses/);
  assert.equal(r.renamed, files["main.tf"].replace('variable "size"', 'variable "count_of"').replace("var.size", "var.count_of"));
  assert.equal(r.tfvars, "count_of = 3\n");
});
