package server_test

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/lsp/server"
)

// movedEstate has units whose values come from modules and files that move.
const movedEstate = `
-- root.hcl --
locals {
  modules = "${get_repo_root()}/m"
}
-- m/app/main.tf --
variable "vpc_id" {}
variable "zone" {}
module "leaf" {
  source = "../leaf"
  zone   = var.zone
}
resource "terraform_data" "x" {
  input = "${var.vpc_id} ${module.leaf.out}"
}
output "id" {
  value = module.leaf.out
}
-- m/leaf/main.tf --
variable "zone" {}
output "out" {
  value = "leaf ${var.zone}"
}
-- m/vpc/main.tf --
variable "region" {}
output "id" {
  value = var.region
}
-- env/region.hcl --
locals {
  region = "eu"
}
inputs = {
  region = "eu"
}
-- vpc/terragrunt.hcl --
terraform {
  source = "../m/vpc"
}
inputs = read_terragrunt_config("../env/region.hcl").inputs
-- live/app/terragrunt.hcl --
import "region" {
  config_path = "../../env/region.hcl"
}
terraform {
  source = "${get_repo_root()}//m/app"
}
inputs = {
  vpc_id = import.region.inputs.region
  zone   = import.region.locals.region
}
-- live/web/terragrunt.hcl --
locals {
  modules = "${get_repo_root()}/m"
}
terraform {
  source = "${local.modules}//app"
}
inputs = {
  vpc_id = "x"
  zone   = read_terragrunt_config("${get_terragrunt_dir()}/../../env/region.hcl").locals.region
}
-- plain/main.tf --
module "leaf" {
  source = "../m/leaf"
  zone   = "plain"
}
resource "terraform_data" "y" {
  input = module.leaf.out
}
-- plain/x_override.tf --
module "leaf" {
  source = "./../m/leaf"
}
`

// terrace runs a command in a directory and returns its output.
func terrace(t *testing.T, dir string, env []string, args ...string) (string, int) {
	t.Helper()
	system, err := sys.Real()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	system.Dir, system.Env, system.Args = dir, env, append([]string{"terrace"}, args...)
	system.Stdout, system.Stderr, system.Stdin = &out, &out, strings.NewReader("")
	code := cli.Main(context.Background(), system)
	return out.String(), code
}

var moveSeeds = flag.Int("move-seeds", 10, "number of estates in which TestMovesChangeNothing makes up to 13 moves each")

// sourceOnly matches the difference of a source, which names the new path.
var sourceOnly = regexp.MustCompile(`^~ (terraform|module\.[a-z]+) source: `)

// After random moves of directories, with the edits of the server, each value is the same: explain gives
// the same answers, and affected finds no difference except in sources.
func TestMovesChangeNothing(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	rounds := *moveSeeds
	if testing.Short() {
		rounds = 1
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		dir := server.Unpack(t, movedEstate)
		env := []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@x"}
		for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "one"}} {
			c := exec.Command("git", args...)
			c.Dir, c.Env = dir, env
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("git: %v: %s", err, out)
			}
		}
		// Units move in a second series, since affected compares a unit with the unit at its path.
		questions := map[string][]string{"live/app": {"inputs.zone", "inputs.vpc_id", "terraform_data.x.input"}, "live/web": {"inputs.zone", "terraform_data.x.input"}, "plain": {"terraform_data.y.input"}, "vpc": {"inputs.region"}}
		ask := func(at map[string]string) (out []string) {
			for _, unit := range []string{"live/app", "live/web", "plain", "vpc"} {
				for _, q := range questions[unit] {
					text, code := terrace(t, filepath.Join(dir, at[unit]), env, "explain", q)
					first, _, _ := strings.Cut(text, "\n")
					if code != 0 || first == "" {
						t.Errorf("seed %d: explain %s in %s: %s", seed, q, at[unit], text)
					}
					out = append(out, first)
				}
			}
			return out
		}
		own := map[string]string{"live/app": "live/app", "live/web": "live/web", "plain": "plain", "vpc": "vpc"}
		before := ask(own)
		moved := server.MoveSome(t, dir, r, map[string]string{"app": "m/app", "leaf": "m/leaf", "vpcmod": "m/vpc", "env": "env"}, 8)
		if got := ask(own); strings.Join(got, "\n") != strings.Join(before, "\n") {
			t.Errorf("seed %d: after %q:\n%s\nbefore:\n%s", seed, moved, strings.Join(got, "\n"), strings.Join(before, "\n"))
		}
		out, _ := terrace(t, dir, env, "affected", "HEAD")
		for _, line := range strings.Split(out, "\n") {
			if line = strings.TrimSpace(line); (strings.HasPrefix(line, "~ ") || strings.HasPrefix(line, "+ ") || strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "? ")) && !sourceOnly.MatchString(line) {
				t.Errorf("seed %d: after %q, affected shows %s:\n%s", seed, moved, line, out)
			}
		}
		names := map[string]string{"live/app": "live/app", "live/web": "live/web", "plain": "plain", "vpc": "vpc"}
		moved = server.MoveSome(t, dir, r, names, 5)
		if got := ask(names); strings.Join(got, "\n") != strings.Join(before, "\n") {
			t.Errorf("seed %d: after %q:\n%s\nbefore:\n%s", seed, moved, strings.Join(got, "\n"), strings.Join(before, "\n"))
		}
	}
}
