// A stub of the modules vscode and vscode-languageclient, and the bundle of the extension that uses it.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import Module from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const require = createRequire(import.meta.url);

export class Uri {
  constructor(scheme, p, query = "", fragment = "") {
    Object.assign(this, { scheme, path: p, query, fragment });
  }
  get fsPath() {
    return this.path;
  }
  static parse(text) {
    const m = /^([a-z-]+):(?:\/\/[^/]*)?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/.exec(text);
    return new Uri(m[1], decodeURIComponent(m[2]), m[3] && decodeURIComponent(m[3]), m[4]);
  }
  static file(p) {
    return new Uri("file", p);
  }
  static from(o) {
    return new Uri(o.scheme, o.path, o.query);
  }
  with(o) {
    return Object.assign(new Uri(this.scheme, this.path, this.query, this.fragment), o);
  }
  toString() {
    return this.scheme + ":" + (this.scheme === "file" ? "//" : "") + this.path + (this.query ? `?${encodeURIComponent(this.query)}` : "");
  }
}

class EventEmitter {
  listeners = [];
  event = (f) => {
    this.listeners.push(f);
    return { dispose() {} };
  };
  fire(v) {
    for (const f of this.listeners) {
      f(v);
    }
  }
  dispose() {}
}

// editor returns a stub with a state that tests change, and the extension loaded with it.
export function editor() {
  const state = {
    trusted: false, settings: {}, workspaceSettings: {}, folder: Uri.file("/repo"), answers: {}, sent: [], shown: [], clients: [],
    commands: {}, executed: [], providers: {}, pick: undefined, documents: [], events: {},
    item: { hide() { this.visible = false; }, show() { this.visible = true; }, dispose() {} },
  };
  const event = (name) => {
    const e = (state.events[name] = new EventEmitter());
    return e.event;
  };
  const defaults = Object.fromEntries(Object.entries(JSON.parse(readFileSync(new URL("../package.json", import.meta.url))).contributes.configuration.properties).map(([k, v]) => [k, v.default]));
  const disposable = { dispose() {} };
  const vscode = {
    Uri, EventEmitter,
    Range: class { constructor(...a) { this.at = a; } },
    DocumentLink: class { constructor(range, target) { Object.assign(this, { range, target }); } },
    StatusBarAlignment: { Left: 1, Right: 2 }, ViewColumn: { Beside: -2 }, ProgressLocation: { Notification: 15 },
    window: {
      activeTextEditor: undefined,
      createOutputChannel: () => disposable,
      createStatusBarItem: () => state.item,
      showErrorMessage: (m) => (state.shown.push(m), new Promise(() => {})), // the user does not answer
      showWarningMessage: async (m) => void state.shown.push(m),
      showInformationMessage: async (m) => void state.shown.push(m),
      showQuickPick: async (items) => ((state.picked = items), state.pick?.(items)),
      showTextDocument: async (d) => void state.shown.push(d),
      withProgress: (_, f) => f(),
      onDidChangeActiveTextEditor: event("active"),
    },
    workspace: {
      get isTrusted() { return state.trusted; },
      get textDocuments() { return state.documents; },
      getConfiguration: (section) => ({
        get: (name, or) => state.workspaceSettings[`${section}.${name}`] ?? state.settings[`${section}.${name}`] ?? defaults[`${section}.${name}`] ?? or,
        inspect: (name) => ({ defaultValue: defaults[`${section}.${name}`], globalValue: state.settings[`${section}.${name}`], workspaceValue: state.workspaceSettings[`${section}.${name}`] }),
      }),
      getWorkspaceFolder: (uri) => (uri.path.startsWith(state.folder.path + "/") ? { uri: state.folder } : undefined),
      registerTextDocumentContentProvider: (scheme, p) => ((state.providers[scheme] = p), disposable),
      openTextDocument: async (uri) => ({ uri, text: await state.providers[uri.scheme].provideTextDocumentContent(uri) }),
      onDidGrantWorkspaceTrust: event("trust"),
      onDidChangeConfiguration: event("configuration"),
      onDidSaveTextDocument: event("save"),
    },
    languages: { registerDocumentLinkProvider: (s, p) => ((state.providers.links = p), disposable), setTextDocumentLanguage: async (d, l) => Object.assign(d, { languageId: l }) },
    commands: {
      registerCommand: (name, f) => ((state.commands[name] = f), disposable),
      executeCommand: async (name, ...args) => (state.executed.push([name, ...args]), state.commands[name]?.(...args)),
    },
  };
  class LanguageClient {
    protocol2CodeConverter = { asPosition: (p) => p, asLocation: (l) => l };
    constructor(id, name, server, options) {
      Object.assign(this, { id, name, server, options, state: "new" });
      state.clients.push(this);
    }
    isRunning() { return this.state === "running"; }
    async start() {
      if (state.failure) {
        throw new Error(state.failure);
      }
      this.state = "running";
    }
    async stop() { this.state = "stopped"; }
    async sendNotification(method, p) { state.sent.push([method, p]); }
    async sendRequest(method, p) {
      state.sent.push([method, p]);
      const a = state.answers[method];
      return typeof a === "function" ? a(p) : a;
    }
  }
  const stubs = { vscode, "vscode-languageclient/node": { LanguageClient } };
  const file = path.join(path.dirname(fileURLToPath(import.meta.url)), "../dist/test/extension.js");
  const load = Module._load;
  Module._load = (name, ...rest) => stubs[name] ?? load(name, ...rest);
  try {
    delete require.cache[file];
    state.extension = require(file);
  } finally {
    Module._load = load;
  }
  state.vscode = vscode;
  state.open = (p) => (vscode.window.activeTextEditor = { document: { uri: Uri.file(p) } });
  state.context = { subscriptions: [] };
  return state;
}

