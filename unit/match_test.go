package unit_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/diag"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

func (u *loadedUnit) compareValue(name, want string, got cty.Value) {
	u.s.t.Helper()
	got, _ = got.UnmarkDeep()
	if !got.IsWhollyKnown() {
		u.s.t.Errorf("%s: unknown parts in %#v", name, got)
		return
	}
	raw, err := ctyjson.Marshal(got, got.Type())
	if err != nil {
		u.s.t.Fatal(err)
	}
	var g, w any
	decode(u.s.t, raw, &g)
	decode(u.s.t, []byte(strings.ReplaceAll(want, "$ROOT", u.s.root)), &w)
	if d := cmp.Diff(w, g); d != "" {
		u.s.t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// restrict removes the elements from got that want does not contain.
func restrict(got, want any) any {
	g, ok := got.(map[string]any)
	w, wok := want.(map[string]any)
	if !ok || !wok || len(w) == 0 {
		return got
	}
	out := map[string]any{}
	for k, v := range w {
		if in, ok := g[k]; ok {
			out[k] = restrict(in, v)
		} else if v == nil {
			out[k] = nil
		}
	}
	return out
}

// same compares lines in any order.
func (s *scenario) same(name, want string, got []string) {
	s.t.Helper()
	var lines []string
	for _, line := range strings.Split(want, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	got = slices.Clone(got)
	slices.Sort(lines)
	slices.Sort(got)
	if d := cmp.Diff(strings.Join(lines, "\n"), strings.Join(got, "\n")); d != "" {
		s.t.Errorf("%s (-want +got):\n%s", name, d)
	}
}

// match checks that each line is part of one message, and that there are no other messages.
func (s *scenario) match(name, want string, got []string) {
	s.t.Helper()
	rest := slices.Clone(got)
	for _, line := range strings.Split(want, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		place, text, _ := strings.Cut(line, " ")
		i := slices.IndexFunc(rest, func(m string) bool {
			return strings.HasPrefix(m, place+" ") && strings.Contains(m, text)
		})
		if i < 0 {
			s.t.Errorf("%s: no message %q among:\n%s", name, line, strings.Join(got, "\n"))
			continue
		}
		rest = slices.Delete(rest, i, i+1)
	}
	if len(rest) > 0 {
		s.t.Errorf("%s: messages that were not expected:\n%s", name, strings.Join(rest, "\n"))
	}
}

func messages(s *scenario, ds diag.List) []string {
	var out []string
	for _, m := range ds {
		place := "-"
		if m.At != nil {
			place = fmt.Sprintf("%s:%d", s.rel(m.At.Filename), m.At.Start.Line)
		}
		out = append(out, fmt.Sprintf("%s %s: %s", place, m.Summary, s.short(m.Detail)))
	}
	return out
}
