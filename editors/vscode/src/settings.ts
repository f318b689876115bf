import * as vscode from "vscode";

// trusted reports whether functions of unit files may run programs: the workspace is trusted, and the
// user's own settings allow it. A value in the settings of the workspace does not count, since the
// repository can contain them.
export function trusted(): boolean {
  const setting = vscode.workspace.getConfiguration("terrace").inspect<string>("trust");
  return vscode.workspace.isTrusted && setting?.globalValue === "workspace";
}

// serverProgram returns the path of the program. In restricted mode, the settings of the workspace do
// not count.
export function serverProgram(): string {
  const setting = vscode.workspace.getConfiguration("terrace").inspect<string>("path");
  const own = vscode.workspace.isTrusted ? setting?.workspaceFolderValue ?? setting?.workspaceValue : undefined;
  return own || setting?.globalValue || setting?.defaultValue || "terrace";
}

// ServerSection is the section "terrace" of the configuration, as the server reads it.
export interface ServerSection {
  lint: boolean;
  allViewpoints: boolean;
  trust: boolean;
  trustCommands: boolean; // the user may compare with HEAD and fetch schemas
}

// serverSection returns the section for a workspace folder.
export function serverSection(scope?: string): ServerSection {
  const uri = scope ? vscode.Uri.parse(scope) : undefined;
  const section = vscode.workspace.getConfiguration("terrace", uri);
  return { lint: section.get("lint", true), allViewpoints: section.get("allViewpoints", false), trust: trusted(), trustCommands: vscode.workspace.isTrusted };
}

// initializationOptions make the server take the trust from the configuration that this extension sends.
export function initializationOptions(): { lint: boolean; allViewpoints: boolean; trust: string } {
  const { lint, allViewpoints } = serverSection();
  return { lint, allViewpoints, trust: "configuration" };
}

// viewpointSetting returns the URI of the unit in the setting "terrace.viewpoint" for a file, or "".
export function viewpointSetting(file: vscode.Uri, units: string[]): string {
  const folder = vscode.workspace.getWorkspaceFolder(file);
  const wanted = vscode.workspace.getConfiguration("terrace", file).get("viewpoint", "").replace(/^\.\/|\/+$/g, "");
  if (!folder || !wanted) {
    return "";
  }
  return units.find((u) => unitName(u, folder.uri.toString()) === wanted) ?? "";
}

// unitName returns the name of a unit or root module: its directory relative to a workspace folder, with the
// calls that lead to a module. A file that is not called terragrunt.hcl is an environment file, whose name
// counts too.
export function unitName(unit: string, folder: string): string {
  const [at, fragment] = unit.split("#");
  const calls = decodeURIComponent(fragment ?? "");
  let path = decodeURIComponent(at);
  const base = decodeURIComponent(folder).replace(/\/$/, "");
  path = path === base ? "" : path.startsWith(base + "/") ? path.slice(base.length + 1) : path.replace(/^file:\/\//, "");
  path = path.replace(/(^|\/)terragrunt\.hcl(\.json)?$/, "") || ".";
  return calls ? `${path} ${calls}` : path;
}
