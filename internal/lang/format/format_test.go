package format

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

func TestConfiguration(t *testing.T) {
	a, err := txtar.ParseFile("testdata/configuration.txtar")
	if err != nil {
		t.Fatal(err)
	}
	in, want := a.Files[0].Data, a.Files[1].Data
	got, diags := Configuration(in, "in.tf")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if again, _ := Configuration(got, "out.tf"); string(again) == string(in) {
		t.Error("formatting what is formatted gives the text before")
	}
}

func TestBroken(t *testing.T) {
	for _, src := range []string{"a = {\n", "x y", "b \"x\" {"} {
		if out, diags := Configuration([]byte(src), "x.tf"); out != nil || !diags.HasErrors() {
			t.Errorf("%q: %q, %v", src, out, diags)
		}
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"x.tf", "sub/y.tofu", ".hid/z.tf", "v.auto.tfvars", "t.tftest.hcl", "u.hcl", ".h.tf", "z.tf~", "#q.tf#", "j.tf.json"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		target    string
		recursive bool
		want      []string
	}{
		{".", false, []string{"t.tftest.hcl", "v.auto.tfvars", "x.tf"}},
		{".", true, []string{"sub/y.tofu", "t.tftest.hcl", "v.auto.tfvars", "x.tf"}},
		{"sub", false, []string{"sub/y.tofu"}},
		{"x.tf", false, []string{"x.tf"}},
	} {
		got, err := Find(dir, c.target, c.recursive)
		for i := range got {
			got[i] = filepath.ToSlash(got[i])
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.target, got, err, c.want)
		}
	}
	var ext *ErrExtension
	if _, err := Find(dir, "u.hcl", false); !errors.As(err, &ext) {
		t.Errorf("u.hcl: %v", err)
	}
	if _, err := Find(dir, "missing", false); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
}

// TestUnwrapped checks the conversion of "${x}" if x has several lines or ends with a comment.
func TestUnwrapped(t *testing.T) {
	for in, want := range map[string]string{
		"(a)\n+(b)":      "((a)\n+ (b))\n", // without the outer parentheses, it would end with its first line
		"((a)\n)":        "((a)\n)\n",
		"\n(\na)":        "(\na)\n",
		"(\na\n)\n":      "(\n  a\n)\n",
		"(a\n) # c\n":    "((a\n  ) # c\n)\n",
		"a\n# c\n":       "(a\n  # c\n)\n",
		"a # c  \n\n  ":  "a # c  \n\n",
		"a # c\r\n":      "a # c\r\n\n",
		"a /* x\n */":    "a /* x\n */\n",
		"(a\n)[0]":       "((a\n)[0])\n",
		"a # c\n":        "a # c\n\n",
		"f(\na)":         "(f(\na))\n",
		"(a) /* c */":    "(a) /* c */\n",
		"(a)\n /* c */ ": "((a)\n/* c */)\n",
	} {
		out, diags := Configuration([]byte("a = \"${"+in+"}\"\n"), "x.tf")
		if diags.HasErrors() || string(out) != "a = "+want {
			t.Errorf("%q: %q, and not %q (%v)", in, out, "a = "+want, diags)
		}
	}
}

// TestLabels checks that labels are quoted, and that comments before them are removed.
func TestLabels(t *testing.T) {
	for in, want := range map[string]string{
		"x a /* c */ \"b\" /* d */ {}\n":                         "x \"a\" \"b\" /* d */ {}\n",
		"x/* c */\"a\" {\n  y /* e */ z {}\n}\n":                 "x \"a\" {\n  y \"z\" {}\n}\n",
		"x /* c */ {}\n":                                         "x /* c */ {}\n",
		"x   \"a/*\"   b {}\n":                                   "x \"a/*\" \"b\" {}\n",
		"x /* a */ /* b */ \"a\" {\n  b = \"${c}\" /* d */\n}\n": "x \"a\" {\n  b = c /* d */\n}\n",
	} {
		if out, diags := Configuration([]byte(in), "x.tf"); diags.HasErrors() || string(out) != want {
			t.Errorf("%q: %q, and not %q (%v)", in, out, want, diags)
		}
	}
}
