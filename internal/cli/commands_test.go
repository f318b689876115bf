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

// TestCommandsPage compares docs/commands.md with the declarations. -update writes the page.
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

// TestDeclarations checks that every declaration contains the texts for the help and the documents.
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

// TestPeersFlags checks that commands have the flags in OpenTofu 1.12.6's help, which
// testdata/tofu-flags.txt records. Each line contains a command and its flags.
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
			continue // another package may declare it
		}
		flags := table.Flags(c)
		for _, f := range strings.Fields(list) {
			if flags.Named(f) == nil {
				t.Errorf("%s does not take -%s", name, f)
			}
		}
	}
}

// TestEnvironmentTable compares the table of environment variables with the source: each
// variable that the source reads is in the table, and the source reads each variable of the
// table.
func TestEnvironmentTable(t *testing.T) {
	table := cli.Table()
	outside := []string{"TF_PLUGIN_MAGIC_COOKIE", // of the plugin protocol: set, not read
		"TERRACE_", // the prefix of all that providers do not read
		"HOME", "USERPROFILE", "PATH", "PATHEXT", "TERM", "TMPDIR", "APPDATA", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_DATA_DIRS", "XDG_RUNTIME_DIR",
		"NETRC", "GIT_SSH_COMMAND", "GIT_TERMINAL_PROMPT", "SSH_AUTH_SOCK", "REQUEST_METHOD", "DOCKER_CONFIG", "COMP_LINE", "COMP_POINT", "COMP_TYPE"} // of the system and of other programs
	clouds := regexp.MustCompile(`^\.\./\.\./internal/(?:net|state/backend|unit/functions)/`) // docs/backends.md lists theirs
	// own matches the program's variables anywhere; read matches all variables that are looked
	// up.
	own := regexp.MustCompile(`"((?:TF|TG|TERRACE|TOFU|OPENTOFU|OTEL|TERRAFORM)_[A-Z_]*|BROWSER|TRACEPARENT|NO_COLOR|FORCE_COLOR|CLICOLOR_FORCE)["=]`)
	read := regexp.MustCompile(`(?:Get|Lookup|[gG]etenv|enabled)\("([A-Z][A-Z0-9_]+)"`)
	seen := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		if err != nil || d.IsDir() && slices.Contains([]string{"testdata", ".git", ".ci", "testkit", "testprovider", "bench"}, d.Name()) {
			return cmp.Or(err, filepath.SkipDir)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "../../internal/cli/environment.go" || path == "../../internal/base/sys/heap.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		found := own.FindAllSubmatch(text, -1)
		if !clouds.MatchString(path) {
			found = append(found, read.FindAllSubmatch(text, -1)...)
		}
		for _, m := range found {
			name := string(m[1])
			if slices.Contains(outside, name) || strings.HasPrefix(name, "TERRACE_TEST_") {
				continue
			}
			has := false
			for _, v := range table.Environment {
				if v.Means(name) {
					has, seen[v.Name] = true, true
				}
			}
			if !has {
				t.Errorf("%s names %s, which the table in environment.go lacks", path, name)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range table.Environment {
		if !seen[v.Name] {
			t.Errorf("the table in environment.go has %s, which nothing reads", v.Name)
		}
	}
}

// TestEnvironmentTopic checks that "help environment", docs/commands.md and the pages of
// commands contain each variable of the table once, and that a command's page contains only
// the command's own.
func TestEnvironmentTopic(t *testing.T) {
	table := cli.Table()
	at := slices.IndexFunc(table.Topics, func(topic command.Topic) bool { return topic.Name == "environment" })
	for _, v := range table.Environment {
		if n := strings.Count(table.Topics[at].Text, "\n  "+v.Name+" ") + strings.Count(table.Topics[at].Text, "\n  "+v.Name+"\n"); n != 1 {
			t.Errorf("help environment has %s %d times", v.Name, n)
		}
		listed := strings.Contains(table.Man(nil), ".B "+v.Name+"\n")
		if common := v.Readers == nil; listed != common {
			t.Errorf("%s: read by every command %t, in the program's man page %t", v.Name, common, listed)
		}
		if v.Readers == nil {
			continue
		}
		if !slices.ContainsFunc(table.Commands, func(c command.Command) bool { return !c.Hidden && v.Readers(&c) }) {
			t.Errorf("no command reads %s", v.Name)
		}
	}
	for _, x := range []struct{ variable, reads, not string }{
		{"TF_REATTACH_PROVIDERS", "plan", "state list"},
		{"TERRACE_STORE_TIMEOUT", "force-unlock", "fmt"},
		{"TERRACE_JOURNAL", "apply", "plan"},
		{"TERRACE_TEMPORAL_TLS_KEY", "run", "plan"},
		{"TF_TOKEN_app_example_com", "get", "fmt"},
		{"TF_CLI_ARGS_state_list", "state list", "plan"},
		{"BROWSER", "login", "logout"},
		{"TF_INPUT", "import", "output"},
		{"TG_NAME", "find", "version"},
		{"TF_IGNORE", "plan", "state list"},
	} {
		for name, want := range map[string]bool{x.reads: true, x.not: false} {
			c := table.Named(name)
			if help, man := table.HelpOf(c), table.Man(c); strings.Contains(help, "\n  "+x.variable) != want || strings.Contains(man, ".B "+x.variable+"\n") != want {
				t.Errorf("the help or the man page of %s: %s should be listed: %t", name, x.variable, want)
			}
		}
	}
}

// TestBareStatus checks that the exit status without a command is the declared and documented
// one.
func TestBareStatus(t *testing.T) {
	table := cli.Table()
	if len(table.Bare) == 0 || table.Bare[0].Code != command.NoCommand {
		t.Fatalf("%+v", table.Bare)
	}
	for where, text := range map[string]string{"help": table.Usage(), "man page": table.Man(nil), "docs/commands.md": table.Markdown()} {
		if !strings.Contains(text, "127") {
			t.Errorf("the %s does not say 127", where)
		}
	}
}

// TestStateCommands checks that every command that reads a state lists the variable with the
// encryption keys of states.
func TestStateCommands(t *testing.T) {
	table := cli.Table()
	for _, name := range []string{"plan", "apply", "output", "show", "graph", "console", "state list", "state show", "state pull", "state rm"} {
		named := func(v command.Variable) bool { return v.Name == "TF_ENCRYPTION" }
		if c := table.Named(name); !slices.ContainsFunc(table.Variables(c), named) {
			t.Errorf("the help of %s does not name TF_ENCRYPTION", name)
		}
	}
}
