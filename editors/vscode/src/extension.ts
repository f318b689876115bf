// The extension of Terrace: it starts `terrace lsp`, and shows what only this server has: the viewpoint,
// the effective module or unit, and the values that a change affects.
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";
import { Affected } from "./affected";
import { Effective, effectiveScheme } from "./effective";
import { fetchSchemas } from "./schemas";
import { initializationOptions, serverProgram, serverSection } from "./settings";
import { Viewpoint } from "./viewpoint";

// languages are the language identifiers whose documents the server receives, also those of other
// extensions for the same files.
const languages = [
  "terraform", "terraform-vars", "terraform-test", "opentofu", "opentofu-vars", "hcl",
  "terragrunt", "terragrunt-stack", "terragrunt-values", "terrace-rules",
];

// patterns select further files by their names: those that other extensions give a language of their own, files
// in JSON syntax, and files whose keys a module reads. The server formats none of the JSON and YAML files.
const patterns = ["**/*.{tf,tofu,tfvars,hcl}", "**/*.{json,yaml,yml}"];

let client: LanguageClient | undefined;

// running returns the client, or undefined if it does not run.
function running(): LanguageClient | undefined {
  return client?.isRunning() ? client : undefined;
}

async function start(log: vscode.OutputChannel, effective: Effective): Promise<void> {
  const program = serverProgram();
  const server: ServerOptions = { command: program, args: ["lsp"] };
  const options: LanguageClientOptions = {
    documentSelector: [
      ...languages.map((language) => ({ scheme: "file", language })),
      ...patterns.map((pattern) => ({ scheme: "file", pattern })),
    ],
    outputChannel: log,
    initializationOptions: initializationOptions(),
    middleware: {
      workspace: {
        configuration: async (params, token, next) => {
          const answers = await next(params, token);
          if (!Array.isArray(answers)) {
            return answers;
          }
          return params.items.map((item, i) => (item.section === "terrace" ? serverSection(item.scopeUri) : answers[i]));
        },
      },
      // The lens "3 uses" shows the references in the editor.
      executeCommand: async (command, args, next) => {
        if (command === "terrace.effective") { // the lens at a unit of a stack
          return effective.show(vscode.Uri.parse(args[0]));
        }
        const result = await next(command, args);
        if (command === "terrace.references" && client && Array.isArray(result)) {
          const at = client.protocol2CodeConverter.asPosition(args[1]);
          const places = result.map((l) => client!.protocol2CodeConverter.asLocation(l));
          await vscode.commands.executeCommand("editor.action.showReferences", vscode.Uri.parse(args[0]), at, places);
        }
        if (command === "terrace.schemas" && typeof result === "string") { // the quick fix
          void vscode.window.showInformationMessage(result);
        }
        return result;
      },
    },
  };
  client = new LanguageClient("terrace", "Terrace", server, options);
  try {
    await client.start();
  } catch (e) {
    // The activation does not wait for the user.
    void vscode.window.showErrorMessage(`The program "${program}" cannot be started: ${e instanceof Error ? e.message : e}`, "Open Settings").then((choice) => {
      if (choice) {
        void vscode.commands.executeCommand("workbench.action.openSettings", "terrace.path");
      }
    });
  }
}

async function stop(): Promise<void> {
  const old = client;
  client = undefined;
  if (old?.isRunning()) {
    await old.stop();
  }
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const log = vscode.window.createOutputChannel("Terrace");
  const viewpoint = new Viewpoint(running);
  const effective = new Effective(running);
  const affected = new Affected(running);
  // The server requests the settings again.
  const changed = () => running()?.sendNotification("workspace/didChangeConfiguration", { settings: null });
  context.subscriptions.push(
    log, viewpoint, effective, affected,
    vscode.workspace.registerTextDocumentContentProvider(effectiveScheme, effective),
    vscode.languages.registerDocumentLinkProvider({ scheme: effectiveScheme }, effective),
    vscode.commands.registerCommand("terrace.chooseViewpoint", () => viewpoint.choose()),
    vscode.commands.registerCommand("terrace.showValues", () => viewpoint.showValues()),
    vscode.commands.registerCommand("terrace.showEffective", () => effective.show()),
    vscode.commands.registerCommand("terrace.showAffected", () => affected.show()),
    vscode.commands.registerCommand("terrace.fetchSchemas", () => fetchSchemas(running())),
    vscode.commands.registerCommand("terrace.restart", async () => {
      await stop();
      await start(log, effective);
      await viewpoint.update();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(changed),
    vscode.workspace.onDidChangeConfiguration(async (e) => {
      if (e.affectsConfiguration("terrace.path")) {
        await vscode.commands.executeCommand("terrace.restart");
      } else if (e.affectsConfiguration("terrace")) {
        await changed();
        await viewpoint.update();
      }
    }),
    vscode.window.onDidChangeActiveTextEditor(() => viewpoint.update()),
    vscode.workspace.onDidSaveTextDocument(async () => {
      effective.refresh();
      await viewpoint.update(false); // the calls of a module may have changed
    }),
    viewpoint.onDidChange(() => effective.refresh()),
  );
  await start(log, effective);
  await viewpoint.update();
}

export function deactivate(): Promise<void> {
  return stop();
}
