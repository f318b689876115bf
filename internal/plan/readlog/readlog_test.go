package readlog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/plan/readlog"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
)

var (
	begun  = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	inputs = state.Digest{1}
	a, b   = instance("a"), instance("b")
	pc     = addr.ProviderConfig{Provider: addr.DefaultProvider("x")}
)

func instance(name string) addr.Instance {
	return addr.AbsResource{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: name}}.Instance(addr.Key{})
}

// holding returns a state with objects of the given instances. Each depends on those before.
func holding(all ...addr.Instance) *state.State {
	d := state.New().WithMeta("lineage", 1, "1.12.6").Edit()
	var before []addr.ConfigResource
	for _, i := range all {
		d.Apply(state.Change{Object: addr.Object{Instance: i}, Provider: pc, New: &state.Object{JSON: []byte(`{"name":"secret"}`), Dependencies: before}})
		before = append(before, i.Config())
	}
	return d.Freeze()
}

// read returns a plan that read instances and found them as stored.
func read(s *state.State, all ...addr.Instance) *plan.Plan {
	p := &plan.Plan{PrevRun: s, Prior: s, Timestamp: begun}
	for _, i := range all {
		o := addr.Object{Instance: i}
		stored, _, _ := s.Object(o)
		p.Readings = append(p.Readings, plan.Reading{Object: o, Stored: state.DigestOf(stored), With: inputs})
	}
	return p
}

// recent returns the names of the objects in the log of a state that were read since begun.
func recent(dir string, s *state.State) string {
	var names []string
	got := readlog.Open(dir, s).Recent(begun, begun.Add(time.Hour))
	for _, i := range []addr.Instance{a, b} {
		if _, ok := got[addr.Object{Instance: i}]; ok {
			names = append(names, i.Resource.Name)
		}
	}
	return strings.Join(names, " ")
}

// A reading is in the log from the time of its plan on. The log of another state does not contain
// it, and the file contains no value.
func TestKeep(t *testing.T) {
	dir, s := t.TempDir(), holding(a, b)
	if err := readlog.Keep(dir, read(s, a), nil); err != nil {
		t.Fatal(err)
	}
	if got := recent(dir, s); got != "a" {
		t.Errorf("got %q", got)
	}
	if got := readlog.Open(dir, s).Recent(begun.Add(1), begun.Add(time.Hour)); len(got) != 0 {
		t.Errorf("later: %v", got)
	}
	if got := recent(dir, s.WithMeta("other", 1, "1.12.6")); got != "" {
		t.Errorf("another state: %q", got)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 1 {
		t.Fatal(files)
	}
	if text, err := os.ReadFile(files[0]); err != nil || strings.Contains(string(text), "secret") {
		t.Error(string(text), err)
	}
}

// A damaged log, a missing directory and a state without a lineage are an empty log, which can be
// written.
func TestUnusable(t *testing.T) {
	dir, s := t.TempDir(), holding(a)
	if err := readlog.Keep(dir, read(s, a), nil); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, text := range []string{"", "{", `{"version":99,"objects":{}}`, `{"version":2,"objects":{"x_thing.a":{"stored":"AA=="}}}`} {
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := recent(dir, s); got != "" {
			t.Errorf("%q: %q", text, got)
		}
	}
	if err := readlog.Keep(dir, read(s, a), nil); err != nil || recent(dir, s) != "a" {
		t.Error(recent(dir, s), err)
	}
	for _, none := range []*state.State{nil, state.New().WithMeta("", 0, "")} {
		if l := readlog.Open(dir, none); len(l.Recent(begun, begun)) != 0 || l.Save(none) != nil {
			t.Error("a state without a lineage has a log")
		}
	}
	if err := readlog.Keep("", read(s, a), nil); err != nil {
		t.Error(err)
	}
}

// An object that differs from state is not in the log, because the plan has not been applied.
func TestDiffers(t *testing.T) {
	dir, s := t.TempDir(), holding(a, b)
	if err := readlog.Keep(dir, read(s, a, b), nil); err != nil {
		t.Fatal(err)
	}
	p := read(s, a)
	p.Readings[0].Found = &state.Object{JSON: []byte(`{}`)}
	if err := readlog.Keep(dir, p, nil); err != nil || recent(dir, s) != "b" {
		t.Error(recent(dir, s), err)
	}
}

// After an apply, the log contains the changed objects as they are now, without those that depend
// on them. After a failed one, it does not contain the changed objects.
func TestApplied(t *testing.T) {
	for failed, want := range map[bool]string{false: "a", true: ""} {
		dir, s := t.TempDir(), holding(a, b)
		p := read(s, a, b)
		p.Changes = []*plan.Change{{Addr: a, Op: plan.Update}}
		done := readlog.Applied{State: s, Begun: begun, Failed: failed, Providers: map[addr.ProviderConfig]state.Digest{pc: inputs}}
		if err := readlog.Keep(dir, p, &done); err != nil || recent(dir, s) != want {
			t.Errorf("failed %v: %q %v", failed, recent(dir, s), err)
		}
	}
}

// Save forgets objects that are no longer in state. Without any, the file is removed.
func TestForget(t *testing.T) {
	dir := t.TempDir()
	if err := readlog.Keep(dir, read(holding(a, b), a, b), nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		left  *state.State
		want  string
		files int
	}{{holding(b), "b", 1}, {holding(), "", 0}} {
		if err := readlog.Open(dir, tt.left).Save(tt.left); err != nil {
			t.Fatal(err)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		if got := recent(dir, tt.left); got != tt.want || len(files) != tt.files {
			t.Errorf("%q %v", got, files)
		}
	}
}
