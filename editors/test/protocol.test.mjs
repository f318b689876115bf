// Every method of the server, with the client library of the protocol.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import lsp from "vscode-languageserver-protocol/node.js";
import { files, position, program, workspace } from "./lib/files.mjs";

const skip = program ? false : "the variable TERRACE does not name the program";

// connect starts the server in a directory. used receives the methods that are called.
async function connect(t, dir, { options, capabilities, configuration, used = new Set() } = {}) {
  const child = spawn(program, ["lsp"], { cwd: dir, stdio: ["pipe", "pipe", "inherit"] });
  const c = lsp.createProtocolConnection(new lsp.StreamMessageReader(child.stdout), new lsp.StreamMessageWriter(child.stdin));
  t.after(() => {
    c.dispose();
    child.kill();
  });
  const ended = new Promise((resolve) => child.on("exit", (code) => resolve(code)));
  const pushed = new Map();
  const messages = [];
  const registered = [];
  c.onRequest(lsp.RegistrationRequest.type, (p) => void registered.push(...p.registrations));
  c.onRequest(lsp.ConfigurationRequest.type, (p) => p.items.map((i) => configuration?.(i) ?? null));
  c.onRequest("workspace/diagnostic/refresh", () => null);
  c.onRequest("workspace/inlayHint/refresh", () => null);
  c.onRequest("workspace/codeLens/refresh", () => null);
  c.onNotification(lsp.PublishDiagnosticsNotification.type, (p) => void pushed.set(p.uri, p.diagnostics));
  c.onNotification(lsp.ShowMessageNotification.type, (p) => void messages.push(p.message));
  c.listen();
  const root = pathToFileURL(dir).toString();
  const uri = (name) => pathToFileURL(path.join(dir, name)).toString();
  const request = (method, ...p) => (used.add(method), c.sendRequest(method, ...p));
  const notify = (method, ...p) => (used.add(method), c.sendNotification(method, ...p));
  const server = await request("initialize", { processId: process.pid, rootUri: root, workspaceFolders: [{ uri: root, name: "w" }], capabilities: capabilities ?? {}, initializationOptions: options });
  await notify("initialized", {});
  return {
    c, request, notify, uri, server, pushed, messages, registered, ended,
    doc: (name) => ({ textDocument: { uri: uri(name) } }),
    at: (name, mark) => ({ textDocument: { uri: uri(name) }, position: position(name, mark) }),
    all: (name) => ({ textDocument: { uri: uri(name) }, range: { start: { line: 0, character: 0 }, end: { line: 99, character: 0 } } }),
    open: (name) => notify("textDocument/didOpen", { textDocument: { uri: uri(name), languageId: "terraform", version: 1, text: files[name] } }),
  };
}

async function until(what, f) {
  for (let i = 0; i < 400; i++) {
    const got = f();
    if (got) {
      return got;
    }
    await new Promise((r) => setTimeout(r, 25));
  }
  assert.fail(`not within 10 seconds: ${what}`);
}

const lines = (locations, dir) => locations.map((l) => `${path.relative(dir, new URL(l.uri).pathname)}:${l.range.start.line + 1}`).sort();

test("every method", { skip }, async (t) => {
  const dir = workspace(t);
  const used = new Set();
  const s = await connect(t, dir, { used, capabilities: { workspace: { didChangeWatchedFiles: { dynamicRegistration: true } } } });
  assert.equal(s.server.serverInfo.name, "terrace");
  await until("the registration of files", () => s.registered.some((r) => r.method === "workspace/didChangeWatchedFiles"));
  await s.notify("$/setTrace", { value: "off" });
  for (const name of ["main.tf", "ugly.tf", "m/main.tf", "app/terragrunt.hcl", "root.hcl", "wrong.tf"]) {
    await s.open(name);
  }

  assert.ok((await s.request("textDocument/formatting", { ...s.doc("ugly.tf"), options: { tabSize: 2, insertSpaces: true } })).some((e) => e.newText.includes("ugly   = 1")));
  assert.ok((await s.request("textDocument/rangeFormatting", { ...s.all("ugly.tf"), options: { tabSize: 2, insertSpaces: true } })).length > 0);

  const wrong = await s.request("textDocument/diagnostic", s.doc("wrong.tf"));
  assert.match(wrong.items[0].message, /nam/);
  assert.match(wrong.items[0].codeDescription.href, /^https:\/\//);
  await until("pushed diagnostics", () => s.pushed.get(s.uri("wrong.tf"))?.length === 1);

  assert.deepEqual(lines(await s.request("textDocument/definition", s.at("main.tf", "input = local.na")), dir), ["main.tf:7"]);
  assert.deepEqual(lines(await s.request("textDocument/references", { ...s.at("main.tf", 'variable "si'), context: { includeDeclaration: false } }), dir), ["main.tf:7", "terraform.tfvars:1"]);
  assert.ok((await s.request("textDocument/documentHighlight", s.at("main.tf", "input = local.na"))).length >= 3);
  assert.equal((await s.request("textDocument/prepareRename", s.at("main.tf", 'variable "si'))).placeholder, "size");
  const edit = await s.request("textDocument/rename", { ...s.at("main.tf", 'variable "si'), newName: "count_of" });
  assert.deepEqual(Object.keys(edit.changes).sort(), [s.uri("main.tf"), s.uri("terraform.tfvars")]);

  assert.match((await s.request("textDocument/hover", s.at("main.tf", "input = local.na"))).contents.value, /n-3/);
  assert.match((await s.request("textDocument/hover", s.at("app/terragrunt.hcl", "zone = local.z"))).contents.value, /"eu"/);
  const completion = await s.request("textDocument/completion", s.at("main.tf", "input = local."));
  const labels = (completion.items ?? completion).map((i) => i.label);
  assert.ok(labels.includes("name") && !labels.includes("region"), labels.join());
  await s.notify("textDocument/didChange", { textDocument: { uri: s.uri("main.tf"), version: 2 }, contentChanges: [{ text: 'locals {\n  name = upper("x", \n' }] });
  const signature = await s.request("textDocument/signatureHelp", { ...s.doc("main.tf"), position: { line: 1, character: 20 } });
  assert.match(signature.signatures[0].label, /^upper\(/);
  await s.notify("textDocument/didChange", { textDocument: { uri: s.uri("main.tf"), version: 3 }, contentChanges: [{ text: files["main.tf"] }] });

  assert.ok((await s.request("textDocument/documentSymbol", s.doc("main.tf"))).length >= 5);
  assert.ok((await s.request("workspace/symbol", { query: "size" })).length > 0);
  assert.ok((await s.request("textDocument/foldingRange", s.doc("main.tf"))).length >= 5);
  assert.ok((await s.request("textDocument/semanticTokens/full", s.doc("main.tf"))).data.length > 20);
  assert.ok((await s.request("textDocument/semanticTokens/range", s.all("main.tf"))).data.length > 20);
  assert.ok((await s.request("textDocument/documentLink", s.doc("main.tf"))).some((l) => l.target.includes("/m")));
  assert.deepEqual((await s.request("textDocument/inlayHint", s.all("main.tf"))).map((h) => h.label), ["overridden in web_override.tf:2"]);
  const lenses = await s.request("textDocument/codeLens", s.doc("main.tf"));
  const lens = await s.request("codeLens/resolve", lenses[0]);
  assert.match(lens.command.title, /^2 uses/);
  assert.equal((await s.request("workspace/executeCommand", { command: lens.command.command, arguments: lens.command.arguments })).length, 2);
  const actions = await s.request("textDocument/codeAction", { ...s.all("wrong.tf"), context: { diagnostics: wrong.items } });
  assert.ok(actions.some((a) => a.title.includes('"name"')), JSON.stringify(actions));

  const views = await s.request("terrace/viewpoints", s.doc("root.hcl"));
  assert.equal(views.current, s.uri("app/terragrunt.hcl"));
  await s.request("workspace/executeCommand", { command: "terrace.viewpoint", arguments: [s.uri("root.hcl"), s.uri("app/terragrunt.hcl")] });
  const values = await s.request("terrace/values", s.at("root.hcl", "region = local.reg"));
  assert.deepEqual(values.values, [{ value: '"eu"', units: [s.uri("app/terragrunt.hcl")] }]);
  const effective = await s.request("terrace/effective", s.doc("main.tf"));
  assert.match(effective.text, /input = "over" # web_override\.tf:2 \(override 1\), overrides main\.tf:10/);
  assert.equal((await s.request("workspace/textDocumentContent", { uri: effective.uri })).text, effective.text);

  const moved = await s.request("workspace/willRenameFiles", { files: [{ oldUri: s.uri("m"), newUri: s.uri("other/m") }] });
  assert.equal(moved.changes[s.uri("main.tf")][0].newText, "./other/m");
  await s.request("workspace/willRenameFiles", { files: [{ oldUri: s.uri("web_override.tf"), newUri: s.uri("web.tf") }] });
  await until("the warning about the override file", () => s.messages.some((m) => m.includes("no longer an override file")));
  await s.notify("workspace/didRenameFiles", { files: [] });

  await s.notify("workspace/didChangeConfiguration", { settings: { terrace: { lint: false } } });
  await s.notify("workspace/didChangeWorkspaceFolders", { event: { added: [], removed: [] } });
  await s.notify("workspace/didChangeWatchedFiles", { changes: [] });
  await s.notify("textDocument/didSave", s.doc("main.tf"));
  await s.notify("textDocument/didClose", s.doc("wrong.tf"));
  await until("no diagnostics of a closed file", () => s.pushed.get(s.uri("wrong.tf"))?.length === 0);

  const source = new lsp.CancellationTokenSource();
  const canceled = s.c.sendRequest("workspace/symbol", { query: "" }, source.token);
  source.cancel();
  used.add("$/cancelRequest");
  await canceled.catch((e) => assert.equal(e.code, lsp.LSPErrorCodes.RequestCancelled));
  await assert.rejects(s.c.sendRequest("textDocument/nothing", {}), { code: lsp.ErrorCodes.MethodNotFound });

  await s.request("shutdown");
  await s.notify("exit");
  assert.equal(await s.ended, 0, "the exit status after shutdown and exit, with standard input open");

  const methods = [...readFileSync(new URL("../../internal/lsp/server/server.go", import.meta.url), "utf8").matchAll(/^\t\t"([$A-Za-z/]+)":\s+(?:on|urgent|notified|func)\(/gm)].map((m) => m[1]);
  assert.ok(methods.length > 30, `${methods.length} methods`);
  assert.deepEqual(methods.filter((m) => !used.has(m)), [], "methods without a test");
});

test("a directory executes nothing until its root is trusted", { skip }, async (t) => {
  const dir = workspace(t);
  let trust = false;
  const s = await connect(t, dir, { options: { trust: "configuration" }, capabilities: { workspace: { configuration: true } }, configuration: (i) => ({ trust: i.scopeUri ? trust : undefined }) });
  await s.open("run/terragrunt.hcl");
  const hover = async () => (await s.request("textDocument/hover", s.at("run/terragrunt.hcl", "= local.r"))).contents.value;
  assert.match(await hover(), /not run, because the directory is not trusted/);
  assert.deepEqual((await s.request("textDocument/inlayHint", s.all("run/terragrunt.hcl"))).map((h) => h.label), ["run_cmd is not run"]);
  assert.equal(existsSync(path.join(dir, "run/RAN")), false);
  trust = true;
  await s.notify("workspace/didChangeConfiguration", { settings: null });
  let text = "";
  for (let i = 0; i < 100 && !text.includes('"value'); i++) {
    text = await hover();
  }
  assert.match(text, /"value/);
  assert.equal(existsSync(path.join(dir, "run/RAN")), true);
});
