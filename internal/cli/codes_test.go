package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/sys"
	"golang.org/x/tools/txtar"
)

// A provocation is a small program that makes Terrace give a message of a code.
type provocation struct {
	code  string
	lines []string // commands; "validate" if there are none
	files []txtar.File
}

// provocations reads testdata/codes: "=== CODE" begins a program, "$ COMMAND" is run in
// its folder, "NAME=VALUE" is for the environment; what follows up to the first "-- FILE --"
// is main.tf. The file stdin is what commands read. Programs with the source terrace/test
// have the test provider.
func provocations(t *testing.T) []provocation {
	names, err := filepath.Glob("testdata/codes/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []provocation
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split("\n"+string(text), "\n=== ") {
			if i == 0 {
				continue // what the file is
			}
			code, rest, _ := strings.Cut(part, "\n")
			p := provocation{code: strings.TrimSpace(code)}
			for strings.HasPrefix(rest, "$ ") {
				line, after, _ := strings.Cut(rest, "\n")
				p.lines, rest = append(p.lines, line[2:]), after
			}
			a := txtar.Parse([]byte(rest + "\n"))
			if main := strings.TrimSpace(string(a.Comment)); main != "" {
				p.files = append(p.files, txtar.File{Name: "main.tf", Data: a.Comment})
			}
			p.files = append(p.files, a.Files...)
			if p.lines == nil {
				p.lines = []string{"validate"}
			}
			out = append(out, p)
		}
	}
	return out
}

var codeLine = regexp.MustCompile(`(?m)^Code: (\S+)$`)

// run runs the program in a folder of its own and returns what it printed.
func (p *provocation) run(t *testing.T) string {
	dir := t.TempDir()
	for _, f := range p.files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	settings := filepath.Join(dir, "settings.rc")
	if _, err := os.Stat(settings); err != nil {
		text := "show_codes = true\n"
		if main, _ := os.ReadFile(filepath.Join(dir, "main.tf")); bytes.Contains(main, []byte("terrace/test")) {
			bin, err := exec.LookPath("terraform-provider-test")
			if err != nil {
				t.Fatal(err)
			}
			text += fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"terrace/test\" = %q\n  }\n}\n", filepath.Dir(bin))
		}
		if err := os.WriteFile(settings, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stdin, _ := os.ReadFile(filepath.Join(dir, "stdin"))
	var out bytes.Buffer
	for _, line := range p.lines {
		words := strings.Fields(line)
		env := sys.Env{"HOME=" + dir, "TF_CLI_CONFIG_FILE=" + settings, "PATH=" + os.Getenv("PATH")}
		for len(words) > 0 && strings.Contains(words[0], "=") && !strings.HasPrefix(words[0], "-") {
			env, words = append(env, words[0]), words[1:]
		}
		if len(words) > 0 && words[0] == "rm" {
			for _, name := range words[1:] {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		if len(words) == 3 && words[0] == "mv" {
			if err := os.Rename(filepath.Join(dir, words[1]), filepath.Join(dir, words[2])); err != nil {
				t.Fatal(err)
			}
			continue
		}
		system := &sys.System{
			Dir: dir, Env: env, Args: append([]string{"terrace"}, words...),
			Stdin: bytes.NewReader(stdin), Stdout: &out, Stderr: &out, Now: time.Now, Run: sys.Run,
			Terminal:   sys.Terminal{Width: func() int { return 0 }, Height: func() int { return 0 }},
			Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
			Executable: os.Executable, Host: func() string { return "host" }, User: func() string { return "user" },
		}
		fmt.Fprintf(&out, "$ %s\n", line)
		fmt.Fprintf(&out, "status %d\n", cli.Main(context.Background(), system))
	}
	return out.String()
}

// shownCode is a line of a script that wants a message of a code to be shown.
var shownCode = regexp.MustCompile(`(?m)^std(?:out|err) '(?:\^?Code: |"code": ?")([a-z]+/[a-z-]+)["$]?'$`)

// inScripts are the codes that scripts provoke, as the tests that run them see to.
func inScripts(t *testing.T) map[string]bool {
	out := map[string]bool{}
	for _, dir := range []string{"script", "backend", "cloud"} {
		names, err := filepath.Glob("testdata/" + dir + "/*.txtar")
		if err != nil {
			t.Fatal(err)
		}
		inScript(t, names, out)
	}
	return out
}

func inScript(t *testing.T, names []string, out map[string]bool) {
	for _, name := range names {
		a, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shownCode.FindAllSubmatch(a.Comment, -1) {
			out[string(m[1])] = true
		}
	}
}

// TestCodesProvoked runs the programs of testdata/codes, and holds them and the list of
// codes that no program provokes against the table of codes.
func TestCodesProvoked(t *testing.T) {
	t.Parallel()
	provoked := map[string]bool{}
	for _, p := range provocations(t) {
		provoked[p.code] = true
		t.Run(p.code, func(t *testing.T) {
			t.Parallel()
			out := p.run(t)
			var got []string
			for _, m := range codeLine.FindAllStringSubmatch(out, -1) {
				got = append(got, m[1])
			}
			if !slices.Contains(got, p.code) {
				t.Errorf("%s was not provoked, but %v:\n%s", p.code, got, out)
			}
		})
	}
	for code := range inScripts(t) {
		provoked[code] = true
	}
	list, err := os.ReadFile("testdata/codes/unprovoked.list")
	if err != nil {
		t.Fatal(err)
	}
	not := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		code, reason, _ := strings.Cut(strings.TrimSpace(line), " | ")
		not[code] = true
		if _, ok := diag.FindCode(code); !ok || reason == "" || provoked[code] {
			t.Errorf("unprovoked.list: %q has no reason, is provoked, or is no code", code)
		}
	}
	for _, c := range diag.Codes() {
		if !provoked[c.Name] && !not[c.Name] {
			t.Errorf("no program provokes %s: write one in testdata/codes, or say in unprovoked.list why there is none", c.Name)
		}
	}
	for code := range provoked {
		if _, ok := diag.FindCode(code); !ok {
			t.Errorf("testdata/codes provokes %s, which is no code", code)
		}
	}
	t.Logf("%d codes, %d provoked, %d not", len(diag.Codes()), len(provoked), len(not))
}

// TestMessagesPage holds docs/messages.md against the table of codes; -update writes it.
func TestMessagesPage(t *testing.T) {
	t.Parallel()
	const page = "../../docs/messages.md"
	var b strings.Builder
	b.WriteString(messagesHead)
	area := ""
	for _, c := range diag.Codes() {
		if a, _, _ := strings.Cut(c.Name, "/"); a != area {
			area = a
			fmt.Fprintf(&b, "\n## %s\n", area)
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n", c.Name, c.Text)
		if len(c.Summaries) > 0 {
			fmt.Fprintf(&b, "\nMessages: %s.\n", "“"+strings.ReplaceAll(strings.Join(c.Summaries, "”, “"), "*", "…")+"”")
		}
	}
	want := b.String()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != want {
		t.Errorf("docs/messages.md is not what diag/codes.txt says (%v): run go test ./internal/cli -run TestMessagesPage -update", err)
	}
}

const messagesHead = `# Messages and their codes

Every error and warning has a code that stays what it is. It stands in the property ` + "`code`" + ` of the messages in ` + "`-json`" + ` output, where programs that know the peers' format do not look, and is shown to people with ` + "`show_codes = true`" + ` in the CLI configuration. ` + "`terrace explain -code CODE`" + ` prints what stands here; with ` + "`-json`" + ` as an object.

Warnings that you know are left out by code, in the CLI configuration (` + "`~/.tofurc`" + ` or the file in ` + "`TF_CLI_CONFIG_FILE`" + `):

` + "```hcl" + `
silence_warnings = ["cli/applied-with-targets", "plan/targeting"]
` + "```" + `

Errors cannot be silenced. A code that does not exist is reported with a warning.

This page is made from ` + "`diag/codes.txt`" + `.
`
