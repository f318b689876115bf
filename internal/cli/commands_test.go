package cli_test

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/cli/command"
)

// TestCommandsPage holds docs/commands.md against the declarations; -update writes it.
func TestCommandsPage(t *testing.T) {
	const page = "../../docs/commands.md"
	want := cli.Table().Markdown()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/commands.md is not what the declarations say: run go test ./internal/cli -run TestCommandsPage -update")
	}
}

// TestDeclarations holds every declaration to what help and documents need.
func TestDeclarations(t *testing.T) {
	table := cli.Table()
	seen := map[string]bool{}
	for i := range table.Commands {
		c := &table.Commands[i]
		if seen[c.Name] {
			t.Errorf("%s is declared twice", c.Name)
		}
		seen[c.Name] = true
		if c.Hidden {
			continue
		}
		if c.Synopsis == "" || c.Help == "" || c.Prepare == nil {
			t.Errorf("%s: synopsis, help or what runs is missing", c.Name)
			continue
		}
		for line := range strings.Lines(c.Help) {
			if n := len(strings.TrimRight(line, "\n")); n > 79 {
				t.Errorf("%s: a line of the help has %d columns", c.Name, n)
			}
		}
		flags, _ := c.Prepare()
		var names []string
		for _, f := range flags {
			name := f.Name
			if f.Two {
				name = "-" + name
			}
			if slices.Contains(names, name) {
				t.Errorf("%s: -%s is declared twice", c.Name, name)
			}
			names = append(names, name)
			if f.Help == "" && !f.Hidden {
				t.Errorf("%s: -%s has no help", c.Name, f.Name)
			}
		}
		for _, text := range []string{table.HelpOf(c), table.Man(c)} {
			if !strings.Contains(strings.ReplaceAll(text, "\\-", "-"), strings.Fields(c.Name)[0]) {
				t.Errorf("%s: %q", c.Name, text)
			}
		}
	}
}

// TestPeersFlags holds the commands against the flags that OpenTofu 1.12.6 lists in
// its help, as recorded in testdata/tofu-flags.txt: a line has a command and its flags.
func TestPeersFlags(t *testing.T) {
	b, err := os.ReadFile("testdata/tofu-flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	table := cli.Table()
	for line := range strings.Lines(string(b)) {
		name, list, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		c := table.Named(name)
		if c == nil {
			continue // it may come with another package
		}
		flags := table.Flags(c)
		for _, f := range strings.Fields(list) {
			if flags.Named(f) == nil {
				t.Errorf("%s does not take -%s", name, f)
			}
		}
	}
}

// TestEnvironmentTopic holds "help environment" against what is read: each variable of the
// program's own that the source names stands there, or on the page of the backends.
func TestEnvironmentTopic(t *testing.T) {
	topics := cli.Table().Topics
	at := slices.IndexFunc(topics, func(topic command.Topic) bool { return topic.Name == "environment" })
	backends, err := os.ReadFile("../../docs/backends.md")
	if err != nil {
		t.Fatal(err)
	}
	told := topics[at].Text + string(backends)
	for _, c := range cli.Table().Commands {
		for _, v := range c.Env {
			if !strings.Contains(told, v.Name) {
				t.Errorf("%s reads %s, which the topic lacks", c.Name, v.Name)
			}
		}
	}
	elsewhere := map[string]string{
		"TF_VAR_": "TF_VAR_name", "TF_CLI_ARGS_": "TF_CLI_ARGS_plan", "TF_TOKEN_": "TF_TOKEN_app_example_com",
		"TF_LOG_SDK": "TF_LOG_PROVIDER", "TF_PLUGIN_MAGIC_COOKIE": "", // of the plugin protocol
		"OTEL_EXPORTER_OTLP_": "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME": "OpenTelemetry", "OTEL_RESOURCE_ATTRIBUTES": "OpenTelemetry",
	}
	name := regexp.MustCompile(`"((?:TF|TERRACE|TOFU|OPENTOFU|OTEL)_[A-Z_]+)"`)
	seen := 0
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git" || d.Name() == "testkit") {
			return cmp.Or(err, filepath.SkipDir)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range name.FindAllSubmatch(text, -1) {
			variable := string(m[1])
			want, other := elsewhere[variable]
			if !other {
				want = variable
			}
			seen++
			if strings.HasPrefix(variable, "TF_HTTP_") {
				want = "TF_HTTP_ADDRESS"
			}
			if !strings.Contains(told, want) && !strings.HasPrefix(variable, "TERRACE_TEST_") {
				t.Errorf("%s reads %s, of which \"help environment\" and docs/backends.md say nothing", path, variable)
			}
		}
		return err
	})
	if err != nil || seen < 40 {
		t.Fatalf("%d variables were found: %v", seen, err)
	}
}

// TestStateCommands: whatever reads a state says so of the variable that opens it.
func TestStateCommands(t *testing.T) {
	table := cli.Table()
	for _, name := range []string{"plan", "apply", "output", "show", "graph", "console", "state list", "state show", "state pull", "state rm"} {
		named := func(v command.Variable) bool { return v.Name == "TF_ENCRYPTION" }
		if c := table.Named(name); !slices.ContainsFunc(table.Variables(c), named) {
			t.Errorf("the help of %s does not name TF_ENCRYPTION", name)
		}
	}
}
