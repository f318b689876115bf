// The page: an editor with monaco-languageclient. The test calls what a user does.
import * as monaco from "@codingame/monaco-vscode-editor-api";
import { LanguageClientWrapper } from "monaco-languageclient/lcwrapper";
import { MonacoVscodeApiWrapper } from "monaco-languageclient/vscodeApiWrapper";
import * as vscode from "vscode";

const { root, name, text, theme, hover, complete } = window.scenario;
const settings = { "editor.fontSize": 15, "editor.inlayHints.enabled": "on", "editor.minimap.enabled": false, "editor.quickSuggestions": { other: "off" } };
await new MonacoVscodeApiWrapper({
  $type: "classic",
  viewsConfig: { $type: "EditorService" },
  userConfiguration: { json: JSON.stringify(settings) },
  monacoWorkerFactory: () => {
    self.MonacoEnvironment.getWorker = () => new Worker(URL.createObjectURL(new Blob([""], { type: "text/javascript" })));
  },
}).start();

monaco.languages.register({ id: "terraform", extensions: [".tf"] });
monaco.languages.setMonarchTokensProvider("terraform", {
  tokenizer: { root: [[/#.*$/, "comment"], [/"(?:[^"\\$]|\\.)*"/, "string"], [/\b\d+\b/, "number"], [/\b(?:variable|locals|resource|module|output|data)\b/, "keyword"]] },
});
monaco.editor.setTheme(theme);
const uri = monaco.Uri.parse(`${root}/${name}`);
const model = monaco.editor.createModel(text, "terraform", uri);
const editor = monaco.editor.create(document.getElementById("editor"), { model, theme, fontSize: 15, minimap: { enabled: false }, inlayHints: { enabled: "on" }, quickSuggestions: false });
await new LanguageClientWrapper({
  languageId: "terraform",
  connection: { options: { $type: "WebSocketUrl", url: `ws://${location.host}/lsp` } },
  clientOptions: { documentSelector: ["terraform"], workspaceFolder: { index: 0, name: "workspace", uri: vscode.Uri.parse(root) } },
}).start();

const until = async (what, f) => {
  for (let i = 0; i < 400; i++) {
    const got = f();
    if (got) {
      return got;
    }
    await new Promise((r) => setTimeout(r, 25));
  }
  throw new Error(`not within 10 seconds: ${what}`);
};
const shown = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.getClientRects().length > 0).map((e) => e.innerText.replace(/\u00a0/g, " ").trim()).filter(Boolean).join("\n");
const behind = (mark) => model.getPositionAt(model.getValue().indexOf(mark) + mark.length);

// steps are called by the test, one after the other, so that it can take a picture after each.
window.steps = {
  diagnostics: async () => {
    await until("diagnostics", () => monaco.editor.getModelMarkers({ resource: uri }).length > 0);
    await until("the squiggle", () => document.querySelector(".squiggly-error"));
    return monaco.editor.getModelMarkers({ resource: uri }).map((m) => m.message);
  },
  hints: () => until("hints", () => { const t = shown(".view-line"); return t.includes("overridden in") && t; }),
  hover: async () => {
    editor.setPosition(behind(hover));
    editor.focus();
    editor.trigger("test", "editor.action.showHover", {});
    return until("hover", () => { const t = shown(".monaco-hover"); return t.includes("local.name") && t; });
  },
  completion: async () => {
    const p = behind(complete);
    editor.setPosition(p);
    editor.executeEdits("test", [{ range: new monaco.Range(p.lineNumber, p.column, p.lineNumber, p.column), text: "." }]);
    editor.setPosition({ lineNumber: p.lineNumber, column: p.column + 1 });
    editor.focus();
    editor.trigger("test", "editor.action.triggerSuggest", {});
    return until("completion", () => { const t = shown(".suggest-widget .monaco-list-row"); return t.includes("out") && t; });
  },
};
window.ready = true;
