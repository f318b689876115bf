package store

import (
	"testing"
	"time"
)

// TestRunMark checks that the run of a lock is found in texts of Terrace and of workers only.
func TestRunMark(t *testing.T) {
	mark := RunMark{ID: NewID(), Process: 4711}
	for text, want := range map[string]RunMark{
		"If this run is killed, run a Terrace command before another tool. " + mark.String(): mark,
		`terrace run terrace-prod-1, turn 3.1 of unit "a"`:                                   {ID: "terrace-prod-1"},
		"": {}, "Run the other tool, process it.": {}, "session 12 of the server": {}, RunMark{}.String(): {},
	} {
		got, ok := LockInfo{Info: text}.Run()
		if got != want || ok != (want != RunMark{}) {
			t.Errorf("%q: %v, %v, want %v", text, got, ok, want)
		}
	}
}

// TestSame checks that a lock that was taken again is another one, even under the same ID.
func TestSame(t *testing.T) {
	at := time.Date(2026, 11, 22, 14, 16, 41, 0, time.UTC)
	a := LockInfo{ID: "organization/workspace", Operation: "apply", Who: "me@here", Created: at}
	b := a
	if b.Created = at.In(time.FixedZone("", 3600)); !a.Same(b) {
		t.Error("the same time in another zone makes another lock")
	}
	for _, change := range []func(*LockInfo){
		func(i *LockInfo) { i.ID = "x" }, func(i *LockInfo) { i.Who = "x" }, func(i *LockInfo) { i.Info = "x" },
		func(i *LockInfo) { i.Operation = "x" }, func(i *LockInfo) { i.Created = at.Add(1) },
	} {
		if b := a; true {
			if change(&b); a.Same(b) {
				t.Errorf("%+v is the same as %+v", b, a)
			}
		}
	}
}
