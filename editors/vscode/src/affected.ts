import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { serverProgram } from "./settings";

const scheme = "terrace-affected";

// Unsaved is a file with text that is not on disk.
export interface Unsaved {
  path: string;
  text: string;
}

interface Output {
  stdout: string;
  stderr: string;
  code: number;
}

// run runs a program. It throws an error if the program cannot be started.
function run(program: string, args: string[], cwd: string, env: NodeJS.ProcessEnv, input = ""): Promise<Output> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, { cwd, env, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      if (error && typeof error.code !== "number") {
        reject(error);
        return;
      }
      resolve({ stdout, stderr, code: typeof error?.code === "number" ? error.code : 0 });
    });
    child.stdin?.on("error", () => {}); // the program may end before it reads
    child.stdin?.end(input);
  });
}

// compare runs `terrace affected` between HEAD and the files with their unsaved text. The unsaved text
// becomes a commit without a branch, so that neither the files nor the index of the user change.
export async function compare(program: string, file: string, unsaved: Unsaved[]): Promise<string> {
  const work = await mkdtemp(path.join(tmpdir(), "terrace-"));
  try {
    const who = { NAME: "Terrace", EMAIL: "terrace@localhost" };
    const env: NodeJS.ProcessEnv = { ...process.env, GIT_INDEX_FILE: path.join(work, "index") };
    for (const [k, v] of Object.entries(who)) {
      env[`GIT_AUTHOR_${k}`] = env[`GIT_COMMITTER_${k}`] = v;
    }
    const dir = path.dirname(file);
    const git = async (args: string[], cwd: string, input?: string): Promise<string> => {
      const out = await run("git", args, cwd, env, input);
      if (out.code !== 0) {
        throw new Error(`git ${args[0]}: ${out.stderr.trim()}`);
      }
      return out.stdout.trim();
    };
    const top = await git(["rev-parse", "--show-toplevel"], dir);
    await git(["read-tree", "HEAD"], top);
    await git(["add", "--all"], top);
    for (const u of unsaved) {
      const name = path.relative(top, u.path).split(path.sep).join("/");
      if (!name.startsWith("../") && !path.isAbsolute(name)) {
        const blob = await git(["hash-object", "-w", "--stdin"], top, u.text);
        await git(["update-index", "--add", "--cacheinfo", `100644,${blob},${name}`], top);
      }
    }
    const tree = await git(["write-tree"], top);
    const commit = await git(["commit-tree", tree, "-p", "HEAD", "-m", "Unsaved text"], top);
    const out = await run(program, ["affected", "HEAD", commit], dir, process.env);
    const text = [out.stdout, out.stderr].filter((t) => t.trim()).join("\n");
    return text.split(commit).join("the editor").split(commit.slice(0, 12)).join("the editor");
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

// Affected shows which values the text in the editor changes, compared with HEAD.
export class Affected implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly texts = new Map<string, string>();
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(scheme, this);
  readonly onDidChange = this.changed.event;

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
      await vscode.window.showWarningMessage("Trust the workspace to compare it with HEAD: the comparison runs git.");
      return;
    }
    const unsaved = vscode.workspace.textDocuments.filter((d) => d.isDirty && d.uri.scheme === "file").map((d) => ({ path: d.uri.fsPath, text: d.getText() }));
    try {
      const text = await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title: "Comparing with HEAD" },
        () => compare(serverProgram(), file.fsPath, unsaved),
      );
      const uri = vscode.Uri.from({ scheme, path: `/${path.basename(path.dirname(file.fsPath))} (affected)`, query: path.dirname(file.fsPath) });
      this.texts.set(uri.toString(), text);
      this.changed.fire(uri);
      const document = await vscode.workspace.openTextDocument(uri);
      await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: true });
    } catch (e) {
      await vscode.window.showErrorMessage(`The comparison failed: ${e instanceof Error ? e.message : e}`);
    }
  }
}
