import * as vscode from "vscode";
import type { LanguageClient } from "vscode-languageclient/node";
import { unitName, viewpointSetting } from "./settings";

// Viewpoints is the answer of the request terrace/viewpoints.
interface Viewpoints {
  current: string; // "" means that a module is seen alone
  default: string;
  all: string[];
  alone: string; // the viewpoint from which a module is seen alone; "" if the file is not part of a module
}

// Values is the answer of the request terrace/values.
interface Values {
  address: string;
  values: { value: string; units: string[] }[];
  more: boolean;
}

// Viewpoint shows in the status bar from which unit or root module the active file is seen, and changes it.
export class Viewpoint implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("terrace.viewpoint", vscode.StatusBarAlignment.Right, 100);
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly chosen = new Map<string, string>(); // the viewpoint that the user or the setting chose, by file; "" is the nearest
  private version = 0;
  readonly onDidChange = this.changed.event;

  constructor(private readonly client: () => LanguageClient | undefined) {
    this.item.name = "Terrace Viewpoint";
    this.item.command = "terrace.chooseViewpoint";
  }

  dispose(): void {
    this.item.dispose();
    this.changed.dispose();
  }

  // update shows the viewpoint of the active file, after choosing it again if choose is true.
  async update(choose = true): Promise<void> {
    const version = ++this.version;
    const uri = vscode.window.activeTextEditor?.document.uri;
    const found = uri && (await this.request(uri));
    if (version !== this.version) {
      return; // another file is active
    }
    if (!uri || !found || (!found.current && found.all.length === 0)) {
      this.item.hide();
      return;
    }
    // After a restart, the server does not know the choice any more.
    const wanted = this.chosen.get(uri.toString()) ?? viewpointSetting(uri, found.all);
    const possible = found.all.includes(wanted) || (wanted === found.alone && found.current !== "");
    if (choose && wanted && wanted !== found.current && possible) {
      await this.set(uri, wanted);
      return;
    }
    this.item.text = found.current ? `$(eye) seen from ${this.name(uri, found.current)}` : "$(eye) seen alone";
    this.item.tooltip = found.all.length > 1 || !found.current ? `${found.all.length} units or root modules use this file. Select to choose one.` : "Terrace shows the values of this unit.";
    this.item.show();
  }

  // choose asks the user for a unit.
  async choose(): Promise<void> {
    const uri = vscode.window.activeTextEditor?.document.uri;
    const found = uri && (await this.request(uri));
    if (!uri || !found || found.all.length === 0) {
      void vscode.window.showInformationMessage("No unit or root module uses this file.");
      return;
    }
    const items = [
      { label: found.default ? "Nearest" : "This module alone", description: found.default ? `the default: ${this.name(uri, found.default)}` : "the default", unit: "" },
      ...found.all.map((unit) => ({ label: this.name(uri, unit), description: unit === found.current ? "current" : "", unit })),
    ];
    if (found.alone && found.default) {
      items.push({ label: "This module alone", description: found.current ? "" : "current", unit: found.alone });
    }
    const choice = await vscode.window.showQuickPick(items, { title: "Seen from", matchOnDescription: true });
    if (choice) {
      await this.set(uri, choice.unit);
    }
  }

  // showValues shows the values that the name at the cursor has in all units that read the file. A choice
  // becomes the viewpoint.
  async showValues(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const client = this.client();
    if (!editor || !client || editor.document.uri.scheme !== "file") {
      return;
    }
    const uri = editor.document.uri;
    const at = editor.selection.active;
    const found = await client.sendRequest<Values>("terrace/values", { textDocument: { uri: uri.toString() }, position: { line: at.line, character: at.character } });
    if (found.values.length === 0) {
      void vscode.window.showInformationMessage("There is no name here whose value a unit determines.");
      return;
    }
    const count = found.values.reduce((n, v) => n + v.units.length, 0);
    const items = found.values.flatMap((v) => v.units.map((unit) => ({ label: v.value || "not known", description: this.name(uri, unit), unit })));
    const plural = (n: number, word: string) => `${n} ${word}${n === 1 ? "" : "s"}`;
    const title = `${found.address}: ${plural(found.values.length, "value")} in ${found.more ? "more than " : ""}${plural(count, "unit")}`;
    const choice = await vscode.window.showQuickPick(items, { title, matchOnDescription: true, placeHolder: "Select a unit to see the file from it" });
    if (choice) {
      await this.set(uri, choice.unit);
    }
  }

  private async set(file: vscode.Uri, unit: string): Promise<void> {
    this.chosen.set(file.toString(), unit);
    await this.client()?.sendRequest("workspace/executeCommand", { command: "terrace.viewpoint", arguments: [file.toString(), unit] });
    this.changed.fire();
    await this.update(false);
  }

  private async request(uri: vscode.Uri): Promise<Viewpoints | undefined> {
    const client = this.client();
    if (!client || uri.scheme !== "file" || !/\.(tf|tofu|hcl|tfvars)(\.json)?$/.test(uri.path)) {
      return undefined;
    }
    return client.sendRequest<Viewpoints>("terrace/viewpoints", { textDocument: { uri: uri.toString() } });
  }

  private name(file: vscode.Uri, unit: string): string {
    return unitName(unit, vscode.workspace.getWorkspaceFolder(file)?.uri.toString() ?? "");
  }
}
