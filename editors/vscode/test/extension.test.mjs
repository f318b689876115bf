// The logic of the extension, with a stub of the editor. The language server is not started here.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { editor } from "./stub.mjs";

const root = "file:///repo/root.hcl";
const units = ["file:///repo/prod/app/terragrunt.hcl", "file:///repo/dev/app/terragrunt.hcl", "file:///repo/eu/us.hcl"];

async function active(e, file, current = units[0]) {
  e.open(file);
  let now = current;
  active.reset = () => void (now = current); // as a new server
  e.answers["terrace/viewpoints"] = () => ({ current: now, default: units[0], all: units });
  e.answers["workspace/executeCommand"] = (p) => void (now = p.arguments[1] || current);
  await e.extension.activate(e.context);
}

test("the server gets no trust from a repository", async () => {
  const e = editor();
  e.workspaceSettings = { "terrace.trust": "workspace", "terrace.path": "/repo/evil" };
  await e.extension.activate(e.context);
  const [c] = e.clients;
  assert.deepEqual(c.server, { command: "terrace", args: ["lsp"] }, "the server starts in restricted mode, from the user's path");
  assert.equal(c.options.initializationOptions.trust, "configuration");
  const ask = async () => (await c.options.middleware.workspace.configuration({ items: [{ section: "terrace" }, { section: "terrace", scopeUri: "file:///repo" }, { section: "other" }] }, null, async () => [1, 2, 3]));
  assert.deepEqual(await ask(), [{ lint: true, allViewpoints: false, trust: false, trustCommands: false }, { lint: true, allViewpoints: false, trust: false, trustCommands: false }, 3]);
  e.trusted = true;
  assert.equal((await ask())[1].trust, false, "the setting of the workspace does not count in a trusted workspace either");
  assert.equal((await ask())[1].trustCommands, true, "commands that the user starts may run programs");
  e.settings = { "terrace.trust": "workspace" };
  assert.equal((await ask())[1].trust, true);
  e.trusted = false;
  assert.equal((await ask())[1].trust, false, "restricted mode wins");
});

test("the server asks again when the workspace becomes trusted or settings change", async () => {
  const e = editor();
  await e.extension.activate(e.context);
  e.events.trust.fire();
  assert.deepEqual(e.sent.at(-1), ["workspace/didChangeConfiguration", { settings: null }]);
  e.sent.length = 0;
  e.events.configuration.fire({ affectsConfiguration: (s) => s === "terrace" });
  assert.deepEqual(e.sent[0], ["workspace/didChangeConfiguration", { settings: null }]);
  e.events.configuration.fire({ affectsConfiguration: (s) => s === "terrace" || s === "terrace.path" });
  await new Promise((r) => setTimeout(r, 10));
  assert.deepEqual(e.clients.map((c) => c.state), ["stopped", "running"], "another path restarts the server");
});

test("a workspace can choose the program when it is trusted", async () => {
  const e = editor();
  e.trusted = true;
  e.workspaceSettings = { "terrace.path": "/repo/bin/terrace" };
  await e.extension.activate(e.context);
  assert.equal(e.clients[0].server.command, "/repo/bin/terrace");
});

test("a program that cannot be started is an error with the setting", async () => {
  const e = editor();
  e.failure = "ENOENT";
  await e.extension.activate(e.context);
  assert.match(e.shown[0], /"terrace" cannot be started: ENOENT/);
});

test("the status bar shows the viewpoint, and the command changes it", async () => {
  const e = editor();
  await active(e, "/repo/root.hcl");
  assert.equal(e.item.text, "$(eye) seen from prod/app");
  assert.ok(e.item.visible);
  e.pick = (items) => items[2];
  await e.commands["terrace.chooseViewpoint"]();
  assert.deepEqual(e.picked.map((i) => i.label), ["Nearest", "prod/app", "dev/app", "eu/us.hcl"]);
  assert.deepEqual(e.sent.find(([m]) => m === "workspace/executeCommand"), ["workspace/executeCommand", { command: "terrace.viewpoint", arguments: [root, units[1]] }]);
  assert.equal(e.item.text, "$(eye) seen from dev/app");
  e.open("/repo/readme.md");
  e.events.active.fire();
  await new Promise((r) => setTimeout(r, 10));
  assert.equal(e.item.visible, false);
});

test("the setting is the first viewpoint, until the user chooses another", async () => {
  const e = editor();
  e.settings = { "terrace.viewpoint": "./dev/app/" };
  await active(e, "/repo/root.hcl");
  assert.equal(e.item.text, "$(eye) seen from dev/app");
  e.pick = (items) => items[1];
  await e.commands["terrace.chooseViewpoint"]();
  assert.equal(e.item.text, "$(eye) seen from prod/app");
});

test("a restart keeps the viewpoint that the user chose", async () => {
  const e = editor();
  await active(e, "/repo/root.hcl");
  e.pick = (items) => items[2];
  await e.commands["terrace.chooseViewpoint"]();
  active.reset();
  await e.commands["terrace.restart"]();
  assert.equal(e.item.text, "$(eye) seen from dev/app");
});

test("a file that no unit reads has no viewpoint", async () => {
  const e = editor();
  e.answers["terrace/viewpoints"] = { current: "", default: "", all: [] };
  e.open("/repo/main.tf");
  await e.extension.activate(e.context);
  assert.equal(e.item.visible, false);
  await e.commands["terrace.chooseViewpoint"]();
  assert.match(e.shown[0], /No unit or root module uses this file/);
});

test("a called module is seen from the nearest caller, until the user chooses another one or none", async () => {
  const e = editor();
  const callers = ["file:///repo#module.a%5B%22x%20y%22%5D", "file:///repo/live/app/terragrunt.hcl.json#module.b.module.c"];
  const alone = "file:///repo/m";
  e.open("/repo/m/main.tf");
  let now = "";
  e.answers["terrace/viewpoints"] = () => ({ current: now === alone ? "" : now || callers[0], default: callers[0], all: callers, alone });
  e.answers["workspace/executeCommand"] = (p) => void (now = p.arguments[1]);
  await e.extension.activate(e.context);
  assert.equal(e.item.text, '$(eye) seen from . module.a["x y"]');
  e.pick = (items) => items[2];
  await e.commands["terrace.chooseViewpoint"]();
  assert.deepEqual(e.picked.map((i) => i.label), ["Nearest", '. module.a["x y"]', "live/app module.b.module.c", "This module alone"]);
  assert.equal(e.item.text, "$(eye) seen from live/app module.b.module.c");
  e.pick = (items) => items[3];
  await e.commands["terrace.chooseViewpoint"]();
  assert.equal(now, alone);
  assert.equal(e.item.text, "$(eye) seen alone");
  now = ""; // the server starts again
  await e.commands["terrace.restart"]();
  assert.equal(now, alone);
});

test("a save shows the viewpoint again", async () => {
  const e = editor();
  e.open("/repo/m/main.tf");
  let now = "file:///repo#module.a";
  e.answers["terrace/viewpoints"] = () => ({ current: now, default: now, all: [now], alone: "file:///repo/m" });
  await e.extension.activate(e.context);
  now = "file:///repo#module.b";
  e.events.save.fire();
  await new Promise((r) => setTimeout(r, 10));
  assert.equal(e.item.text, "$(eye) seen from . module.b");
});

test("the values of all units are listed, and a choice becomes the viewpoint", async () => {
  const e = editor();
  await active(e, "/repo/root.hcl");
  e.vscode.window.activeTextEditor.selection = { active: { line: 1, character: 3 } };
  e.answers["terrace/values"] = { address: "local.env", values: [{ value: '"a"', units: [units[0], units[1]] }, { value: "", units: [units[2]] }], more: false };
  let title;
  e.vscode.window.showQuickPick = async (items, o) => ((title = o.title), (e.picked = items), items[1]);
  await e.commands["terrace.showValues"]();
  assert.equal(title, "local.env: 2 values in 3 units");
  assert.deepEqual(e.picked.map((i) => `${i.label} ${i.description}`), ['"a" prod/app', '"a" dev/app', "not known eu/us.hcl"]);
  assert.equal(e.item.text, "$(eye) seen from dev/app");
  e.answers["terrace/values"] = { address: "", values: [], more: false };
  await e.commands["terrace.showValues"]();
  assert.match(e.shown[0], /no name here/);
});

test("every command in the manifest exists", async () => {
  const e = editor();
  await e.extension.activate(e.context);
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url)));
  assert.deepEqual(manifest.contributes.commands.map((c) => c.command).sort(), Object.keys(e.commands).sort());
});

test("the effective document is read-only and links to origins", async () => {
  const e = editor();
  const link = (line, from, to, target) => ({ range: { start: { line, character: from }, end: { line, character: to } }, target });
  e.answers["terrace/effective"] = { languageId: "terraform", text: "# main.tf:1\nx = 1 # ../root.hcl:7", links: [link(0, 2, 11, "file:///repo/m/main.tf#L1"), link(1, 8, 21, "file:///repo/root.hcl#L7")] };
  e.answers["terrace/viewpoints"] = { current: "", default: "", all: [] };
  e.open("/repo/m/main.tf");
  await e.extension.activate(e.context);
  await e.commands["terrace.showEffective"]();
  const [document] = e.shown;
  assert.equal(document.uri.scheme, "terrace-effective");
  assert.equal(document.languageId, "terraform");
  const links = await e.providers.links.provideDocumentLinks({ uri: document.uri });
  assert.deepEqual(links.map((l) => `${l.range.at} ${l.target.path}#${l.target.fragment}`), [
    "0,2,0,11 /repo/m/main.tf#L1", "1,8,1,21 /repo/root.hcl#L7",
  ]);
});

test("the lens of references shows them", async () => {
  const e = editor();
  await e.extension.activate(e.context);
  const { executeCommand } = e.clients[0].options.middleware;
  await executeCommand("terrace.references", ["file:///repo/a.tf", { line: 1, character: 2 }], async () => [{ uri: "file:///repo/b.tf" }]);
  assert.equal(e.executed.at(-1)[0], "editor.action.showReferences");
});

test("the lens at a unit of a stack shows the effective unit", async () => {
  const e = editor();
  const asked = [];
  e.answers["terrace/effective"] = (p) => (asked.push(p.textDocument.uri), { languageId: "hcl", text: "inputs = {}", links: [] });
  await e.extension.activate(e.context);
  await e.clients[0].options.middleware.executeCommand("terrace.effective", ["file:///repo/live/.terragrunt-stack/app/terragrunt.hcl"], async () => assert.fail("the server is asked for the text only"));
  assert.equal(e.shown[0].text, "inputs = {}");
  assert.equal(e.shown[0].uri.path, "/app (effective)");
  assert.deepEqual(asked.at(-1), "file:///repo/live/.terragrunt-stack/app/terragrunt.hcl");
});

test("affected compares the open documents with HEAD, in trusted workspaces only", async () => {
  const e = editor();
  await active(e, "/repo/m/main.tf");
  const asked = [];
  e.answers["workspace/executeCommand"] = (p) => {
    asked.push(p);
    return "main.tf:1 was x = 1, is x = 2\n";
  };
  await e.commands["terrace.showAffected"]();
  assert.match(e.shown.pop(), /Trust the workspace/);
  assert.deepEqual(asked, []);
  e.trusted = true;
  await e.commands["terrace.showAffected"]();
  assert.deepEqual(asked, [{ command: "terrace.affected", arguments: ["file:///repo/m/main.tf"] }]);
  assert.equal(e.shown.pop().text, "main.tf:1 was x = 1, is x = 2\n");
  e.answers["workspace/executeCommand"] = () => {
    throw new Error("no git");
  };
  await e.commands["terrace.showAffected"]();
  assert.match(e.shown.pop(), /no git/);
});

test("schemas are fetched in trusted workspaces only", async () => {
  const e = editor();
  await active(e, "/repo/m/main.tf");
  const asked = [];
  e.answers["workspace/executeCommand"] = (p) => {
    asked.push(p);
    return "Fetched the schemas of acme.";
  };
  await e.commands["terrace.fetchSchemas"]();
  assert.match(e.shown.pop(), /Trust the workspace/);
  assert.deepEqual(asked, []);
  e.trusted = true;
  await e.commands["terrace.fetchSchemas"]();
  assert.deepEqual(asked, [{ command: "terrace.schemas", arguments: ["file:///repo/m/main.tf"] }]);
  assert.equal(e.shown.pop(), "Fetched the schemas of acme.");
  e.answers["workspace/executeCommand"] = () => {
    throw new Error("no confirmation");
  };
  await e.commands["terrace.fetchSchemas"]();
  assert.match(e.shown.pop(), /not fetched: no confirmation/);
  await e.clients[0].options.middleware.executeCommand("terrace.schemas", ["file:///repo/m/main.tf"], async () => "Fetched.");
  assert.equal(e.shown.pop(), "Fetched.", "the quick fix shows the message too");
});
