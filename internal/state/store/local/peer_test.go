//go:build unix

package local

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
	"github.com/zclconf/go-cty/cty"
)

// peer runs OpenTofu in a directory with a configuration.
type peer struct {
	t        *testing.T
	dir, bin string
}

func newPeer(t *testing.T, config string) *peer {
	t.Helper()
	bin := os.Getenv("TERRACE_TEST_TOFU")
	if bin == "" {
		t.Skip("SKIP: TERRACE_TEST_TOFU does not name an OpenTofu binary to compare with")
	}
	p := &peer{t: t, dir: t.TempDir(), bin: bin}
	if err := os.WriteFile(filepath.Join(p.dir, "main.tf"), []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	p.run(0, "init")
	return p
}

func (p *peer) cmd(args ...string) *exec.Cmd {
	cmd := exec.Command(p.bin, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull, "TF_CLI_ARGS=-no-color")
	return cmd
}

// run runs a command and checks its exit code.
func (p *peer) run(code int, args ...string) string {
	p.t.Helper()
	cmd := p.cmd(args...)
	out, _ := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("tofu %v ended with %d, want %d:\n%s", args, got, code, out)
	}
	return string(out)
}

func (p *peer) path() string { return filepath.Join(p.dir, DefaultPath) }

func (p *peer) open() *Store { return Open(Options{Dir: p.dir, Who: "me@here", Now: clock}) }

func (p *peer) read() *state.State {
	p.t.Helper()
	s, ds := p.open().Read(context.Background())
	if ds.HasErrors() || s == nil {
		p.t.Fatalf("%v %v", s, ds.Err())
	}
	return s
}

const peerConfig = `
variable "n" {
  default = 1
}
resource "terraform_data" "b" {
  input = "<a&b> é \" \\ \n"
}
resource "terraform_data" "c" {
  count = 12
  input = { a = 1.5, b = [true, null, 1e30], c = sensitive("s"), d = count.index }
}
resource "terraform_data" "e" {
  for_each   = toset(["z", "b", "10", "9"])
  input      = each.key
  depends_on = [terraform_data.c, terraform_data.b]
  lifecycle {
    create_before_destroy = true
  }
}
output "o" {
  value = { a = [1, 2], b = "<x>", n = var.n }
}
output "s" {
  value     = sensitive("x")
  sensitive = true
}
output "big" {
  value = 12345678901234567890.125
}
`

// A state that OpenTofu wrote is read and written again without any change of a byte, and
// OpenTofu finds no change. The same applies after all values were decoded and encoded.
func TestRoundTripWithOpenTofu(t *testing.T) {
	p := newPeer(t, peerConfig)
	p.run(0, "apply", "-auto-approve")
	before, err := os.ReadFile(p.path())
	if err != nil {
		t.Fatal(err)
	}
	s := p.read()
	var again bytes.Buffer
	if err := statefile.Write(&again, s, true); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, again.Bytes()) {
		t.Errorf("written again:\n%s\nby OpenTofu:\n%s", again.Bytes(), before)
	}
	// Decode every value and encode it again.
	ty := cty.Object(map[string]cty.Type{"id": cty.String, "input": cty.DynamicPseudoType, "output": cty.DynamicPseudoType, "triggers_replace": cty.DynamicPseudoType})
	d := s.Edit()
	for a, o := range s.Objects() {
		v, err := o.Decode(ty)
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := state.NewObject(v, ty)
		if err != nil {
			t.Fatal(err)
		}
		next := *o
		next.JSON, next.Value = fresh.JSON, fresh.Value
		_, provider, _ := s.Object(a)
		d.Apply(state.Change{Object: a, Provider: provider, New: &next})
	}
	d.SetOutput("o", &state.Output{Value: s.Outputs["o"].Value})
	same := d.Freeze()
	if !same.Equal(s) {
		t.Errorf("encoded anew it differs: %v", state.Diff(s, same))
	}
	for a, o := range same.Objects() {
		if old, _, _ := s.Object(a); !bytes.Equal(o.JSON, old.JSON) {
			t.Errorf("%s: %s, was %s", a, o.JSON, old.JSON)
		}
	}
	os.Remove(p.path())
	if ds := p.open().Write(context.Background(), same); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	p.run(0, "plan", "-detailed-exitcode")
	// If an object is missing in the state, OpenTofu plans to create it.
	d = same.Edit()
	d.Apply(state.Change{Object: addr.Object{Instance: addr.Instance{Resource: addr.Resource{Type: "terraform_data", Name: "b"}}}})
	next, _ := store.NextSerial(same, d.Freeze())
	if ds := p.open().Write(context.Background(), next); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if out := p.run(2, "plan", "-detailed-exitcode"); !strings.Contains(out, "Plan: 1 to add, 0 to change, 0 to destroy.") {
		t.Error(out)
	}
}

func TestOpenTofuIsRefusedAtEveryMoment(t *testing.T) {
	p := newPeer(t, peerConfig)
	s := p.open()
	unlock := lockNow(t, s)
	for n := range 4 {
		out := p.run(1, "plan")
		for _, want := range []string{"Error acquiring the state lock", "me@here", "OperationTypeApply"} {
			if !strings.Contains(out, want) {
				t.Fatalf("round %d: %q is not in:\n%s", n, want, out)
			}
		}
		write(t, s, n)
		ReadFile(context.Background(), p.path()) // like terraform_remote_state
	}
	unlock()
	p.run(2, "plan", "-detailed-exitcode")
}

// An OpenTofu process that waits for our lock continues with the state that we wrote, and its
// own state is not lost.
func TestOpenTofuThatWaitedSeesOurState(t *testing.T) {
	p := newPeer(t, peerConfig)
	p.run(0, "apply", "-auto-approve")
	s := p.open()
	unlock := lockNow(t, s)
	cmd := p.cmd("apply", "-auto-approve", "-var", "n=2", "-lock-timeout=60s")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(1500 * time.Millisecond) // by now it has opened the file and was refused
	d := p.read().Edit()
	d.SetOutput("big", nil)
	ours, _ := store.NextSerial(p.read(), d.Freeze())
	if ds := s.Write(context.Background(), ours); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	unlock()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if got := p.read(); got.Serial != ours.Serial+1 || got.Outputs["big"] == nil {
		t.Errorf("serial %d after our %d", got.Serial, ours.Serial)
	}
}

func TestRefusedByOpenTofu(t *testing.T) {
	p := newPeer(t, `
resource "terraform_data" "slow" {
  provisioner "local-exec" {
    command = "touch started; while [ ! -e go ]; do sleep 0.1; done"
  }
}
`)
	cmd := p.cmd("apply", "-auto-approve")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if _, err := os.Stat(filepath.Join(p.dir, "started")); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	_, ds := p.open().Lock(context.Background(), store.LockInfo{}, 0)
	if !ds.HasErrors() {
		t.Fatal("the lock was granted while OpenTofu has it")
	}
	info, ok := ds[0].Extra.(*store.LockInfo)
	if !ok || info.Operation != "OperationTypeApply" || !regexp.MustCompile(`^[0-9a-f-]{36}$`).MatchString(info.ID) || info.Path != DefaultPath {
		t.Errorf("%+v", info)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "go"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	unlock, ds := p.open().Lock(context.Background(), store.LockInfo{}, time.Minute)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if got := p.read(); len(got.Resources) != 1 {
		t.Errorf("%d resources", len(got.Resources))
	}
	unlock()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
}
