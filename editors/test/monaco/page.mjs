// The page: an editor with a thin client of the language server. It asks for what a user sees, and
// leaves what it found in window.results.
import * as monaco from "monaco-editor";

const { root, name, text, theme, hover, complete } = window.scenario;
self.MonacoEnvironment = { getWorker: () => new Worker(URL.createObjectURL(new Blob([""], { type: "text/javascript" }))) };

const socket = new WebSocket(`ws://${location.host}/lsp`);
await new Promise((resolve, reject) => {
  socket.onopen = resolve;
  socket.onerror = reject;
});
let last = 0;
const waiting = new Map();
const notified = new Map();
socket.onmessage = (e) => {
  const m = JSON.parse(e.data);
  if (m.method && m.id !== undefined) {
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: m.id, result: null }));
  } else if (m.method) {
    notified.get(m.method)?.(m.params);
  } else {
    const w = waiting.get(m.id);
    waiting.delete(m.id);
    m.error ? w.reject(new Error(m.error.message)) : w.resolve(m.result);
  }
};
const request = (method, params) => new Promise((resolve, reject) => {
  waiting.set(++last, { resolve, reject });
  socket.send(JSON.stringify({ jsonrpc: "2.0", id: last, method, params }));
});
const notify = (method, params) => socket.send(JSON.stringify({ jsonrpc: "2.0", method, params }));

const uri = `${root}/${name}`;
const textDocument = { uri };
const toPosition = (p) => ({ line: p.lineNumber - 1, character: p.column - 1 });
const toRange = (r) => ({ startLineNumber: r.start.line + 1, startColumn: r.start.character + 1, endLineNumber: r.end.line + 1, endColumn: r.end.character + 1 });

monaco.languages.register({ id: "terraform" });
monaco.languages.setMonarchTokensProvider("terraform", {
  tokenizer: { root: [[/#.*$/, "comment"], [/"(?:[^"\\$]|\\.)*"/, "string"], [/\b\d+\b/, "number"], [/\b(?:variable|locals|resource|module|output|data)\b/, "keyword"]] },
});
await request("initialize", { rootUri: root, capabilities: { textDocument: { completion: { completionItem: { snippetSupport: true } } } } });
notify("initialized", {});
monaco.languages.registerHoverProvider("terraform", {
  provideHover: async (_, p) => {
    const h = await request("textDocument/hover", { textDocument, position: toPosition(p) });
    return h && { contents: [{ value: h.contents.value }], range: h.range && toRange(h.range) };
  },
});
monaco.languages.registerInlayHintsProvider("terraform", {
  provideInlayHints: async (_, r) => ({
    hints: (await request("textDocument/inlayHint", { textDocument, range: { start: { line: r.startLineNumber - 1, character: 0 }, end: { line: r.endLineNumber, character: 0 } } }))
      .map((h) => ({ label: h.label, paddingLeft: h.paddingLeft, position: { lineNumber: h.position.line + 1, column: h.position.character + 1 } })),
    dispose() {},
  }),
});
monaco.languages.registerCompletionItemProvider("terraform", {
  triggerCharacters: ["."],
  provideCompletionItems: async (model, p) => {
    const r = await request("textDocument/completion", { textDocument, position: toPosition(p) });
    const word = model.getWordUntilPosition(p);
    const range = { startLineNumber: p.lineNumber, endLineNumber: p.lineNumber, startColumn: word.startColumn, endColumn: word.endColumn };
    return { suggestions: (r.items ?? r).map((i) => ({ label: i.label, insertText: i.insertText ?? i.label, detail: i.detail, kind: monaco.languages.CompletionItemKind.Variable, range: i.textEdit ? toRange(i.textEdit.range) : range })) };
  },
});
const model = monaco.editor.createModel(text, "terraform", monaco.Uri.parse(uri));
notified.set("textDocument/publishDiagnostics", (p) => {
  if (p.uri === uri) {
    monaco.editor.setModelMarkers(model, "terrace", p.diagnostics.map((d) => ({ ...toRange(d.range), message: d.message, code: d.code, severity: d.severity === 1 ? monaco.MarkerSeverity.Error : monaco.MarkerSeverity.Warning })));
  }
});
notify("textDocument/didOpen", { textDocument: { uri, languageId: "terraform", version: 1, text } });
model.onDidChangeContent((e) => notify("textDocument/didChange", {
  textDocument: { uri, version: model.getVersionId() },
  contentChanges: e.changes.map((c) => ({ range: { start: { line: c.range.startLineNumber - 1, character: c.range.startColumn - 1 }, end: { line: c.range.endLineNumber - 1, character: c.range.endColumn - 1 } }, text: c.text })),
}));
const editor = monaco.editor.create(document.getElementById("editor"), { model, theme, fontSize: 15, minimap: { enabled: false }, inlayHints: { enabled: "on" }, quickSuggestions: false });

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
const shown = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.offsetParent !== null || e.getClientRects().length > 0).map((e) => e.innerText.replace(/\u00a0/g, " ").trim()).filter(Boolean).join("\n");
const behind = (mark) => model.getPositionAt(model.getValue().indexOf(mark) + mark.length);

// steps are called by the test, one after the other, so that it can take a picture after each.
window.steps = {
  diagnostics: async () => {
    await until("diagnostics", () => monaco.editor.getModelMarkers({ resource: model.uri }).length > 0);
    await until("the squiggle", () => document.querySelector(".squiggly-error"));
    return monaco.editor.getModelMarkers({ resource: model.uri }).map((m) => m.message);
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
