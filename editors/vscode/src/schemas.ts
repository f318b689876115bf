import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";

// fetchSchemas fetches the schemas of the providers of the active file's module, after the server has asked
// for a confirmation.
export async function fetchSchemas(client: LanguageClient | undefined): Promise<void> {
  const file = vscode.window.activeTextEditor?.document.uri;
  if (!file || file.scheme !== "file") {
    return;
  }
  if (!vscode.workspace.isTrusted) {
    void vscode.window.showWarningMessage("Trust the workspace to fetch schemas: Terrace starts each provider once to read its schema.");
    return;
  }
  try {
    if (!client) {
      throw new Error("the language server does not run");
    }
    const message = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title: "Fetching the schemas of providers" },
      () => client.sendRequest<string>("workspace/executeCommand", { command: "terrace.schemas", arguments: [file.toString()] }),
    );
    void vscode.window.showInformationMessage(message);
  } catch (e) {
    void vscode.window.showErrorMessage(`The schemas were not fetched: ${e instanceof Error ? e.message : e}`);
  }
}
