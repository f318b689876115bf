package statefile

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

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
		// encoding/json must produce the same result for both forms.
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
			streamed, ok := ParseStream(iotest.OneByteReader(bytes.NewReader(b)), false)
			if !ok || !streamed.Equal(s) || streamed.Serial != s.Serial {
				t.Fatalf("read as a stream (%v) it differs: %s\n%v", ok, b, state.Diff(s, streamed))
			}
			outline, ok := ParseStream(bytes.NewReader(b), true)
			if !ok || !slices.Equal(addresses(outline), addresses(s)) || len(outline.Outputs) != len(s.Outputs) {
				t.Fatalf("the outline (%v) is another one: %v\n%s", ok, addresses(outline), b)
			}
			if _, ok := ParseStream(bytes.NewReader(b[:len(b)-4]), false); ok {
				t.Fatalf("a torn file is read as a stream: %s", b)
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

func addresses(s *state.State) (out []string) {
	for _, l := range s.List() {
		out = append(out, l.Addr.String()+" "+l.Provider.String())
	}
	return out
}

func TestAnOutlineHasTheID(t *testing.T) {
	const text = `{"version":4,"serial":1,"lineage":"x","outputs":{},"resources":[{"mode":"managed","type":"a","name":"b","provider":"provider[\"example.com/x/a\"]","instances":[{"schema_version":0,"attributes":{"x":{"id":"no"},"id":"yes <&>","y":[1,{"id":2}]},"private":"eHg=","identity":{"a":1},"dependencies":["a.c"]}]}]}`
	s, ok := ParseStream(strings.NewReader(text), true)
	if !ok {
		t.Fatal("it was not read")
	}
	o := s.List()[0].Object
	if string(o.JSON) != `{"id":"yes \u003c\u0026\u003e"}` || o.Private != nil || o.Identity != nil || o.Dependencies != nil {
		t.Errorf("the outline of the object is %s, %+v", o.JSON, o)
	}
	for _, other := range []string{
		strings.Replace(text, `"version":4,`, ``, 1), strings.Replace(text, `"version":4`, `"version":3`, 1),
		strings.Replace(text, `"y":[1,`, `"y":[1,,`, 1), strings.Replace(text, `"a.c"`, `"a"`, 1), text + "x", "", "tfstate",
	} {
		if _, ok := ParseStream(strings.NewReader(other), true); ok {
			t.Errorf("it was read: %s", other)
		}
	}
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
