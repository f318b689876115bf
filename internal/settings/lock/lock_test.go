package lock

import (
	"archive/zip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
)

// The expectations were produced by OpenTofu 1.12.6.
func TestConstraintsCanonical(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"= 1.0.0, != 1.0.0, > 1.0.0, >=1, <1.0.0,<= 1.0, ~> 1.0, ~> 1.0.0, ~> 1, ~> 1.0.0-rc1", "~> 1.0.0-rc1, > 1.0.0, >= 1.0.0, 1.0.0, ~> 1.0.0, ~> 1.0, <= 1.0.0, < 1.0.0, != 1.0.0"},
		{"~> 1", "~> 1.0"},
		{"1.0.0+foo, 1.0.0+bar, 1.0.0", "1.0.0, 1.0.0+bar, 1.0.0+foo"},
		{">= 1.0.0-beta, != 1.0.0-beta", ">= 1.0.0-beta, != 1.0.0-beta"},
		{"~> 1.2.3-beta, ~> 1.2-beta", "~> 1.2-beta, ~> 1.2.3-beta"},
		{"9.9", "9.9.0"},
		{">= 1, < 2.0, != 1.5.0, ~> 1.0, ~>1, != 1.5.0-beta, !=0.1,>= 1.0.0, > 0.9, ~> 1.2, >=0.1, != 1.6,<=1.9,>0.9.0,1.2", ">= 0.1.0, != 0.1.0, > 0.9.0, >= 1.0.0, ~> 1.0, 1.2.0, ~> 1.2, != 1.5.0-beta, != 1.5.0, != 1.6.0, <= 1.9.0, < 2.0.0"},
	} {
		got, err := ParseConstraints(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
		again, err := ParseConstraints(got.String())
		if err != nil || again.String() != got.String() {
			t.Errorf("%s is not stable: %s, %v", got, again, err)
		}
	}
}

const written = `# This file is maintained automatically by "tofu init".
# Manual edits may be lost in future updates.

provider "example.com/z/aa" {
  version     = "1.2.0"
  constraints = "> 0.0.0, >= 0.5.0, 1.2.0, <= 3.0.0"
  hashes = [
    "h1:lov4/IAhK0oRGO0tVxpo4OreOMGHaPritt6TZVNUHAQ=",
    "zh:00",
  ]
}

provider "registry.opentofu.org/hashicorp/bb" {
  version = "2.1.0"
  hashes = [
    "h1:Pt5McReTXbI9tbfdT/mjZUIr/iHEsBK6AQhdf5ntE3w=",
  ]
}

provider "registry.opentofu.org/hashicorp-x/aa" {
  version     = "2.0.0-beta1"
  constraints = "2.0.0-beta1"
}

module "git::https://example.com/a.git?ref=v1" {
  hashes = [
    "h1:x",
  ]
}

module "registry.opentofu.org/a/b/c" {
  version = "1.0.0"
  hashes = [
    "h1:y",
  ]
}
`

func TestRoundTrip(t *testing.T) {
	f, ds := Parse([]byte(written), Name)
	if len(ds) > 0 {
		t.Fatal(ds.Err())
	}
	if d := cmp.Diff(written, string(f.Bytes())); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(written, string(f.Clone().Bytes())); d != "" {
		t.Error(d)
	}
	if p := f.Provider(addr.DefaultProvider("bb")); p == nil || !p.Version.Same(versions.MustParseVersion("2.1.0")) {
		t.Errorf("bb: %v", p)
	}
	if m := f.Module("registry.opentofu.org/a/b/c", "1.0.0"); m == nil {
		t.Error("the module is not there")
	}
	if (&File{}).Equal(f) || !f.Equal(f.Clone()) {
		t.Error("Equal is wrong")
	}
}

func TestParseErrors(t *testing.T) {
	const p = "provider \"registry.opentofu.org/hashicorp/aa\" {\n"
	for _, c := range []struct{ name, src, want string }{
		{"version form", p + "version = \"1.2\"\n}\n", `must be written in normalized form: "1.2.0"`},
		{"version v", p + "version = \"v1.2.0\"\n}\n", "is invalid"},
		{"version missing", p + "}\n", "Missing required argument"},
		{"constraints form", p + "version = \"1.2.0\"\nconstraints = \">=1.0.0\"\n}\n", `must be written in normalized form: ">= 1.0.0"`},
		{"constraints", p + "version = \"1.2.0\"\nconstraints = \"asdf\"\n}\n", "are invalid"},
		{"no hashes", p + "version = \"1.2.0\"\nhashes = []\n}\n", "at least one hash"},
		{"no scheme", p + "version = \"1.2.0\"\nhashes = [\"abc\"]\n}\n", "scheme keyword"},
		{"reference", p + "version = \"1.2.0\"\nhashes = [\"h1:${foo}\"]\n}\n", "Variables not allowed"},
		{"short address", "provider \"hashicorp/aa\" {\nversion = \"1.2.0\"\n}\n", `must be written as "registry.opentofu.org/hashicorp/aa"`},
		{"bad address", "provider \"a/b/c/d\" {\nversion = \"1.2.0\"\n}\n", "Invalid provider source address"},
		{"built in", "provider \"terraform.io/builtin/terraform\" {\nversion = \"1.2.0\"\n}\n", "built-in provider"},
		{"twice", p + "version = \"1.2.0\"\n}\n" + p + "version = \"1.2.0\"\n}\n", "Duplicate provider lock"},
		{"module twice", "module \"a\" {\nhashes = [\"h1:a\"]\n}\nmodule \"a\" {\nhashes = [\"h1:a\"]\n}\n", "Duplicate module lock"},
		{"other", "foo {\n}\n", "Unsupported block type"},
		{"syntax", "provider {", "Unclosed configuration block"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, ds := Parse([]byte(c.src), Name)
			if !ds.HasErrors() || !strings.Contains(ds[0].Summary+": "+ds[0].Detail, c.want) {
				t.Errorf("got %v, want %q", ds.Err(), c.want)
			}
			for _, m := range ds {
				if m.At == nil || m.At.Filename != Name {
					t.Errorf("no place: %s", m.Summary)
				}
			}
		})
	}
}

func TestReadAndWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	if f, ds := Read(nil, path); len(ds) > 0 || len(f.Providers) > 0 {
		t.Fatal(f, ds.Err())
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, ds := Parse([]byte(written), Name)
	if len(ds) > 0 {
		t.Fatal(ds.Err())
	}
	if err := Write(path, f); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != written {
		t.Errorf("%v: %s", err, got)
	}
	// A symbolic link is replaced, because its target may be another file of the user.
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, f); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Lstat(link); err != nil || !st.Mode().IsRegular() {
		t.Errorf("the link is still one: %v", err)
	}
	if got, err := os.ReadFile(link); err != nil || string(got) != written {
		t.Errorf("%v: %s", err, got)
	}
	if got, err := os.ReadFile(path); err != nil || len(got) != 0 {
		t.Errorf("the target was written: %v: %s", err, got)
	}
	if st, _ := os.Stat(path); st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", st.Mode())
	}
	if _, ds := Read(nil, dir); !ds.HasErrors() {
		t.Error("a directory was read as a lock file")
	}
}

func TestHashesOfFolderAndArchiveAgree(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	files := map[string]string{"terraform-provider-x": "binary", "docs/README.md": "read"}
	archive := filepath.Join(dir, "x.zip")
	out, err := os.Create(archive)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(out)
	for name, text := range files {
		path := filepath.Join(src, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(src, link); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	a, err1 := HashDir(ctx, link)
	b, err2 := HashArchive(ctx, archive, 1<<20)
	if err1 != nil || err2 != nil || a != b || a.Scheme() != "h1" {
		t.Errorf("%s %s %v %v", a, b, err1, err2)
	}
	if _, err := HashArchive(ctx, archive, 3); err == nil {
		t.Error("the bound did not hold")
	}
	if h, err := HashZip(ctx, archive); err != nil || h.Scheme() != "zh" || len(h) != 3+64 {
		t.Errorf("%s %v", h, err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := HashDir(ended, link); err == nil {
		t.Error("HashDir did not stop")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(written))
	f.Add([]byte("provider \"a/b/c\" {\n version = 1\n hashes = [\"h1:${1}\", null]\n}\n"))
	f.Add([]byte("module \"x\" {\n version = null\n hashes = null\n}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		file, ds := Parse(src, Name)
		if ds.HasErrors() {
			return
		}
		again, ds := Parse(file.Bytes(), Name)
		if ds.HasErrors() || !again.Equal(file) {
			t.Errorf("not stable: %v\n%s", ds.Err(), file.Bytes())
		}
	})
}
