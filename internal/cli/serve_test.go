package cli_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/schedule"
	"golang.org/x/tools/txtar"
)

// servedEstate is an estate whose plan depends on options of several kinds.
const servedEstate = `
-- live/web/terragrunt.hcl --
dependency "net" { config_path = "../net" }
terraform {
  extra_arguments "more" {
    commands  = ["apply"]
    arguments = ["-var", "extra=by the unit"]
  }
}
inputs = {
  net   = dependency.net.outputs.id
  words = join(" ", get_terraform_cli_args())
  flag  = feature.size.value
}
feature "size" { default = "small" }
-- live/web/main.tf --
variable "net" {}
variable "words" {}
variable "flag" {}
variable "extra" {}
variable "given" {}
variable "file" {}
resource "terraform_data" "one" { input = "net ${var.net}; words ${var.words}; flag ${var.flag}; extra ${var.extra}; given ${var.given}; file ${var.file}" }
output "all" { value = terraform_data.one.output }
-- live/net/terragrunt.hcl --
feature "size" { default = "small" }
-- live/net/main.tf --
variable "given" {}
variable "file" {}
output "id" { value = terraform_data.one.output }
resource "terraform_data" "one" { input = "n-${var.given}" }
resource "terraform_data" "two" {}
-- live/other/terragrunt.hcl --
-- live/other/main.tf --
output "id" { value = "other" }
-- values.tfvars --
file = "f"
`

// TestServe runs an apply whose units run in another estate that Serve opens, as on a worker.
// There is no command line: the options are those of the job.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(servedEstate)).Files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	x := &served{t: t}
	client := sys.Test(dir, "HOME="+dir, "TF_CLI_ARGS_apply=-var=given=g", "TG_FEATURE=size=large")
	client.Run = x.engine
	client.Args = append(client.Args, "-chdir=live", "run", "--all", "--non-interactive", "--filter", "!./other", "--on", "temporal://server:1/n/q", "--in-place",
		"--", "apply", "-auto-approve", "-var-file="+filepath.Join(dir, "values.tfvars"), "-exclude=terraform_data.two", "-no-color")
	if code := cli.Main(t.Context(), client.System); code != 0 {
		t.Fatalf("status %d\n%s\n%s\nworker: %s", code, client.Out, client.Err, x.said)
	}
	if want := []string{"net", "web"}; !slices.Equal(x.ran, want) {
		t.Errorf("units %q ran, want %q", x.ran, want)
	}
	in := func(unit string, args ...string) string {
		fake := sys.Test(filepath.Join(dir, "live", unit), "HOME="+dir)
		fake.Args = append(fake.Args, args...)
		if code := cli.Main(t.Context(), fake.System); code != 0 {
			t.Fatalf("%s: %q ended with status %d\n%s", unit, args, code, fake.Err)
		}
		return fake.Out.String()
	}
	want := "net n-g; words apply -auto-approve -var-file=" + filepath.Join(dir, "values.tfvars") + " -exclude=terraform_data.two -no-color -input=false; flag large; extra by the unit; given g; file f"
	if got := in("web", "output", "-raw", "all"); got != want {
		t.Errorf("the output is\n%s, want\n%s", got, want)
	}
	if got := in("net", "state", "list"); got != "terraform_data.one\n" {
		t.Errorf("the state has %q", got)
	}
}

// served is the program terrace-worker for a client, with an engine and a worker in one process.
type served struct {
	t    *testing.T
	said string   // output of the worker
	ran  []string // units in the order of their turns
}

// engine is a function sys.System.Run: it runs the units of the run that the client starts.
func (x *served) engine(ctx context.Context, c sys.Command) error {
	if strings.TrimSuffix(filepath.Base(c.Path), ".exe") != "terrace-worker" {
		return sys.Run(ctx, c)
	}
	link := remote.NewLink(c.Stdin, c.Stdout)
	m, err := link.Next()
	if err != nil || m.Start == nil {
		return errors.Join(errors.New("no run is started"), err)
	}
	if err := x.run(ctx, link, m.Start); err != nil {
		return link.Send(remote.Message{Failed: err.Error()})
	}
	return link.Send(remote.Message{Over: true})
}

func (x *served) run(ctx context.Context, link *remote.Link, start *remote.Start) error {
	job := start.Job
	job.ID = "run"
	sealer, err := remote.NewSealer(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		return err
	}
	blobs := &remote.Blobs{Objects: remote.Folder(x.t.TempDir()), Sealer: sealer, Now: time.Now}
	s := remote.NewSession(&job, blobs, start.Approved)
	s.Local = job.Root
	worker := sys.Test(filepath.Join(job.Root, filepath.FromSlash(job.Dir)), append([]string{"HOME=" + x.t.TempDir()}, job.Env...)...)
	ended := make(chan struct{})
	go func() { // ends with the session
		defer close(ended)
		code := cli.Serve(ctx, worker.System, s, job.Request.Relocate(job.Root, s.Local))
		x.said = worker.Out.String() + worker.Err.String()
		s.End(fmt.Errorf("the estate is closed with status %d: %s", code, x.said))
	}()
	defer func() {
		s.End(nil)
		<-ended
	}()
	if err := link.Send(remote.Message{Started: job.ID}); err != nil {
		return err
	}
	outputs := map[int]remote.Ref{}
	for range start.Tasks {
		i := slices.IndexFunc(start.Tasks, func(t schedule.Task) bool {
			ready := !slices.ContainsFunc(t.Needs, func(n int) bool { return !start.Tasks[n].Skip && !slices.Contains(x.ran, start.Tasks[n].Name) })
			return !t.Skip && ready && !slices.Contains(x.ran, t.Name)
		})
		if i < 0 {
			break
		}
		unit := start.Tasks[i].Name
		needs := map[string]remote.Ref{}
		for _, n := range start.Tasks[i].Needs {
			if ref, ok := outputs[n]; ok {
				needs[start.Tasks[n].Name] = ref
			}
		}
		got, err := s.Ask(&remote.Request{Turn: remote.Turn{Unit: unit, Number: 1, Needs: needs}, Ctx: ctx})
		if err != nil {
			return err
		}
		x.ran = append(x.ran, unit)
		if got.Outputs != nil {
			outputs[i] = *got.Outputs
		}
		text, err := blobs.Get(ctx, got.Report)
		if err != nil {
			return err
		}
		if err := link.Send(remote.Message{Ended: &remote.Ended{Unit: unit, At: time.Now(), Outcome: got.Outcome, Report: text}}); err != nil {
			return err
		}
	}
	return nil
}
