package installer

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"github.com/terrace-iac/terrace/internal/settings/lock"
	"golang.org/x/tools/txtar"
)

// A bench is a working directory.
type bench struct {
	Options
	t      *testing.T
	dir    string
	events []string
	lock   *lock.File
}

func newBench(t *testing.T, archive string) *bench {
	b := &bench{t: t, dir: t.TempDir()}
	b.files(archive)
	b.Packages = newFetcher(t, t.TempDir())
	b.Progress = func(e Event) { b.events = append(b.events, e.Text()) }
	return b
}

func newFetcher(t testing.TB, dir string) *fetch.Fetcher {
	noon := time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)
	return &fetch.Fetcher{
		Dir: dir, WorkDir: t.TempDir(), Run: sys.Run, Now: func() time.Time { return noon },
		Env:    sys.Env{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"},
		Client: &transfer.Client{Backoff: time.Millisecond},
	}
}

func (b *bench) files(archive string) {
	b.t.Helper()
	unpack(b.t, b.dir, archive)
}

func unpack(t testing.TB, dir, archive string) {
	t.Helper()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bench) install() (Result, diag.List) {
	b.t.Helper()
	b.events = nil
	b.Options.Lock = b.lock
	res, ds := Install(context.Background(), b.dir, b.Options)
	if !ds.HasErrors() {
		b.lock = res.Lock
	}
	return res, ds
}

func (b *bench) must() Result {
	b.t.Helper()
	res, ds := b.install()
	if ds.HasErrors() {
		b.t.Fatal(ds.Err())
	}
	return res
}

func (b *bench) fails(want string) {
	b.t.Helper()
	_, ds := b.install()
	if !ds.HasErrors() || !strings.Contains(ds.Errors()[0].Summary+": "+ds.Errors()[0].Detail, want) {
		b.t.Errorf("got %v, want %s", ds.Err(), want)
	}
	for _, m := range ds.Errors() {
		if m.At == nil {
			b.t.Errorf("no place: %s", m.Detail)
		}
	}
}

func (b *bench) manifest() string {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, ".terraform/modules/modules.json"))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

func (b *bench) manifestIs(want string) {
	b.t.Helper()
	if d := cmp.Diff(want, b.manifest()); d != "" {
		b.t.Error(d)
	}
}

// repository creates a git repository of the files with the tag v1.
func repository(t *testing.T, archive string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	unpack(t, dir, archive)
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-qm", "one")
	git(t, dir, "tag", "v1")
	return dir
}

func git(t testing.TB, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

const nested = `
-- main.tf --
variable "where" {
  default = "./c"
}
locals {
  a = "./a"
}
module "b" {
  source = "./b"
}
module "a" {
  source = local.a
}
module "c" {
  source = var.where
}
-- a/main.tf --
module "deep" {
  source = "../b/./inner"
}
-- b/main.tf --
module "inner" {
  source = "./inner"
}
-- b/inner/main.tf --
output "x" {
  value = 1
}
-- c/main.tf --
output "x" {
  value = 1
}
`

func TestLocalModules(t *testing.T) {
	b := newBench(t, nested)
	res := b.must()
	b.manifestIs(`{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"a","Source":"./a","Dir":"a"},{"Key":"a.deep","Source":"../b/inner","Dir":"b/inner"},{"Key":"b","Source":"./b","Dir":"b"},{"Key":"b.inner","Source":"./inner","Dir":"b/inner"},{"Key":"c","Source":"./c","Dir":"c"}]}`)
	if res.Calls != 5 {
		t.Error(res.Calls)
	}
	if d := cmp.Diff([]string{"- a in a", "- b in b", "- c in c", "- a.deep in b/inner", "- b.inner in b/inner"}, b.events); d != "" {
		t.Error(d)
	}
	m, ds := ReadManifest(nil, filepath.Join(b.dir, ".terraform"))
	if ds.HasErrors() || string(m.Bytes()) != b.manifest() {
		t.Error(m, ds.Err())
	}
}

// As in OpenTofu 1.12.6.
func TestLinkedFolders(t *testing.T) {
	b := newBench(t, "-- main.tf --\nmodule \"a\" {\n  source = \"./l\"\n}\nmodule \"b\" {\n  source = \"./out\"\n}\n-- real/main.tf --\nmodule \"in\" {\n  source = \"./in\"\n}\n-- real/in/main.tf --\n")
	out := t.TempDir()
	unpack(t, out, "-- main.tf --\nmodule \"in\" {\n  source = \"./in\"\n}\n-- in/main.tf --\n")
	for name, target := range map[string]string{"l": "real", "out": out} {
		if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	b.must()
	b.manifestIs(`{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"a","Source":"./l","Dir":"real"},{"Key":"a.in","Source":"./in","Dir":"real/in"},{"Key":"b","Source":"./out","Dir":"` + out + `"},{"Key":"b.in","Source":"./in","Dir":"` + out + `/in"}]}`)
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ name, archive, want string }{
		{"no directory", "-- main.tf --\nmodule \"a\" {\n  source = \"./a\"\n}\n", "Unreadable module directory"},
		{"bare", "-- main.tf --\nmodule \"a\" {\n  source = \"a\"\n}\n", `use "./a" instead`},
		{"local version", "-- main.tf --\nmodule \"a\" {\n  source = \"./a\"\n  version = \"1\"\n}\n", "can't use local directory"},
		{"bad version", "-- main.tf --\nmodule \"a\" {\n  source = \"a/b/c\"\n  version = \"x y\"\n}\n", "not a version constraint"},
		{"resource", "-- main.tf --\nresource \"terraform_data\" \"x\" {}\nmodule \"a\" {\n  source = terraform_data.x.id\n}\n", "Dynamic value in static context"},
		{"number", "-- main.tf --\nmodule \"a\" {\n  source = 1\n}\n", "must be a string"},
		{"child error", "-- main.tf --\nmodule \"a\" {\n  source = \"./a\"\n}\n-- a/main.tf --\nnonsense {\n}\n", "Unsupported block type"},
		{"root", "-- main.tf --\nmodule \"a\" {\n  source = \"./\"\n}\n", "Module calls itself"},
		{"circle", "-- main.tf --\nmodule \"a\" {\n  source = \"./a\"\n}\n-- a/main.tf --\nmodule \"b\" {\n  source = \"../b\"\n}\n-- b/main.tf --\nmodule \"c\" {\n  source = \"../a\"\n}\n", "The module module.a.module.b.module.c has the same source as module.a"},
	} {
		t.Run(c.name, func(t *testing.T) { newBench(t, c.archive).fails(c.want) })
	}
}

func TestLenient(t *testing.T) {
	b := newBench(t, "-- main.tf --\nmodule \"a\" {\n  source = \"./a\"\n}\n-- a/main.tf --\nnonsense {\n}\n")
	b.Lenient = true
	if _, ds := b.install(); ds.HasErrors() || len(ds) == 0 {
		t.Error(ds.Err(), len(ds))
	}
}

const gitModule = `
-- main.tf --
module "net" {
  source = "./net"
}
-- net/main.tf --
output "x" {
  value = 1
}
-- examples/one/main.tf --
module "up" {
  source = "../../net"
}
`

func TestGitModules(t *testing.T) {
	repo := repository(t, gitModule)
	src := "git::file://" + repo
	b := newBench(t, "-- main.tf --\nmodule \"a\" {\n  source = \""+src+"?ref=v1\"\n}\nmodule \"b\" {\n  source = \""+src+"//examples/one?ref=v1\"\n}\nmodule \"c\" {\n  source = \""+src+"//examples/*?ref=v1\"\n}\n")
	b.must()
	want := `{"Modules":[{"Key":"","Source":"","Dir":"."},` +
		`{"Key":"a","Source":"SRC?ref=v1","Dir":".terraform/modules/a"},` +
		`{"Key":"a.net","Source":"./net","Dir":".terraform/modules/a/net"},` +
		`{"Key":"b","Source":"SRC//examples/one?ref=v1","Dir":".terraform/modules/b/examples/one"},` +
		`{"Key":"b.up","Source":"../../net","Dir":".terraform/modules/b/net"},` +
		`{"Key":"c","Source":"SRC//examples/*?ref=v1","Dir":".terraform/modules/c/examples/one"},` +
		`{"Key":"c.up","Source":"../../net","Dir":".terraform/modules/c/net"}]}`
	want = strings.ReplaceAll(want, "SRC", src)
	b.manifestIs(want)
	if !slices.Contains(b.events, "Downloading "+src+"?ref=v1 for a...") {
		t.Error(b.events)
	}
	// A second run sends no requests and changes nothing.
	if err := os.Rename(repo, repo+".gone"); err != nil {
		t.Fatal(err)
	}
	b.Packages = newFetcher(t, t.TempDir())
	b.must()
	b.manifestIs(want)
	if slices.ContainsFunc(b.events, func(e string) bool { return strings.HasPrefix(e, "Downloading") }) {
		t.Error(b.events)
	}
	b.Upgrade = true
	b.fails("Could not download module \"a\"")
	b.manifestIs(want)
	if err := os.Rename(repo+".gone", repo); err != nil {
		t.Fatal(err)
	}
	b.Packages = newFetcher(t, t.TempDir())
	b.must()
	b.manifestIs(want)
	b.Upgrade = false
	if err := os.RemoveAll(filepath.Join(b.dir, ".terraform/modules/b")); err != nil {
		t.Fatal(err)
	}
	b.must()
	if _, err := os.Stat(filepath.Join(b.dir, ".terraform/modules/b/net/main.tf")); err != nil {
		t.Error(err)
	}
}

func TestMissingSubfolder(t *testing.T) {
	repo := repository(t, gitModule)
	b := newBench(t, "-- main.tf --\nmodule \"a\" {\n  source = \"git::file://"+repo+"//none\"\n}\n")
	b.fails(`has no directory "none"`)
	b.files("-- main.tf --\nmodule \"a\" {\n  source = \"git::file://" + repo + "//no*\"\n}\n")
	b.fails("no subdirectory of the package matches")
}

func TestEscape(t *testing.T) {
	repo := repository(t, "-- main.tf --\nmodule \"x\" {\n  source = \"../../../../nowhere\"\n}\n")
	newBench(t, "-- main.tf --\nmodule \"a\" {\n  source = \"git::file://"+repo+"\"\n}\n").fails("Local module path escapes module package")
}

// fakeRegistry contains modules that are git repositories.
type fakeRegistry struct {
	versions map[string][]string
	where    map[string]string // locations by package@version
	asked    []string
}

func (r *fakeRegistry) ModuleVersions(_ context.Context, a fetch.Address) ([]string, error) {
	r.asked = append(r.asked, a.Package())
	vs, ok := r.versions[a.Package()]
	if !ok {
		return nil, errors.New("module not found")
	}
	return vs, nil
}

func (r *fakeRegistry) PackageKey(a fetch.Address, v string) string { return a.Package() + "@" + v }

func (r *fakeRegistry) ModuleLocation(_ context.Context, a fetch.Address, v string) (fetch.Location, error) {
	r.asked = append(r.asked, a.Package()+"@"+v)
	base, _ := url.Parse("https://registry.example.com/v1/")
	where, ok := r.where[a.Package()+"@"+v]
	if !ok {
		return fetch.Location{}, errors.New("no such version")
	}
	return fetch.Location{Where: where, Base: base}, nil
}

func TestRegistryModules(t *testing.T) {
	repo := "git::file://" + repository(t, gitModule)
	const pkg = "registry.opentofu.org/ns/net/aws"
	r := &fakeRegistry{
		versions: map[string][]string{pkg: {"1.0.0", "v1.2.0", "2.0.0-rc1", "1.10.0"}, "example.com/a/b/c": {"0.1.0-beta"}, "example.com/a/b/d": nil},
		where:    map[string]string{pkg + "@1.10.0": repo + "//examples?ref=v1", pkg + "@1.2.0": repo, pkg + "@2.0.0-rc1": repo},
	}
	main := func(body string) string {
		return "-- main.tf --\nmodule \"m\" {\n" + body + "}\n"
	}
	b := newBench(t, main("  source = \"ns/net/aws//one\"\n  version = \"~> 1.0\"\n"))
	b.Registry = r
	b.must()
	b.manifestIs(`{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"m","Source":"registry.opentofu.org/ns/net/aws//one","Version":"1.10.0","Dir":".terraform/modules/m/examples/one"},{"Key":"m.up","Source":"../../net","Dir":".terraform/modules/m/net"}]}`)
	if !slices.Contains(b.events, "Downloading registry.opentofu.org/ns/net/aws 1.10.0 for m...") {
		t.Error(b.events)
	}
	r.asked = nil
	b.must()
	if len(r.asked) > 0 {
		t.Error("asked again:", r.asked)
	}
	// An exact version in the cache needs no registry.
	other := newBench(t, main("  source = \"ns/net/aws//one\"\n  version = \"1.10.0\"\n"))
	other.Packages, other.Registry = newFetcher(t, b.Packages.Dir), r
	other.must()
	if len(r.asked) > 0 {
		t.Error("asked:", r.asked)
	}
	// The installed module no longer satisfies the call.
	b.files(main("  source = \"ns/net/aws\"\n  version = \"~> 1.0, < 1.10\"\n"))
	b.must()
	if !strings.Contains(b.manifest(), `"Version":"1.2.0"`) {
		t.Error(b.manifest())
	}
	b.files(main("  source = \"ns/net/aws\"\n  version = \"2.0.0-rc1\"\n"))
	b.must()
	if !strings.Contains(b.manifest(), `"Version":"2.0.0-rc1"`) {
		t.Error(b.manifest())
	}
	for _, c := range []struct{ body, want string }{
		{"  source = \"ns/net/aws\"\n  version = \">= 2.0.0-rc1\"\n", "There is no available version"},
		{"  source = \"ns/net/aws\"\n  version = \"~> 3\"\n", "The newest available version is 2.0.0-rc1"},
		{"  source = \"ns/net/aws\"\n  version = \"1.0.0\"\n", "no such version"},
		{"  source = \"example.com/a/b/c\"\n", "are prereleases"},
		{"  source = \"example.com/a/b/d\"\n", "has no versions"},
		{"  source = \"example.com/a/b/x\"\n", "module not found"},
	} {
		b := newBench(t, main(c.body))
		b.Registry = r
		b.fails(c.want)
	}
}

func TestModuleLock(t *testing.T) {
	repo := repository(t, gitModule)
	const pkg = "registry.opentofu.org/ns/net/aws"
	r := &fakeRegistry{versions: map[string][]string{pkg: {"1.0.0"}}, where: map[string]string{pkg + "@1.0.0": "git::file://" + repo, pkg + "@1.1.0": "git::file://" + repo}}
	b := newBench(t, "-- main.tf --\nmodule \"a\" {\n  source = \"git::file://"+repo+"\"\n}\nmodule \"r\" {\n  source = \"ns/net/aws\"\n}\n")
	b.Registry = r
	b.must()
	if len(b.lock.Modules) != 0 {
		t.Error("pinned without being asked")
	}
	b.LockModules = true
	b.must()
	if m := b.lock.Module(pkg, "1.0.0"); m == nil || len(m.Hashes) != 1 || len(b.lock.Modules) != 2 {
		t.Fatalf("%s", b.lock.Bytes())
	}
	// From now on it is maintained, and the pinned version is preferred.
	b.LockModules = false
	r.versions[pkg] = []string{"1.0.0", "1.1.0"}
	fresh := newBench(t, "")
	fresh.Registry, fresh.lock = r, b.lock
	text, _ := os.ReadFile(filepath.Join(b.dir, "main.tf"))
	fresh.files("-- main.tf --\n" + string(text))
	fresh.must()
	if !strings.Contains(fresh.manifest(), `"Version":"1.0.0"`) {
		t.Error(fresh.manifest())
	}
	// The installed files were changed: they are restored.
	path := filepath.Join(b.dir, ".terraform/modules/a/net/main.tf")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b.must()
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	// The content at the address changes.
	unpack(t, repo, "-- net/main.tf --\noutput \"changed\" {\n  value = 2\n}\n")
	git(t, repo, "commit", "-qam", "two")
	bad := newBench(t, "-- main.tf --\n"+string(text))
	bad.Registry, bad.lock = r, b.lock
	bad.fails("has changed: it has the hash h1:")
	bad.Upgrade = true
	bad.must()
	if m := bad.lock.Module(pkg, "1.1.0"); m == nil || bad.lock.Module(pkg, "1.0.0") != nil {
		t.Errorf("%s", bad.lock.Bytes())
	}
	// A new remote module while the lock file must not change.
	ro := newBench(t, "-- main.tf --\n"+string(text)+"module \"n\" {\n  source = \"git::file://"+repo+"?ref=v1\"\n}\n")
	ro.Registry, ro.lock, ro.LockOnly = r, bad.lock, true
	if _, ds := ro.install(); !ds.HasErrors() || !strings.Contains(ds.Err().Error(), "read-only") {
		t.Error(ds.Err())
	}
}

func TestSiblingsShare(t *testing.T) {
	repo := repository(t, gitModule)
	var main strings.Builder
	main.WriteString("-- main.tf --\n")
	for _, n := range []string{"a", "b", "c"} {
		main.WriteString("module \"" + n + "\" {\n  source = \"git::file://" + repo + "\"\n}\n")
	}
	b := newBench(t, main.String())
	b.must()
	var infos []os.FileInfo
	for _, n := range []string{"a", "b", "c"} {
		st, err := os.Stat(filepath.Join(b.dir, ".terraform/modules", n, "main.tf"))
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, st)
	}
	if !os.SameFile(infos[0], infos[1]) || !os.SameFile(infos[0], infos[2]) {
		t.Error("the modules do not share their files")
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"a","Source":"./a","Dir":"a"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text)
		if err != nil {
			return
		}
		again, err := parseManifest(m.Bytes())
		if err != nil || string(again.Bytes()) != string(m.Bytes()) {
			t.Errorf("%s\n%s", m.Bytes(), again.Bytes())
		}
	})
}

// TestPeer compares manifests with those of OpenTofu.
func TestPeer(t *testing.T) {
	tofu := os.Getenv("TERRACE_TEST_TOFU")
	if tofu == "" {
		t.Skip("TERRACE_TEST_TOFU names no binary to compare with")
	}
	repo := repository(t, gitModule)
	live := t.TempDir()
	unpack(t, live, gitModule)
	for name, archive := range map[string]string{
		"local": nested,
		"git":   "-- main.tf --\nmodule \"a\" {\n  source = \"git::file://" + repo + "?ref=v1&depth=1\"\n}\nmodule \"b\" {\n  source = \"git::" + repo + "//examples/one\"\n}\n",
		"live":  "-- main.tf --\nmodule \"a\" {\n  source = \"" + live + "\"\n}\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, archive)
			b.must()
			ours := b.manifest()
			peer := func() {
				cmd := exec.Command(tofu, "init", "-backend=false", "-no-color")
				cmd.Dir = b.dir
				cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE=/dev/null")
				if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "Downloading") != (ours == "") {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			peer() // accepts our manifest unchanged
			if d := cmp.Diff(ours, b.manifest()); d != "" {
				t.Error(d)
			}
			if err := os.RemoveAll(filepath.Join(b.dir, ".terraform")); err != nil {
				t.Fatal(err)
			}
			want := ours
			ours = ""
			if name == "local" {
				ours = want
			}
			peer()
			if d := cmp.Diff(b.manifest(), want); d != "" {
				t.Error(d)
			}
			b.must() // accepts OpenTofu's manifest unchanged
			if slices.ContainsFunc(b.events, func(e string) bool { return strings.HasPrefix(e, "Downloading") }) {
				t.Error(b.events)
			}
		})
	}
}

func TestSource(t *testing.T) {
	repo := "git::file://" + repository(t, gitModule)
	const pkg = "registry.opentofu.org/ns/net/aws"
	b := newBench(t, "")
	b.Registry = &fakeRegistry{
		versions: map[string][]string{pkg: {"1.0.0", "1.2.0", "2.0.0-rc1"}},
		where:    map[string]string{pkg + "@1.2.0": repo + "//examples"},
	}
	for src, want := range map[string]string{
		repo + "//net?ref=v1":  "output \"x\" {\n  value = 1\n}\n",
		repo + "//examples/o*": "module \"up\" {\n  source = \"../../net\"\n}\n",
		"ns/net/aws//one":      "module \"up\" {\n  source = \"../../net\"\n}\n",
	} {
		dir, ds := Source(context.Background(), b.dir, src, b.Options)
		text, err := os.ReadFile(filepath.Join(dir, "main.tf"))
		if ds.HasErrors() || string(text) != want {
			t.Errorf("%s: %s %v %v", src, text, err, ds.Err())
		}
	}
	if dir, ds := Source(context.Background(), b.dir, "../x", b.Options); ds.HasErrors() || dir != filepath.Join(filepath.Dir(b.dir), "x") {
		t.Error(dir, ds.Err())
	}
	for _, src := range []string{"nonsense", "ns/none/aws", repo + "//no*", repo + "?ref=none"} {
		if _, ds := Source(context.Background(), b.dir, src, b.Options); !ds.HasErrors() || ds[0].At != nil {
			t.Error(src, ds.Err())
		}
	}
}

// Modules that OpenTofu installed for its test files remain in the manifest.
func TestKeepsTests(t *testing.T) {
	root := t.TempDir()
	unpack(t, root, "-- main.tf --\nmodule \"a\" {\n  source = \"./a\"\n}\n-- a/a.tf --\n-- .terraform/modules/modules.json --\n"+
		`{"Modules":[{"Key":"","Source":"","Dir":"."},{"Key":"gone","Source":"./gone","Dir":"gone"},{"Key":"test.tests.x.run","Source":"./a","Dir":"a"}]}`+"\n")
	if _, ds := Install(t.Context(), root, Options{}); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	m, ds := ReadManifest(nil, filepath.Join(root, ".terraform"))
	if ds.HasErrors() || len(m) != 2 || m["a"].Dir != "a" || m["test.tests.x.run"].Dir != "a" {
		t.Error(m, ds.Err())
	}
}
