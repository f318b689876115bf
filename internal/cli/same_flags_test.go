package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/run"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// TestFlagsEverywhere runs every command with each of its flags in a directory, in a unit, and
// over many units. An unknown flag follows, so that the command ends after parsing. A flag may
// be unknown over many units only with a declared reason.
func TestFlagsEverywhere(t *testing.T) {
	t.Parallel()
	table := cli.Table()
	root := t.TempDir()
	for name, text := range map[string]string{
		"plain/main.tf": "", "units/a/terragrunt.hcl": "", "units/a/main.tf": "", "units/b/terragrunt.hcl": "", "units/b/main.tf": "",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range table.Commands {
		cmd := &table.Commands[i]
		if cmd.Prepare == nil {
			continue
		}
		flags, _ := cmd.Prepare()
		over := run.OverOf(cmd.Name)
		if cmd.Units.Has(command.OverEstate) != (over != nil) {
			t.Errorf("%s: it runs over many units at once: %t, and declares what it does there: %t", cmd.Name, cmd.Units.Has(command.OverEstate), over != nil)
		}
		for j := range flags {
			f := &flags[j]
			if f.Name == "version" {
				continue // the program itself accepts it anywhere
			}
			word := "-" + f.Name
			if f.Two {
				word = "--" + f.Name
			}
			if !f.Switch() {
				word += "=" + sample(f)
			}
			words := append(strings.Fields(cmd.Name), word, "-no-such-flag")
			ways := map[string]string{"a directory": "plain", "a unit": "units/a"}
			if cmd.Units.Has(command.InUnit) || cmd.Units.Has(command.EachFolder) {
				ways["many units"] = "units"
			}
			for way, dir := range ways {
				args := words
				if way == "many units" {
					args = append([]string{"run", "--all", "--"}, words...)
				}
				said := says(t, filepath.Join(root, filepath.FromSlash(dir)), args)
				reason := ""
				if over != nil && way == "many units" {
					reason = over.Refused[f.Name]
				}
				switch {
				case strings.Contains(said, "not defined: -"+f.Name+"\n"), strings.Contains(said, "not defined: --"+f.Name+"\n"), strings.Contains(said, "not defined: "+word):
					t.Errorf("%s in %s does not know %s:\n%s", cmd.Name, way, word, said)
				case reason != "": // the unknown flag was reported first, so try without it
					if said = says(t, filepath.Join(root, filepath.FromSlash(dir)), args[:len(args)-1]); !strings.Contains(strings.Join(strings.Fields(said), " "), reason) {
						t.Errorf("%s in %s does not say that %s %s:\n%s", cmd.Name, way, word, reason, said)
					}
				case !strings.Contains(said, "no-such-flag") && !strings.Contains(said, "nvalid value") && !strings.Contains(said, "about one unit") && !strings.Contains(said, "cannot profile itself"):
					t.Errorf("%s in %s did not come to the flag that does not exist after %s:\n%s", cmd.Name, way, word, said)
				}
			}
		}
		if over != nil {
			for name := range over.Refused {
				if flags.Named(name) == nil {
					t.Errorf("%s refuses -%s over many units, which it does not have", cmd.Name, name)
				}
			}
			for _, name := range over.Together {
				if flags.Named(name) == nil {
					t.Errorf("%s runs at once with -%s, which it does not have", cmd.Name, name)
				}
			}
		}
	}
}

// sample returns a value for a flag.
func sample(f *flag.Flag) string {
	switch {
	case len(f.Choices) > 0:
		return f.Choices[0]
	case f.Value == "n":
		return "1"
	case f.Value == "duration", strings.HasSuffix(f.Default, "s"), strings.HasSuffix(f.Value, "0s"):
		return "1s"
	}
	return "x=y"
}

// says returns the output of the program on both streams.
func says(t *testing.T, dir string, args []string) string {
	t.Helper()
	var out strings.Builder
	env := []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "TF_CLI_CONFIG_FILE=" + os.DevNull}
	if _, err := runProgram(t.Context(), dir, env, strings.NewReader(""), &out, &out, args...); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
