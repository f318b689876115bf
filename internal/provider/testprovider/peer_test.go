package testprovider_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/internal/provider/testprovider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/msgpack"
)

// TestMain runs the provider if OpenTofu starts the test binary as a plugin.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_PROVIDER") != "" {
		testprovider.Main(testprovider.Protocol())
		return
	}
	os.Exit(m.Run())
}

// peer is a working directory in which OpenTofu runs with the test provider.
type peer struct {
	t        *testing.T
	bin, dir string
	dump     string
	protocol int
}

func newPeer(t *testing.T, protocol int) *peer {
	t.Helper()
	bin := os.Getenv("TERRACE_TEST_TOFU")
	if bin == "" {
		t.Skip("SKIP: TERRACE_TEST_TOFU does not name a tofu binary")
	}
	p := &peer{t: t, bin: bin, dir: t.TempDir(), protocol: protocol}
	p.dump = filepath.Join(p.dir, "dump")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(p.dir, "terraform-provider-test")); err != nil {
		t.Fatal(err)
	}
	p.write("cli.tfrc", fmt.Sprintf("provider_installation {\n dev_overrides { %q = %q }\n direct {}\n}\n", testprovider.Addr.String(), p.dir))
	return p
}

func (p *peer) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) config(resources string) {
	p.t.Helper()
	p.write("main.tf", fmt.Sprintf("terraform {\n required_providers {\n  test = { source = %q }\n }\n}\nprovider \"test\" {\n dump_path = %q\n}\n%s", testprovider.Addr.String(), p.dump, resources))
}

var resourceName = regexp.MustCompile(`test_object\.\w+`)

// errors runs a command and returns its errors by resource.
func (p *peer) errors(args ...string) map[string]string {
	p.t.Helper()
	cmd := exec.Command(p.bin, append(args, "-json", "-no-color", "-input=false")...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "TEST_PROVIDER=1", fmt.Sprintf("TEST_PROTOCOL=%d", p.protocol), "TF_CLI_CONFIG_FILE="+filepath.Join(p.dir, "cli.tfrc"))
	out, err := cmd.Output()
	if ee, ok := err.(*exec.ExitError); ok && len(ee.Stderr) > 0 {
		p.t.Fatalf("%s: %.2000s", err, ee.Stderr)
	}
	found := make(map[string]string)
	for _, line := range strings.Split(string(out), "\n") {
		var m struct {
			Diagnostic *struct{ Severity, Summary, Detail, Address string }
		}
		if json.Unmarshal([]byte(line), &m) == nil && m.Diagnostic != nil && m.Diagnostic.Severity == "error" {
			found[resourceName.FindString(m.Diagnostic.Detail+m.Diagnostic.Address)] += m.Diagnostic.Summary + ": " + m.Diagnostic.Detail + "\n"
		}
	}
	return found
}

// dumped is one recorded plan or apply call.
type dumped struct {
	call, typ, name string
	values          []cty.Value // prior, config, and then proposed and planned, or planned and new
}

func (p *peer) dumped(blocks map[string]*schema.Block) []dumped {
	p.t.Helper()
	b, err := os.ReadFile(p.dump)
	if err != nil {
		p.t.Fatal(err)
	}
	var out []dumped
	for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		f := strings.Split(line, "\t")
		d := dumped{call: f[0], typ: f[1], name: f[2]}
		for _, field := range f[3:] {
			raw, err := base64.StdEncoding.DecodeString(field)
			if err != nil {
				p.t.Fatal(err)
			}
			v, err := msgpack.Unmarshal(raw, blocks[d.typ].ImpliedType())
			if err != nil {
				p.t.Fatal(err)
			}
			d.values = append(d.values, v)
		}
		out = append(out, d)
	}
	if err := os.Remove(p.dump); err != nil {
		p.t.Fatal(err)
	}
	return out
}

func blocks(t *testing.T, protocol int) map[string]*schema.Block {
	t.Helper()
	dir, err := os.MkdirTemp("", "attach")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	r, stop, err := testprovider.Listen(dir, protocol)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	p, ds := rpc.Attach(t.Context(), r, rpc.Options{Addr: testprovider.Addr})
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	t.Cleanup(func() { _ = p.Close() })
	s, ds := p.Schema(t.Context())
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	return map[string]*schema.Block{
		"test_object": s.Resource(addr.Managed, "test_object").Block, "test_record": s.Resource(addr.Managed, "test_record").Block,
	}
}

const bodies = `
resource "terraform_data" "later" { input = %[1]q }
resource "test_object" "plain" { name = "plain" }
resource "test_object" "full" {
  name   = "full"
  number = %[2]s
  serial = %[2]s
  secret = "s%[1]s"
  wo     = "w%[1]s"
  map    = { a = "1", b = terraform_data.later.output }
  list   = ["x", "%[1]s"]
  set    = ["y", "%[1]s"]
  any    = [1, { a = "%[1]s" }]
  %[3]s
}
`

var first = `
  item { key = "a" }
  item {
    key   = "b"
    value = "1"
    wo    = "w"
  }
  tag { key = "a" }
  tag { key = "b" }
  tag {
    key   = "c"
    value = "v"
  }
  setting { password = "p" }
`

var second = `
  item { key = "new" }
  item { key = "a" }
  item { key = terraform_data.later.output }
  tag { key = "b" }
  tag { key = terraform_data.later.output }
  tag {
    key   = "c"
    value = "w"
  }
`

const meta1 = `
  meta = [{ key = "k1" }, { key = "k2", size = 9, secret = "s" }]
`
const meta2 = `
  meta = [{ key = "k0" }, { key = "k2" }, { key = "k3" }]
`

// differences describes the differences between two values of one type.
func differences(ours, theirs cty.Value) string {
	var out strings.Builder
	for name := range ours.Type().AttributeTypes() {
		if a, b := ours.GetAttr(name), theirs.GetAttr(name); !a.RawEquals(b) {
			fmt.Fprintf(&out, "\n%s: ours %#v, theirs %#v", name, a, b)
		}
	}
	return out.String()
}

// Terrace sends the provider the same proposed objects as OpenTofu.
func TestProposedLikePeer(t *testing.T) {
	for _, protocol := range []int{5, 6} {
		t.Run(fmt.Sprint(protocol), func(t *testing.T) {
			p := newPeer(t, protocol)
			schemas := blocks(t, protocol)
			one, two := first, second
			if protocol == 6 {
				one, two = first+meta1, second+meta2
			}
			n := 0
			for _, step := range []struct{ text, number, body string }{{"a", "1", one}, {"b", "null", two}, {"c", "2", one}, {"c", "null", ""}} {
				p.config(fmt.Sprintf(bodies, step.text, step.number, step.body))
				if errs := p.errors("apply", "-auto-approve"); len(errs) > 0 {
					t.Fatal(errs)
				}
				for _, d := range p.dumped(schemas) {
					if d.call != "plan" {
						continue
					}
					n++
					b := schemas[d.typ]
					if got := b.ProposedNew(d.values[0], d.values[1]); !got.RawEquals(d.values[2]) {
						t.Errorf("%s: %s", d.name, differences(got, d.values[2]))
					}
					if errs := schema.AssertPlanValid(b, d.values[0], d.values[1], d.values[3], false); errs != nil {
						t.Errorf("%s: %v", d.name, errs)
					}
				}
			}
			if n < 8 {
				t.Errorf("%d plans only", n)
			}
		})
	}
}

// Terrace reports contradictions in a plan or result for the same resources as OpenTofu.
func TestPromisesLikePeer(t *testing.T) {
	const seeds = 300
	schemas := blocks(t, 6)
	for _, call := range []string{"plan", "create"} {
		t.Run(call, func(t *testing.T) {
			p := newPeer(t, 6)
			var cfg strings.Builder
			for seed := range seeds {
				fmt.Fprintf(&cfg, "resource \"test_object\" \"r%[1]d\" {\n name = \"r%[1]d\"\n misbehave = \"mutate%[1]d:%s\"\n number = 1\n secret = \"s\"\n map = { a = \"1\" }\n list = [\"a\", \"b\"]\n set = [\"a\"]\n any = [\"x\"]\n%[3]s%[4]s}\n", seed, call, first, meta1)
			}
			p.config(cfg.String())
			errs := p.errors("apply", "-auto-approve", "-parallelism=4")
			// OpenTofu does not name the resource if a write-only value is returned.
			writeOnly := strings.Count(errs[""], "write-only attribute")
			broken, n := 0, 0
			for _, d := range p.dumped(schemas) {
				if want := map[string]string{"plan": "plan", "create": "apply"}[call]; d.call != want {
					continue
				}
				n++
				b := schemas[d.typ]
				var ours []error
				if call == "plan" {
					ours = schema.AssertPlanValid(b, d.values[0], d.values[1], d.values[3], false)
				} else {
					ours = schema.AssertObjectCompatible(b, d.values[2], d.values[3])
					if err := schema.AssertUsable(b, d.values[3], true); err != nil {
						ours = append(ours, err)
					}
				}
				theirs := errs["test_object."+d.name]
				if len(ours) > 0 && strings.Contains(ours[0].Error(), "write-only") {
					writeOnly--
					continue
				}
				if (len(ours) > 0) != (theirs != "") {
					t.Errorf("%s: ours %v, theirs %q", d.name, ours, theirs)
				}
				if theirs != "" {
					broken++
				}
			}
			if writeOnly != 0 {
				t.Errorf("%d write-only values more were found by the peer", writeOnly)
			}
			if n < seeds || broken < seeds/4 {
				t.Errorf("%d calls, %d of them broken", n, broken)
			}
			t.Logf("%d calls, %d of them broken", n, broken)
		})
	}
}
