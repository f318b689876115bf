package statefile

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/statetest"
	"github.com/terrace-iac/terrace/state"
	"pgregory.net/rapid"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := statetest.State(t)
		var compact, indented bytes.Buffer
		if err := Write(&compact, s, false); err != nil {
			t.Fatal(err)
		}
		if err := Write(&indented, s, true); err != nil {
			t.Fatal(err)
		}
		// encoding/json agrees on both forms.
		var want bytes.Buffer
		if err := json.Indent(&want, bytes.TrimSuffix(compact.Bytes(), []byte("\n")), "", "  "); err != nil {
			t.Fatal(err)
		}
		if got := bytes.TrimSuffix(indented.Bytes(), []byte("\n\n")); !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("indented:\n%s\nwant:\n%s", got, want.Bytes())
		}
		for _, b := range [][]byte{compact.Bytes(), indented.Bytes()} {
			got, ds := Parse("x", b)
			if len(ds) > 0 {
				t.Fatalf("%v\n%s", ds[0].Detail, b)
			}
			if !got.Equal(s) || got.Lineage != s.Lineage || got.Serial != s.Serial {
				t.Fatalf("read back differently: %s\n%v", b, state.Diff(s, got))
			}
			var again bytes.Buffer
			if err := Write(&again, got, false); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(again.Bytes(), compact.Bytes()) {
				t.Fatalf("written again:\n%s\nfirst:\n%s", again.Bytes(), compact.Bytes())
			}
		}
	})
}

func TestChangesAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := statetest.Change(t)
		b, err := AppendChange([]byte("in front"), c)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.TrimPrefix(b, []byte("in front"))
		got, err := ParseChange(b)
		if err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		if got.Object != c.Object || got.Provider != c.Provider || !got.New.Equal(c.New) {
			t.Fatalf("got %+v from %s", got, b)
		}
	})
}
