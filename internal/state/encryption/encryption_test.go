package encryption

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/state/statefile"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"
)

var ctx = context.Background()

// static evaluates an expression without a scope.
func static(x hcl.Expression) (cty.Value, diag.List) {
	v, diags := x.Value(nil)
	return v, diag.FromHCL(diags)
}

func services(t *testing.T, dir string) backend.Services {
	s := backendtest.Services(t)
	s.Dir, s.Run, s.Env = dir, sys.Run, sys.Env(os.Environ())
	return s
}

func parse(t *testing.T, text string, s backend.Services) *Config {
	t.Helper()
	c, ds := Parse(nil, text, static, s)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	return c
}

// opened returns the plain text of a payload, and sealed0 the sealed payload.
func opened(t *Target, payload []byte) (plain []byte, migrate bool, err error) {
	r, migrate, err := t.Open(bytes.NewReader(payload), int64(len(payload)))
	if err == nil {
		plain, err = io.ReadAll(r)
	}
	return plain, migrate, err
}

func sealed0(t *Target, plain []byte, serial uint64, lineage string) ([]byte, error) {
	write, err := t.Seal(sealing.Plaintext{Write: whole(plain), Serial: serial, Lineage: lineage})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = write(&b)
	return b.Bytes(), err
}

// vectors runs a test for each state that OpenTofu encrypted, extracted to a directory.
func vectors(t *testing.T, run func(t *testing.T, dir, config string)) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d vectors, %v", len(files), err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(f)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			for _, x := range a.Files {
				if err := os.WriteFile(filepath.Join(dir, x.Name), x.Data, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			config, err := os.ReadFile(filepath.Join(dir, "encryption.hcl"))
			if err != nil {
				t.Fatal(err)
			}
			run(t, dir, string(config))
		})
	}
}

func TestVectors(t *testing.T) {
	vectors(t, func(t *testing.T, dir, config string) {
		sealed, err := os.ReadFile(filepath.Join(dir, "state.json"))
		if err != nil {
			t.Fatal(err)
		}
		c := parse(t, config, services(t, dir))
		plain, migrate, err := opened(c.State(ctx), sealed)
		if err != nil || migrate {
			t.Fatalf("migrate %v: %v", migrate, err)
		}
		s, ds := statefile.Parse("x", plain)
		if ds.HasErrors() || s.Outputs["o"].Value != cty.StringVal("secret") {
			t.Fatalf("%v %+v", ds, s)
		}
		again, err := sealed0(c.State(ctx), plain, s.Serial, s.Lineage)
		if err != nil || bytes.Contains(again, []byte("secret")) || !Sealed(again) {
			t.Fatalf("%v %s", err, again)
		}
		if back, _, err := opened(parse(t, config, services(t, dir)).State(ctx), again); err != nil || !bytes.Equal(back, plain) {
			t.Errorf("%v", err)
		}
		broken := bytes.Replace(again, []byte(`"serial":1`), []byte(`"serial":2`), 1)
		if _, _, err := opened(c.State(ctx), broken); err == nil {
			t.Error("a serial that was changed beside the data was accepted")
		}
	})
}

// OpenTofu can read states that are encrypted here.
func TestBeside(t *testing.T) {
	tofu := servers.Tofu(t)
	vectors(t, func(t *testing.T, dir, config string) {
		sealed, err := os.ReadFile(filepath.Join(dir, "state.json"))
		if err != nil {
			t.Fatal(err)
		}
		target := parse(t, config, services(t, dir)).State(ctx)
		plain, _, err := opened(target, sealed)
		if err != nil {
			t.Fatal(err)
		}
		s, _ := statefile.Parse("x", plain)
		out, err := sealed0(target, plain, s.Serial, s.Lineage)
		if err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string][]byte{"terraform.tfstate": out, "main.tf": []byte("output \"o\" { value = \"secret\" }\n")} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var got bytes.Buffer
		err = sys.Run(ctx, sys.Command{Path: tofu, Args: []string{"output", "-raw", "o"}, Dir: dir, Env: append(sys.Env(os.Environ()), "TF_ENCRYPTION="+config, "TF_CLI_CONFIG_FILE="+os.DevNull), Stdout: &got, Stderr: &got})
		if err != nil || got.String() != "secret" {
			t.Errorf("%v: %s", err, got.String())
		}
	})
}

const fast = `
key_provider "pbkdf2" "p" {
  passphrase = "correct-horse-battery-staple"
  iterations = 200000
}
method "aes_gcm" "m" {
  keys = key_provider.pbkdf2.p
}
method "unencrypted" "u" {}
`

func TestFallback(t *testing.T) {
	s := services(t, t.TempDir())
	old := parse(t, fast+"state {\n method = method.aes_gcm.m\n}", s)
	plain := []byte(`{"version":4,"serial":3,"lineage":"l"}`)
	sealed, err := sealed0(old.State(ctx), plain, 3, "l")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := opened(old.State(ctx), plain); !errors.Is(err, ErrPlain) {
		t.Errorf("plain text without the method for it: %v", err)
	}
	moving := parse(t, fast+"state {\n method = method.aes_gcm.m\n fallback {\n method = method.unencrypted.u\n}\n}", s)
	if got, migrate, err := opened(moving.State(ctx), plain); err != nil || !migrate || !bytes.Equal(got, plain) {
		t.Errorf("moving in: %v %v", migrate, err)
	}
	out := parse(t, fast+"state {\n method = method.unencrypted.u\n fallback {\n method = method.aes_gcm.m\n}\n}", s)
	if got, migrate, err := opened(out.State(ctx), sealed); err != nil || !migrate || !bytes.Equal(got, plain) {
		t.Errorf("moving out: %v %v", migrate, err)
	}
	if got, err := sealed0(out.State(ctx), plain, 3, "l"); err != nil || !bytes.Equal(got, plain) {
		t.Errorf("moved out: %v", err)
	}
	other := parse(t, strings.ReplaceAll(fast, "correct-horse", "wrong-horse-x")+"state {\n method = method.aes_gcm.m\n}", s)
	if _, _, err := opened(other.State(ctx), sealed); err == nil || !strings.Contains(err.Error(), "message authentication failed") {
		t.Errorf("with a wrong passphrase: %v", err)
	}
	renamed := parse(t, strings.NewReplacer(`"pbkdf2" "p"`, `"pbkdf2" "q"`, "pbkdf2.p", "pbkdf2.q").Replace(fast)+"state {\n method = method.aes_gcm.m\n}", s)
	if _, _, err := opened(renamed.State(ctx), sealed); !errors.Is(err, ErrNoMetadata) {
		t.Errorf("with a renamed key provider: %v", err)
	}
	if plan, err := sealing.Append(old.State(ctx).Plans(), nil, []byte("PK\x03\x04")); err != nil || bytes.Contains(plan, []byte("serial")) {
		t.Errorf("plan: %s %v", plan, err)
	} else if back, err := sealing.Open(old.State(ctx).Plans(), plan); err != nil || string(back) != "PK\x03\x04" {
		t.Errorf("plan: %q %v", back, err)
	}
}

func TestRecords(t *testing.T) {
	s := services(t, t.TempDir())
	target := parse(t, fast+"state {\n method = method.aes_gcm.m\n}", s).State(ctx)
	records := target.Records()
	start := time.Now()
	for range 200 { // the key is derived once, not for each record
		sealed, err := sealing.Append(records, []byte("head"), []byte("secret"))
		if err != nil || !bytes.HasPrefix(sealed, []byte("head")) || bytes.Contains(sealed, []byte("secret")) {
			t.Fatalf("%q %v", sealed, err)
		}
		if got, err := sealing.Open(records, sealed[4:]); err != nil || string(got) != "secret" {
			t.Fatalf("%q %v", got, err)
		}
		sealed[len(sealed)-1] ^= 1
		if _, err := sealing.Open(records, sealed[4:]); err == nil {
			t.Fatal("a record that was changed was opened")
		}
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("200 records took %s", d)
	}
	if c := parse(t, fast+"state {\n method = method.unencrypted.u\n}", s).State(ctx).Records(); c != nil {
		t.Error("records are sealed without encryption")
	}
}

// TF_ENCRYPTION overrides the block, argument by argument.
func TestOverlay(t *testing.T) {
	s := services(t, t.TempDir())
	f, diags := hclsyntax.ParseConfig([]byte(strings.Replace(fast, "correct-horse", "wrong-horse-x", 1)+"state {\n method = method.unencrypted.u\n fallback {\n method = method.aes_gcm.m\n}\n}"), "x.tf", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	c, ds := Parse(f.Body, "key_provider \"pbkdf2\" \"p\" {\n passphrase = \"correct-horse-battery-staple\"\n}\nstate {\n method = method.aes_gcm.m\n}", static, s)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	sealed, err := sealed0(c.State(ctx), []byte("{}"), 0, "")
	if err != nil || !Sealed(sealed) {
		t.Fatalf("%s %v", sealed, err)
	}
	plain := parse(t, fast+"state {\n method = method.aes_gcm.m\n}", s)
	if _, err := sealing.Open(plain.State(ctx).Plans(), sealed); err != nil {
		t.Errorf("the iterations are not those of the block, or the passphrase is not that of the environment: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`key_provider "xor" "x" {}`, `Error fetching key_provider "xor"`},
		{`method "none" "x" {}`, `Error fetching method "none"`},
		{"state {\n method = method.aes_gcm.m\n}", "Reference to undeclared encryption method"},
		{"method \"aes_gcm\" \"m\" {\n keys = key_provider.pbkdf2.p\n}", "Reference to undeclared key provider"},
		{"method \"aes_gcm\" \"m\" {}", "Missing required argument"},
		{fast + "state {\n method = method.unencrypted.u\n enforced = true\n}", "Unencrypted method is forbidden"},
		{"key_provider \"pbkdf2\" \"a\" {\n chain = key_provider.pbkdf2.b\n}\nkey_provider \"pbkdf2\" \"b\" {\n chain = key_provider.pbkdf2.a\n}", "Circular reference in encryption blocks"},
		{fast + fast, "Duplicate encryption block"},
		{"key_provider \"pbkdf2\" \"a\" {\n passphrase = \"correct-horse-battery\"\n encrypted_metadata_alias = \"x\"\n}\nkey_provider \"pbkdf2\" \"b\" {\n chain = key_provider.pbkdf2.a\n encrypted_metadata_alias = \"x\"\n}\nmethod \"aes_gcm\" \"m\" {\n keys = key_provider.pbkdf2.b\n}", "Duplicate metadata key"},
		{"state {}", "Missing required argument"},
		{"state {\n method = \"x\"\n}", "Invalid reference in an encryption block"},
		{"nothing {}", "Unsupported block type"},
		{"{ \"state\": ", ""},
	} {
		_, ds := Parse(nil, c.text, static, services(t, t.TempDir()))
		if !ds.HasErrors() || !strings.Contains(ds.Errors()[0].Summary, c.want) {
			t.Errorf("%s:\n%v, want %q", c.text, ds, c.want)
		}
		for _, m := range ds {
			if strings.Contains(m.Summary+m.Detail, "correct-horse") {
				t.Errorf("a message shows the passphrase: %v", m)
			}
		}
	}
	const short = "key_provider \"pbkdf2\" \"p\" {\n passphrase = \"tooshort\"\n}\nmethod \"aes_gcm\" \"m\" {\n keys = key_provider.pbkdf2.p\n}\n"
	_, ds := Parse(nil, short+"state {\n method = method.aes_gcm.m\n}", static, services(t, t.TempDir()))
	if !ds.HasErrors() || !strings.Contains(ds[0].Detail, "at least 16 characters") || strings.Contains(ds[0].Detail, "tooshort") {
		t.Errorf("a short passphrase: %v", ds)
	}
	if _, ds := Parse(nil, short, static, services(t, t.TempDir())); ds.HasErrors() {
		t.Errorf("a key provider that nothing uses: %v", ds)
	}
}

// For any content, opening a file ends.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(`{"serial":1,"lineage":"x","meta":{"key_provider.pbkdf2.p":"e30="},"encrypted_data":"AAAA","encryption_version":"v0"}`))
	f.Add([]byte(`{"encryption_version":"v1"}`))
	f.Add([]byte(`{"version":4}`))
	c, ds := Parse(nil, fast+"state {\n method = method.aes_gcm.m\n}", static, backend.Services{})
	if ds.HasErrors() {
		f.Fatal(ds.Err())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.Contains(b, []byte("iterations")) {
			return // all numbers of iterations that OpenTofu allows are allowed and take their time
		}
		_, _, _ = opened(c.State(ctx), b)
	})
}
