// The files that all clients open, and the program.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { execFileSync } from "node:child_process";

// program is the path of terrace, or "" if the variable TERRACE does not name it.
export const program = process.env.TERRACE ?? "";

// installed returns the output of a program with arguments, or undefined if it is not installed.
export function installed(name, ...args) {
  try {
    return execFileSync(name, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  } catch {
    return undefined;
  }
}

export const files = {
  "main.tf": `variable "size" {
  type        = number
  default     = 1
  description = "How many."
}
locals {
  name = "n-\${var.size}"
}
resource "terraform_data" "web" {
  input = local.name
}
module "m" {
  source = "./m"
  color  = local.name
}
output "o" {
  value = module.m.out
}
`,
  "web_override.tf": `resource "terraform_data" "web" {
  input = "over"
}
`,
  "ugly.tf": `locals {
ugly=1
  longer   = 2
}
`,
  "wrong.tf": `output "wrong" {
  value = local.nam
}
`,
  "terraform.tfvars": "size = 3\n",
  "m/main.tf": `variable "color" {}
output "out" {
  value = var.color
}
`,
  "root.hcl": `locals {
  region = "eu"
}
inputs = {
  region = local.region
}
`,
  "app/terragrunt.hcl": `include "root" {
  path   = find_in_parent_folders("root.hcl")
  expose = true
}
terraform {
  source = "../modules/app"
}
locals {
  zone = include.root.locals.region
}
inputs = {
  zone = local.zone
}
`,
  "modules/app/main.tf": `variable "region" {}
variable "zone" {}
output "all" {
  value = "\${var.region} \${var.zone}"
}
`,
  "run/terragrunt.hcl": `locals {
  ran = run_cmd("--terragrunt-quiet", "sh", "-c", "touch RAN; echo value")
}
inputs = {
  ran = local.ran
}
`,
  "run/main.tf": 'variable "ran" {}\n',
};

// workspace writes the files to a new directory, which is removed after the test.
export function workspace(t) {
  const dir = realpathSync(mkdtempSync(path.join(tmpdir(), "terrace-editors-")));
  t.after(() => rmSync(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    writeFileSync(path.join(dir, name), text);
  }
  return dir;
}

// position returns the position behind the first occurrence of a mark in a file.
export function position(name, mark) {
  const at = files[name].indexOf(mark);
  if (at < 0) {
    throw new Error(`${name} does not contain ${mark}`);
  }
  const before = files[name].slice(0, at + mark.length).split("\n");
  return { line: before.length - 1, character: before.at(-1).length };
}
