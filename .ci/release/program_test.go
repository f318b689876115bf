package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// program builds a release of the real programs for this machine. Its build flags are those of
// the README, so that the packages of an earlier build are taken from Go's cache.
var program = sync.OnceValues(func() (*release, error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return nil, err
	}
	r := &release{
		root: root, out: filepath.Join(built.dir, "program"), targets: []target{host()}, address: "https://releases.example.com", builder: localBuilder,
		source: source{
			module: "github.com/terrace-iac/terrace", repository: "https://github.com/terrace-iac/terrace",
			tag: "v9.8.7", version: "9.8.7", commit: strings.Repeat("0", 40), time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		},
	}
	return r, r.build()
})

func realProgram(t *testing.T) *release {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the real program")
	}
	r, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The real program has the version of the release and writes its man pages and completions.
func TestProgram(t *testing.T) {
	r := realProgram(t)
	terrace := filepath.Join(r.programs(host()), host().file("terrace"))
	b, err := exec.Command(terrace, "version").Output()
	if err != nil || !strings.HasPrefix(string(b), "Terrace v9.8.7 ") {
		t.Errorf("version: %q, %v", b, err)
	}
	var files map[string]content
	if runtime.GOOS == "windows" {
		files = readZip(t, read(t, r.out, r.base(host())+".zip"))
	} else {
		files = readTar(t, gunzip(t, read(t, r.out, r.base(host())+".tar.gz")))
	}
	commands := regexp.MustCompile("(?m)^- \\[`(.*)`\\]").FindAllStringSubmatch(string(read(t, "../../docs/commands.md")), -1)
	if len(commands) < 50 {
		t.Fatalf("docs/commands.md lists %d commands", len(commands))
	}
	want := []string{"man/man1/terrace.1"}
	for _, c := range commands {
		want = append(want, "man/man1/terrace-"+strings.ReplaceAll(c[1], " ", "-")+".1")
	}
	slices.Sort(want)
	got := slices.DeleteFunc(fileNames(files), func(name string) bool { return !strings.HasPrefix(name, "man/") })
	if !slices.Equal(got, want) {
		t.Errorf("man pages: %q, want %q", got, want)
	}
	if page := files["man/man1/terrace-plan.1"].text; !bytes.HasPrefix(page, []byte(".TH ")) {
		t.Errorf("man page: %.100q", page)
	}
	if !bytes.Equal(files["LICENSE"].text, read(t, "../../LICENSE")) {
		t.Error("the license is another")
	}
	for shell, name := range map[string]string{"bash": "completions/terrace.bash", "zsh": "completions/_terrace", "fish": "completions/terrace.fish"} {
		script := files[name].text
		if !bytes.Contains(script, []byte("__complete")) {
			t.Errorf("completion for %s: %.100q", shell, script)
		}
		if path, err := exec.LookPath(shell); err == nil {
			c := exec.Command(path, "-n")
			c.Stdin = bytes.NewReader(script)
			if b, err := c.CombinedOutput(); err != nil {
				t.Errorf("completion for %s: %v\n%s", shell, err, b)
			}
		}
	}
	var list struct {
		Components []struct{ PURL string }
	}
	if err := json.Unmarshal(read(t, r.out, r.base(host())+".cdx.json"), &list); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(list.Components, func(c struct{ PURL string }) bool {
		return strings.HasPrefix(c.PURL, "pkg:golang/github.com/zclconf/go-cty@v")
	}) {
		t.Errorf("the list of modules has %d modules, but not go-cty", len(list.Components))
	}
}

// The README builds with the tags of a release.
func TestBuildTags(t *testing.T) {
	m := regexp.MustCompile(`(?m)^CGO_ENABLED=0 go build -tags (\S+) `).FindStringSubmatch(string(read(t, "../../README.md")))
	if m == nil || m[1] != buildTags {
		t.Errorf("the README builds with %q, want the tags %q", m, buildTags)
	}
}

// The commands that install Terrace, and the programs of a release, use the version of Go in go.mod.
func TestToolchain(t *testing.T) {
	want, err := findToolchain("../..")
	if err != nil {
		t.Fatal(err)
	}
	mod := regexp.MustCompile(`(?m)^toolchain (go\S+)$`).FindStringSubmatch(string(read(t, "../../go.mod")))
	if mod == nil {
		t.Fatal("go.mod has no toolchain line")
	}
	for _, file := range []string{"docs/install.md", "ci/github/action.yml"} {
		for _, m := range regexp.MustCompile(`GOTOOLCHAIN\S*?(go1[.0-9]+)`).FindAllStringSubmatch(string(read(t, "../../"+file)), -1) {
			if m[1] != mod[1] {
				t.Errorf("%s uses %s, want %s", file, m[1], mod[1])
			}
		}
	}
	if want == "" {
		t.Skipf("%s cannot be downloaded", mod[1])
	}
	r := realProgram(t)
	info, err := buildinfo.ReadFile(filepath.Join(r.programs(host()), host().file("terrace")))
	if err != nil || want != mod[1] || info.GoVersion != want {
		t.Errorf("the program is built with %v, want %s: %v", info.GoVersion, mod[1], err)
	}
	if text := string(read(t, r.out, provenanceFile)); !strings.Contains(text, "pkg:golang/stdlib@"+strings.TrimPrefix(want, "go")) {
		t.Errorf("the provenance does not name %s: %s", want, text)
	}
}

// A hook is an entry of .pre-commit-hooks.yaml.
type hook struct {
	ID            string   `yaml:"id"`
	Name          string   `yaml:"name"`
	Description   string   `yaml:"description"`
	Entry         string   `yaml:"entry"`
	Language      string   `yaml:"language"`
	Files         string   `yaml:"files"`
	Args          []string `yaml:"args"`
	PassFilenames *bool    `yaml:"pass_filenames"`
}

// run runs a hook as pre-commit does: in the root of the repository, with the changed files
// that the hook selects. It returns whether the hook passes, which means that the program
// succeeds and changes no file.
func (h hook) run(t *testing.T, terrace, dir string, args ...string) (bool, string) {
	t.Helper()
	selected := regexp.MustCompile(h.Files)
	words := append(strings.Fields(h.Entry), args...)
	before := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(dir)+"/")
		before[name] = string(read(t, path))
		if selected.MatchString(name) && (h.PassFilenames == nil || *h.PassFilenames) {
			words = append(words, name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if words[0] != "terrace" {
		t.Fatalf("%s runs %s", h.ID, words[0])
	}
	c := exec.Command(terrace, words[1:]...)
	c.Dir = dir
	b, err := c.CombinedOutput()
	ok := err == nil
	for name, text := range before {
		ok = ok && string(read(t, dir, name)) == text
	}
	return ok, fmt.Sprintf("%s\n%v", b, err)
}

// Each hook passes with good files and fails with bad ones.
func TestPreCommitHooks(t *testing.T) {
	terrace := filepath.Join(realProgram(t).programs(host()), host().file("terrace"))
	var hooks []hook
	decoder := yaml.NewDecoder(bytes.NewReader(read(t, "../../.pre-commit-hooks.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&hooks); err != nil {
		t.Fatal(err)
	}
	const (
		module = "variable \"name\" {\n  type = string\n}\n\noutput \"name\" {\n  value = var.name\n}\n"
		unit   = "terraform {\n  source = \"../../module\"\n}\n\ninputs = {\n  name = \"x\"\n}\n"
		fixed  = "output \"here\" {\n  value = 1\n}\n"
	)
	cases := map[string]struct {
		path, bad string // a file that makes the hook fail
		args      []string
	}{
		"terrace-fmt":          {path: "module/main.tf", bad: "output \"a\" {\nvalue=1\n}\n"},
		"terrace-hcl-fmt":      {path: "live/a/terragrunt.hcl", bad: strings.Replace(unit, " = \"x\"", "=\"x\"", 1)},
		"terrace-validate":     {path: "module/main.tf", bad: module + "output \"b\" {\n  value = var.other\n}\n", args: []string{"module"}},
		"terrace-hcl-validate": {path: "live/a/terragrunt.hcl", bad: "inputs = {\n  name = local.none\n}\n"},
		"terrace-estate-check": {path: "live/a/terragrunt.hcl", bad: strings.Replace(unit, "name = \"x\"", "title = \"x\"", 1)},
	}
	for _, h := range hooks {
		t.Run(h.ID, func(t *testing.T) {
			c, ok := cases[h.ID]
			if !ok {
				t.Fatal("no case for this hook")
			}
			delete(cases, h.ID)
			if h.Name == "" || h.Description == "" || h.Language != "golang" {
				t.Errorf("hook: %+v", h)
			}
			if !regexp.MustCompile(h.Files).MatchString(c.path) {
				t.Errorf("a change of %s does not run the hook", c.path)
			}
			dir := t.TempDir()
			for name, text := range map[string]string{"main.tf": fixed, "module/main.tf": module, "live/a/terragrunt.hcl": unit} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if passes, output := h.run(t, terrace, dir, c.args...); !passes {
				t.Errorf("fails with good files:\n%s", output)
			}
			if err := os.WriteFile(filepath.Join(dir, c.path), []byte(c.bad), 0o666); err != nil {
				t.Fatal(err)
			}
			if passes, output := h.run(t, terrace, dir, c.args...); passes {
				t.Errorf("passes with a bad %s:\n%s", c.path, output)
			}
		})
	}
	for id := range cases {
		t.Errorf("there is no hook %s", id)
	}
}
