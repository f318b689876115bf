package flag

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/plan"
)

// Flags are parsed up to the first argument, those with two dashes and those for any place also
// after it.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		words, want, wrong string
		mixed              bool
	}{
		{words: "-name=a -on rest -on", want: "name a, on, rest: rest -on"},
		{words: "-name=a rest -on", mixed: true, want: "name a, on, rest: rest"},
		{words: "-- -on --two", want: "rest: -on --two"},
		{words: "rest -- -on", mixed: true, want: "rest: rest -on"},
		{words: "rest --two -- --two -- -on", mixed: true, want: "two, rest: rest --two -- -on"},
		{words: "rest -- --two", want: "rest: rest --two"},
		{words: "--name a -on=false", want: "name a"},
		{words: "-list x -list=y", want: "list x y"},
		{words: "rest --two", want: "two, rest: rest"},
		{words: "-off=false", want: "left out"},
		{words: "-off", want: ""},
		{words: "-name", wrong: "flag needs an argument: -name"},
		{words: "-nam", wrong: "flag provided but not defined: -nam; did you mean -name?"},
		{words: "-two", wrong: "flag provided but not defined: -two"},
		{words: "-on=maybe", wrong: `invalid boolean value "maybe" for -on: parse error`},
	} {
		var got []string
		var name string
		var on, two, out bool
		var list []string
		fs := Flags{
			Text(&name, "name", "NAME", "A name."), Bool(&on, "on", "A switch."), List(&list, "list", "X", "A list."),
			Bool(&two, "two", "Another.").WithTwoDashes(), Off(&out, "off", "A switch that is on."),
		}
		rest, _, err := fs.Parse(strings.Fields(c.words), nil, c.mixed)
		if err != nil || c.wrong != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.wrong) {
				t.Errorf("%s: %v", c.words, err)
			}
			continue
		}
		for text, set := range map[string]bool{"name " + name: name != "", "on": on, "list " + strings.Join(list, " "): list != nil, "two": two, "left out": out} {
			if set {
				got = append(got, text)
			}
		}
		slices.Sort(got)
		if len(rest) > 0 {
			got = append(got, "rest: "+strings.Join(rest, " "))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", c.words, text, c.want)
		}
	}
}

// A variable sets a flag, and the command line has precedence.
func TestVariables(t *testing.T) {
	var name string
	fs := Flags{Text(&name, "name", "NAME", "A name.").Variables("TG_NAME")}
	env := sys.Env{"TG_NAME=v"}
	if _, given, err := fs.Parse(nil, env, false); err != nil || name != "v" || given["name"] {
		t.Errorf("%q, %v, %v", name, given, err)
	}
	if _, given, err := fs.Parse([]string{"-name=w"}, env, false); err != nil || name != "w" || !given["name"] {
		t.Errorf("%q, %v, %v", name, given, err)
	}
}

// Read sets nothing, and yields unknown words as they are.
func TestRead(t *testing.T) {
	on := false
	fs := Flags{Bool(&on, "on", ""), LockTimeout(new(time.Duration))}
	var got []string
	for f, value := range fs.Read(strings.Fields("-on -x=1 --lock-timeout 5s arg -- -on")) {
		if f == nil {
			got = append(got, value)
		} else {
			got = append(got, f.Name+"="+value)
		}
	}
	if text := strings.Join(got, " "); text != "on=true -x=1 lock-timeout=5s arg" || on {
		t.Errorf("%s, %t", text, on)
	}
}

// The flags of two modes leave the bits of both, and the last value of a switch counts.
func TestPlanFlags(t *testing.T) {
	for _, c := range []struct {
		words string
		want  plan.Options
	}{
		{"-destroy", plan.Options{Mode: plan.Destroy}},
		{"-destroy -refresh-only", plan.Options{Mode: plan.Destroy | plan.RefreshOnly}},
		{"-destroy -refresh-only -destroy=false", plan.Options{Mode: plan.RefreshOnly}},
		{"-refresh=false", plan.Options{SkipRefresh: true}},
		{"-refresh=false -refresh=config", plan.Options{MinimalRefresh: true}},
	} {
		var o plan.Options
		if _, _, err := append(Modes(&o), Refresh(&o, true)...).Parse(strings.Fields(c.words), nil, false); err != nil {
			t.Errorf("%s: %v", c.words, err)
		}
		if o.Mode != c.want.Mode || o.SkipRefresh != c.want.SkipRefresh || o.MinimalRefresh != c.want.MinimalRefresh {
			t.Errorf("%s: %+v", c.words, o)
		}
	}
}

// After keeps the other flags where they are.
func TestAfter(t *testing.T) {
	fs := Flags{Ignored("a", "", ""), Ignored("b", "", "")}
	var got []string
	for _, f := range fs.After("a", NoColor()) {
		got = append(got, f.Name)
	}
	if want := []string{"a", "no-color", "b"}; !slices.Equal(got, want) || len(fs) != 2 {
		t.Errorf("%q", got)
	}
}
