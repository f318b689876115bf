package estate_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/estate/saved"
)

// savedPlan returns the plan of an estate in its file form.
func savedPlan(t *testing.T, dir string) []byte {
	t.Helper()
	var s estate.Saving
	results := open(t, options(dir, "plan")).Run(t.Context(), estate.RunOptions{Op: estate.Plan, Saving: &s, Observe: estate.Watch{
		OnEnded: func(r *estate.Result) { s.Note(r.Unit.Name, "note", []byte("of "+r.Unit.Name)) },
	}})
	p, err := s.Save(estate.SavedRun{Dir: "live"}, results)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.Write(&b, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readSaved(src []byte) (*estate.SavedPlan, error) {
	return saved.Read(bytes.NewReader(src), int64(len(src)), "1.0.0")
}

// TestSaved applies a saved plan, whose units are decompressed in their turns.
func TestSaved(t *testing.T) {
	dir := tree(t, chain)
	p, err := readSaved(savedPlan(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil || p.About.Dir != "live" || len(p.Units) != 3 {
		t.Fatalf("%v %+v", err, p)
	}
	b := p.Units[1]
	note, err := b.Note("note")
	if err != nil || string(note) != "of b" || !b.Planned || !b.Changes || b.Counts.Add != 1 || strings.Join(b.Needs, " ") != "a" {
		t.Errorf("%v %q %+v", err, note, b)
	}
	if made, err := b.Plan(); err != nil || len(made.Changes) != 1 {
		t.Errorf("%v %+v", err, made)
	}
	got := statuses(open(t, options(dir, "apply")).Run(t.Context(), estate.RunOptions{Op: estate.Apply, Approved: p.Approvals()}))
	if want := "a succeeded +1 ~0 -0 \nb succeeded +1 ~0 -0 \nc succeeded +1 ~0 -0 \n"; got != want {
		t.Errorf("got %s", got)
	}
}

// TestSavedDamaged changes each byte of a plan. A plan that passes the check has its original
// content. Without the check, units that cannot be read are not applied at all.
func TestSavedDamaged(t *testing.T) {
	dir := tree(t, chain)
	src := savedPlan(t, dir)
	at := bytes.LastIndex(src[:bytes.Index(src, []byte("PK\x01\x02"))], []byte("parts/000002/plan")) + len("parts/000002/plan") + 100
	for n := at; n < at+40; n++ {
		other := bytes.Clone(src)
		other[n] ^= 0x55
		p, err := readSaved(other)
		if err == nil {
			err = p.Check()
		}
		if err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Fatalf("the byte %d may be another one: %v", n, err)
		}
	}
	src[at] ^= 0x55
	p, err := readSaved(src)
	if err != nil {
		t.Fatal(err)
	}
	results := open(t, options(dir, "apply")).Run(t.Context(), estate.RunOptions{Op: estate.Apply, Approved: p.Approvals()})
	if got, want := statuses(results), "a succeeded +1 ~0 -0 \nb succeeded +1 ~0 -0 \nc failed +0 ~0 -0 run error\n"; got != want {
		t.Errorf("got %s", got)
	}
	if err := results[2].Diags.Err(); err == nil || !strings.Contains(err.Error(), "What the saved plan holds of the unit c cannot be read") {
		t.Errorf("got %v", err)
	}
}
