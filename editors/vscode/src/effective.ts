import * as path from "node:path";
import * as vscode from "vscode";
import type { DocumentLink, LanguageClient } from "vscode-languageclient/node";

// effectiveScheme is the scheme of the read-only documents with effective modules and units. Their query
// is the URI of the file.
export const effectiveScheme = "terrace-effective";

// EffectiveText is the answer of the request terrace/effective. Links lead from its lines to their origins.
interface EffectiveText {
  languageId: string;
  text: string;
  links: DocumentLink[];
}

// Effective shows the module after merging of override files, or the unit after imports and includes.
export class Effective implements vscode.TextDocumentContentProvider, vscode.DocumentLinkProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  constructor(private readonly client: () => LanguageClient | undefined) {}

  dispose(): void {
    this.changed.dispose();
  }

  // show opens the effective document of a file, or of the active file, beside the editor.
  async show(file = vscode.window.activeTextEditor?.document.uri): Promise<void> {
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
      void vscode.window.showErrorMessage(e instanceof Error ? e.message : String(e));
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

  async provideDocumentLinks(document: vscode.TextDocument): Promise<vscode.DocumentLink[]> {
    const { links } = await this.request(vscode.Uri.parse(document.uri.query));
    return links.map(({ range: { start, end }, target }) =>
      new vscode.DocumentLink(new vscode.Range(start.line, start.character, end.line, end.character), target ? vscode.Uri.parse(target) : undefined));
  }

  private request(file: vscode.Uri): Promise<EffectiveText> {
    const client = this.client();
    if (!client) {
      throw new Error("The language server does not run.");
    }
    return client.sendRequest<EffectiveText>("terrace/effective", { textDocument: { uri: file.toString() } });
  }
}
