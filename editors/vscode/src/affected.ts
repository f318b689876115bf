import * as path from "node:path";
import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";

const scheme = "terrace-affected";

// Affected shows which values the text in the editor changes, compared with HEAD.
export class Affected implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly texts = new Map<string, string>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(scheme, this);
  readonly onDidChange = this.changed.event;

  constructor(private readonly client: () => LanguageClient | undefined) {}

  dispose(): void {
    this.changed.dispose();
    this.registration.dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  async show(): Promise<void> {
    const file = vscode.window.activeTextEditor?.document.uri;
    if (!file || file.scheme !== "file") {
      return;
    }
    if (!vscode.workspace.isTrusted) { // git runs programs that the repository's configuration names
      void vscode.window.showWarningMessage("Trust the workspace to compare it with HEAD: the comparison runs git.");
      return;
    }
    try {
      const text = await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title: "Comparing with HEAD" },
        () => this.compare(file),
      );
      const uri = vscode.Uri.from({ scheme, path: `/${path.basename(path.dirname(file.fsPath))} (affected)`, query: path.dirname(file.fsPath) });
      this.texts.set(uri.toString(), text);
      this.changed.fire(uri);
      const document = await vscode.workspace.openTextDocument(uri);
      await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: true });
    } catch (e) {
      void vscode.window.showErrorMessage(`The comparison failed: ${e instanceof Error ? e.message : e}`);
    }
  }

  // compare returns what `terrace affected HEAD` prints with the texts of all open documents.
  private async compare(file: vscode.Uri): Promise<string> {
    const client = this.client();
    if (!client) {
      throw new Error("the language server does not run");
    }
    return client.sendRequest("workspace/executeCommand", { command: "terrace.affected", arguments: [file.toString()] });
  }
}
