package scaffold

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/screen"
	"github.com/zclconf/go-cty/cty"
)

// play types keys into the form of a draft on a terminal of 60 columns and 12 rows. It returns
// the last screen, and whether nothing is to be written.
func play(t *testing.T, d *Draft, keys ...string) (last string, canceled bool) {
	t.Helper()
	fake := sys.Test(t.TempDir())
	restored := 0
	fake.Terminal.Width, fake.Terminal.Height = func() int { return 60 }, func() int { return 12 }
	fake.Terminal.Keys = func() (<-chan string, func() error, error) {
		c := make(chan string, len(keys))
		for _, k := range keys {
			c <- k
		}
		close(c)
		return c, func() error { restored++; return nil }, nil
	}
	sc, err := screen.Open(fake.System, fake.Out)
	if err != nil {
		t.Fatal(err)
	}
	canceled, err = d.Ask(context.Background(), sc)
	if err != nil {
		t.Fatal(err)
	}
	if err := sc.Close(); err != nil || restored != 1 {
		t.Fatalf("the terminal is not restored: %v, %d times", err, restored)
	}
	screens := strings.Split(fake.Out.String(), "\x1b[H")
	return regexp.MustCompile(`\x1b\[[?0-9;]*[a-zA-Z]|\r`).ReplaceAllString(screens[len(screens)-1], ""), canceled
}

// unitOf returns the draft of a unit in a new directory with these files.
func unitOf(t *testing.T, files map[string]string) *Draft {
	t.Helper()
	from := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	d, ds := Copy(from, t.TempDir())
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	return d
}

const unitText = `inputs = {
  name  = values.name
  size  = try(values.size, 3)
  tags  = values.tags.team
  debug = try(values.debug, local.debug)
}
`

// Values of a unit are strings unless they look like another expression. Names of parts are
// paths. What is not typed stays as without a form.
func TestUnitForm(t *testing.T) {
	for _, test := range []struct {
		name     string
		keys     []string
		canceled bool
		shows    string
		values   string
	}{
		{name: "the first screen", shows: "> name = (required)", canceled: true},
		{name: "values", keys: []string{"\r", "a ${b}", "\t", "team", "\r", "j", "i", "[1, 2]", "\x1b", "s"},
			values: "# Required: fill these in\nname = \"a $${b}\"\ntags = {\n  team = \"team\"\n}\n\n# Optional, with what is used without them\ndebug = [1, 2]\nsize  = 3\n"},
		{name: "missing values", keys: []string{"s"}, shows: "2 of 4 values: missing", canceled: true},
		{name: "missing values are written", keys: []string{"\r", "n", "\x04"},
			values: "# Required: fill these in\nname = \"n\"\ntags = {\n  team = \"TODO\"\n}\n\n# Optional, with what is used without them\n# debug = local.debug\nsize = 3\n"},
		{name: "an invalid value", keys: []string{"\r", "[1", "\r", "\x04"}, shows: "1 of 4 values: invalid", canceled: true},
		{name: "unset", keys: []string{"\r", "n", "\r", "x"}, shows: "> name = (required)", canceled: true},
		{name: "reset", keys: []string{"\r", "n", "\t", "m", "\r", "r"}, shows: "tags.team = (required)", canceled: true},
		{name: "find", keys: []string{"/", "siz", "\r", "\r", "5", "\x04"},
			values: "# Required: fill these in\nname = \"TODO\"\ntags = {\n  team = \"TODO\"\n}\n\n# Optional, with what is used without them\n# debug = local.debug\nsize = 5\n"},
		{name: "find and show all", keys: []string{"/", "zzz", "\x1b"}, shows: "> name =", canceled: true},
		{name: "correct", keys: []string{"\r", "axx", "\x7f\x7f", "b", "\r"}, shows: "name = ab", canceled: true},
		{name: "leave", keys: []string{"\r", "n", "\r", "q"}, canceled: true},
		{name: "leave at once", keys: []string{"\r", "n\x03"}, canceled: true},
		{name: "a default that is no constant", keys: []string{"G", "k", "\r", "true", "\x04"},
			values: "# Required: fill these in\nname = \"TODO\"\ntags = {\n  team = \"TODO\"\n}\n\n# Optional, with what is used without them\ndebug = true\nsize  = 3\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := unitOf(t, map[string]string{"terragrunt.hcl": unitText})
			last, canceled := play(t, d, test.keys...)
			if canceled != test.canceled || !strings.Contains(last, test.shows) {
				t.Errorf("canceled %t, the screen is\n%s", canceled, last)
			}
			for _, row := range strings.Split(last, "\n") {
				if len([]rune(row)) > 60 {
					t.Errorf("a row is too long: %s", row)
				}
			}
			if !test.canceled {
				if d := cmp.Diff(test.values, string(d.build()["terragrunt.values.hcl"])); d != "" {
					t.Error(d)
				}
			}
		})
	}
}

// Values of a module have types, and a boolean value is toggled.
func TestTypedForm(t *testing.T) {
	fields := func() []*field {
		return []*field{
			{name: "name", ty: cty.String, required: true}, {name: "n", ty: cty.Number, required: true},
			{name: "on", ty: cty.Bool, fallback: "true"}, {name: "l", ty: cty.List(cty.String), fallback: "[]"},
		}
	}
	for _, test := range []struct {
		name  string
		keys  []string
		want  []string
		shows string
	}{
		{name: "all", keys: []string{"\r", "[x]", "\t", "5", "\r", "j", "\r", "j", "\r", `["a"]`, "\r", "s"}, want: []string{`"[x]"`, "5", "false", `["a"]`}},
		{name: "a number", keys: []string{"j", "\r", "a b", "\r"}, shows: "invalid: not an expression", want: []string{"", "", "", ""}},
		{name: "a wrong type", keys: []string{"j", "\r", "[]", "\r"}, shows: "invalid: number required", want: []string{"", "", "", ""}},
		{name: "references", keys: []string{"j", "\r", "local.n", "\r"}, want: []string{"", "local.n", "", ""}},
		{name: "toggle twice", keys: []string{"jj", "\r", "\r"}, want: []string{"", "", "true", ""}},
		{name: "toggle while editing", keys: []string{"j", "\r", "1", "\t", "\r", "x", "\x1b"}, want: []string{"", "1", "false", ""}},
		{name: "back", keys: []string{"j", "\r", "1", "\x1b[Z", "a", "\r"}, want: []string{`"a"`, "1", "", ""}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := &Draft{fields: fields()}
			last, _ := play(t, d, test.keys...)
			var got []string
			for _, f := range d.fields {
				got = append(got, f.value)
			}
			if diff := cmp.Diff(test.want, got); diff != "" || !strings.Contains(last, test.shows) {
				t.Errorf("%s\n%s", diff, last)
			}
		})
	}
}

// The strings of a unit in JSON are templates.
func TestJSONReferences(t *testing.T) {
	d := unitOf(t, map[string]string{"terragrunt.hcl.json": `{"//": "${values.comment}", "inputs": {"a": "${values.a}-${try(values.b.c, 1)}", "l": ["${values.l}"]}}`})
	var names []string
	for _, f := range d.fields {
		names = append(names, f.name)
	}
	if diff := cmp.Diff([]string{"a", "l", "b.c"}, names); diff != "" {
		t.Error(diff)
	}
}
