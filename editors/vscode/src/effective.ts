import * as path from "node:path";
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";

// effectiveScheme is the scheme of the read-only documents with effective modules and units. Their query
// is the URI of the file.
export const effectiveScheme = "terrace-effective";

interface EffectiveText {
  languageId: string;
  text: string;
}

// origins returns the origins in the comments of a line, such as "main.tf:3", with their offsets.
export function origins(line: string): { start: number; end: number; file: string; line: number }[] {
  const comment = line.search(/(^|\s)# /);
  const out = [];
  if (comment >= 0) {
    for (const m of line.slice(comment).matchAll(/([^\s,()#]+\.(?:tf|tofu|hcl|tfvars)(?:\.json)?):(\d+)/g)) {
      const start = comment + m.index;
      out.push({ start, end: start + m[0].length, file: m[1], line: Number(m[2]) });
    }
  }
  return out;
}

// Effective shows the module after merging of override files, or the unit after imports and includes.
export class Effective implements vscode.TextDocumentContentProvider, vscode.DocumentLinkProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  constructor(private readonly client: () => LanguageClient | undefined) {}

  dispose(): void {
    this.changed.dispose();
  }

  // show opens the effective document of the active file beside it.
  async show(): Promise<void> {
    const file = vscode.window.activeTextEditor?.document.uri;
    if (!file || file.scheme !== "file") {
      return;
    }
    const name = `${path.posix.basename(path.posix.dirname(file.path))} (effective)`;
    const uri = vscode.Uri.from({ scheme: effectiveScheme, path: `/${name}`, query: file.toString() });
    this.changed.fire(uri);
    try {
      const answer = await this.request(file);
      const document = await vscode.workspace.openTextDocument(uri);
      await vscode.languages.setTextDocumentLanguage(document, answer.languageId);
      await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: true });
    } catch (e) {
      await vscode.window.showErrorMessage(e instanceof Error ? e.message : String(e));
    }
  }

  // refresh computes the open effective documents again.
  refresh(): void {
    for (const document of vscode.workspace.textDocuments) {
      if (document.uri.scheme === effectiveScheme) {
        this.changed.fire(document.uri);
      }
    }
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    return (await this.request(vscode.Uri.parse(uri.query))).text;
  }

  provideDocumentLinks(document: vscode.TextDocument): vscode.DocumentLink[] {
    const dir = path.posix.dirname(vscode.Uri.parse(document.uri.query).path);
    const out: vscode.DocumentLink[] = [];
    for (let i = 0; i < document.lineCount; i++) {
      for (const o of origins(document.lineAt(i).text)) {
        const target = vscode.Uri.file(path.posix.resolve(dir, o.file)).with({ fragment: `L${o.line}` });
        out.push(new vscode.DocumentLink(new vscode.Range(i, o.start, i, o.end), target));
      }
    }
    return out;
  }

  private request(file: vscode.Uri): Promise<EffectiveText> {
    const client = this.client();
    if (!client) {
      throw new Error("The language server does not run.");
    }
    return client.sendRequest<EffectiveText>("terrace/effective", { textDocument: { uri: file.toString() } });
  }
}
