package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/state"
)

func inst(n int) addr.Instance {
	return addr.Instance{Resource: addr.Resource{Type: "t", Name: "x"}, Key: addr.Int(n)}
}

func set(n int, json string) state.Change {
	return state.Change{
		Object:   addr.Object{Instance: inst(n)},
		Provider: addr.ProviderConfig{Provider: addr.DefaultProvider("t"), Alias: "a", Key: addr.Str("k")},
		New:      &state.Object{JSON: []byte(json), Private: []byte("p"), Dependencies: []addr.ConfigResource{{Module: "module.m", Resource: addr.Resource{Type: "a", Name: "b"}}}},
	}
}

func gone(n int) state.Change { return state.Change{Object: addr.Object{Instance: inst(n)}} }

func base() *state.State {
	d := (&state.State{Lineage: "lin", Serial: 7}).Edit()
	d.Apply(set(0, `{"a":0}`))
	d.Apply(set(1, `{"a":1}`))
	return d.Freeze()
}

// Recover reads a journal as if its run had ended, although the test still has it open.
func Recover(path string, sealer sealing.Sealer) (*Recovered, error) {
	rec, err := Inspect(path, sealer, User{})
	if rec != nil {
		rec.Live = false
	}
	return rec, err
}

func Discard(path string) error {
	c, err := TakeOver(path, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Discard()
}

func noTail(bool) ([][]byte, int) { return nil, 0 }

func create(t *testing.T, h Header, sealer sealing.Sealer) (*Journal, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), ".terraform.tfstate.journal")
	j, err := Create(path, Options{Header: h, Sealer: sealer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j, path
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestFoldBringsBackWhatWasAnswered(t *testing.T) {
	s := base()
	j, path := create(t, HeaderOf(s), nil)
	must(t,
		j.Begin(1, "t.x[0]", "update"), j.Begin(2, "t.x[2]", "create"), j.Begin(3, "t.x[1]", "delete"), j.Begin(4, "t.x[3]", "create"),
		j.Answer(2, []state.Change{set(2, `{"a":2}`)}),
		j.Answer(1, []state.Change{set(0, `{"a":"new"}`)}),
		j.Answer(3, []state.Change{gone(1)}),
		j.Begin(5, "t.x[4]", "create"), j.Answer(5, nil),
	)
	// Nothing is closed, as after a killed run.
	rec, err := Recover(path, nil)
	must(t, err)
	got, ok, ds := Fold(s, rec)
	if !ok {
		t.Fatal("the journal does not continue the state that it began with")
	}
	d := s.Edit()
	for _, c := range []state.Change{set(2, `{"a":2}`), set(0, `{"a":"new"}`), gone(1)} {
		d.Apply(c)
	}
	if !got.Equal(d.Freeze()) {
		t.Errorf("after folding: %v", state.Diff(d.Freeze(), got))
	}
	if got.Lineage != "lin" || got.Serial != 7 {
		t.Errorf("lineage %q serial %d", got.Lineage, got.Serial)
	}
	if diff := cmp.Diff([]Intent{{4, "t.x[3]", "create"}}, rec.Pending); diff != "" {
		t.Error(diff)
	}
	if len(ds) != 2 || ds.HasErrors() || !strings.Contains(ds[1].Detail, "May have happened: t.x[3] (create)") || ds[1].Address != "t.x[3]" {
		t.Errorf("messages: %v", ds)
	}
}

func TestFirstRunHasNoState(t *testing.T) {
	j, path := create(t, HeaderOf(nil), nil)
	must(t, j.Begin(1, "t.x[0]", "create"), j.Answer(1, []state.Change{set(0, `{}`)}))
	rec, err := Recover(path, nil)
	must(t, err)
	got, ok, _ := Fold(nil, rec)
	if !ok || len(got.Resources) != 1 {
		t.Fatalf("%v %v", ok, got)
	}
}

func TestNotFoldedOntoAnotherState(t *testing.T) {
	s := base()
	for name, other := range map[string]*state.State{
		"another serial": s.WithMeta("lin", 8, ""), "another lineage": s.WithMeta("l2", 7, ""), "none": nil,
	} {
		t.Run(name, func(t *testing.T) {
			j, path := create(t, HeaderOf(s), nil)
			must(t, j.Begin(1, "t.x[5]", "create"), j.Answer(1, []state.Change{set(5, `{"a":5}`)}), j.Begin(2, "t.x[6]", "create"))
			rec, err := Recover(path, nil)
			must(t, err)
			got, ok, _ := Fold(other, rec)
			if ok || got != other {
				t.Fatal("the journal was folded onto a state that it does not continue")
			}
			apart, ds := StateOfJournal(rec, other)
			if apart.Lineage != "lin" || apart.Serial != 7 || len(apart.Resources) != 1 {
				t.Errorf("apart: %+v", apart)
			}
			if len(ds) != 2 || !strings.Contains(ds[1].Detail, "t.x[6]") {
				t.Errorf("messages: %v", ds)
			}
		})
	}
}

func TestWhatWasWrittenIsNotFoldedAgain(t *testing.T) {
	s := base()
	j, path := create(t, HeaderOf(s), nil)
	must(t, j.Answer(1, []state.Change{gone(1)}))
	d := s.Edit()
	d.Apply(gone(1))
	first := d.Freeze().WithMeta("lin", 8, "")
	must(t, j.Written(first))
	must(t, j.Answer(2, []state.Change{set(3, `{"a":3}`)}))
	d = first.Edit()
	d.Apply(set(3, `{"a":3}`))
	second := d.Freeze().WithMeta("lin", 9, "")
	must(t, j.Written(second), j.Begin(9, "t.x[9]", "create"))

	rec, err := Recover(path, nil)
	must(t, err)
	for name, c := range map[string]struct {
		in   *state.State
		want *state.State // nil: the journal does not continue it
	}{
		"neither write happened":  {s, second},
		"the first did":           {first, second},
		"both did":                {second, second},
		"somebody else wrote one": {base().WithMeta("lin", 8, ""), nil},
	} {
		got, ok, ds := Fold(c.in, rec)
		if ok != (c.want != nil) {
			t.Errorf("%s: folded: %v", name, ok)
			continue
		}
		if c.want == nil {
			continue
		}
		if !got.Equal(c.want) {
			t.Errorf("%s: %v", name, state.Diff(c.want, got))
		}
		if got.Serial != c.in.Serial {
			t.Errorf("%s: serial %d", name, got.Serial)
		}
		if !strings.Contains(ds[len(ds)-1].Detail, "t.x[9]") {
			t.Errorf("%s: %v", name, ds)
		}
	}
}

func TestTornTailIsIgnoredAtEveryLength(t *testing.T) {
	s := base()
	j, path := create(t, HeaderOf(s), nil)
	for i := range 5 {
		must(t, j.Begin(i, inst(10+i).String(), "create"), j.Answer(i, []state.Change{set(10+i, `{"a":"<&>"}`)}))
	}
	must(t, j.Close())
	whole, err := os.ReadFile(path)
	must(t, err)
	last := -1
	for n := range len(whole) + 1 {
		rec, err := parse(whole[:n], noTail, nil, nil)
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		got, ok, _ := Fold(s, rec)
		if !ok {
			t.Fatalf("cut at %d: not folded", n)
		}
		have := len(got.Resources[inst(0).Abs()].Instances) - 2
		if have < last {
			t.Fatalf("cut at %d: %d objects after %d", n, have, last)
		}
		if len(rec.Pending) > 1 {
			t.Fatalf("cut at %d: %v pending", n, rec.Pending)
		}
		last = have
	}
	if last != 5 {
		t.Errorf("%d objects in the whole journal", last)
	}
}

func TestCreateRefusesASecondJournal(t *testing.T) {
	j, path := create(t, Header{}, nil)
	if _, err := Create(path, Options{}); !errors.Is(err, ErrExists) {
		t.Errorf("%v", err)
	}
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	must(t, j.Begin(1, "a", "b"))
	start := time.Now()
	must(t, j.Remove())
	if time.Since(start) > SyncDelay/2 {
		t.Error("Remove waits for a sync that is not due")
	}
	if Exists(path) {
		t.Error("it is still there")
	}
	if err := j.Begin(2, "a", "b"); err == nil {
		t.Error("a removed journal was written")
	}
	if _, err := Recover(path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// flip is a sealer that does not hide anything, but shows where it was used.
type flip struct{}

func (flip) Seal(p sealing.Plaintext) (func(io.Writer) error, error) {
	var b bytes.Buffer
	err := p.Write(&b)
	flipped := b.Bytes()
	for i := range flipped {
		flipped[i] ^= 0x55
	}
	return func(w io.Writer) error { _, err := w.Write(flipped); return err }, err
}

func (f flip) Open(r io.Reader, _ int64) (io.Reader, bool, error) {
	sealed, err := io.ReadAll(r)
	if err != nil {
		return nil, false, err
	}
	plain, err := sealing.Append(f, nil, sealed)
	return bytes.NewReader(plain), false, err
}

func TestSealed(t *testing.T) {
	s := base()
	j, path := create(t, HeaderOf(s), flip{})
	must(t, j.Begin(1, "t.x[5]", "create"), j.Answer(1, []state.Change{set(5, `{"a":"secret"}`)}), j.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	if bytes.Contains(b, []byte("secret")) || bytes.Contains(b, []byte("lin")) {
		t.Error("the journal is readable")
	}
	if _, err := Recover(path, nil); !errors.Is(err, ErrSealed) {
		t.Errorf("%v", err)
	}
	rec, err := Recover(path, flip{})
	must(t, err)
	if _, ok, _ := Fold(s, rec); !ok || len(rec.Changes) != 1 {
		t.Errorf("%+v", rec)
	}
}

func TestConcurrentUse(t *testing.T) {
	j, path := create(t, Header{}, nil)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for n := range 20 {
				id := i*20 + n
				must(t, j.Begin(id, inst(id).String(), "create"), j.Answer(id, []state.Change{set(id, `{}`)}))
			}
		})
	}
	wg.Go(func() { must(t, j.Sync()) })
	wg.Wait()
	must(t, j.Close())
	rec, err := Recover(path, nil)
	must(t, err)
	if len(rec.Changes) != 400 || len(rec.Pending) != 0 || rec.Torn != 0 {
		t.Errorf("%d changes, %d pending, %d torn", len(rec.Changes), len(rec.Pending), rec.Torn)
	}
}

// TestKilled kills a child process at a random moment. The journal must contain everything that
// the child reported as answered.
func TestKilled(t *testing.T) {
	if path := os.Getenv("JOURNAL_CHILD"); path != "" {
		j, err := Create(path, Options{})
		must(t, err)
		for i := 0; ; i++ {
			must(t, j.Begin(i, inst(i).String(), "create"))
			fmt.Printf("begun %d\n", i)
			must(t, j.Answer(i, []state.Change{set(i, `{"a":1}`)}))
			fmt.Printf("done %d\n", i)
		}
	}
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	for round := range rounds {
		path := filepath.Join(t.TempDir(), "j")
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "JOURNAL_CHILD="+path)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		var said bytes.Buffer
		copied := make(chan struct{})
		go func() { defer close(copied); said.ReadFrom(out) }()
		for !Exists(path) {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Duration(round+1) * 3 * time.Millisecond)
		must(t, cmd.Process.Kill())
		<-copied
		cmd.Wait()
		rec, err := Recover(path, nil)
		must(t, err)
		done, begun := strings.Count(said.String(), "done "), strings.Count(said.String(), "begun ")
		if len(rec.Changes) < done {
			t.Errorf("%d answers were given and %d are in the journal", done, len(rec.Changes))
		}
		if begun > done && len(rec.Changes) == done && len(rec.Pending) == 0 {
			t.Errorf("an action was begun (%d) and not answered (%d), and the journal does not name it", begun, done)
		}
	}
}

func FuzzRecover(f *testing.F) {
	path := filepath.Join(f.TempDir(), "j")
	j, err := Create(path, Options{Header: Header{Lineage: "lin", Serial: 7}})
	if err != nil {
		f.Fatal(err)
	}
	j.Begin(1, "t.x", "create")
	j.Answer(1, []state.Change{set(5, `{"a":5}`), gone(1)})
	j.Written(base())
	j.Begin(2, "t.y", "create")
	j.Close()
	b, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(b[:len(b)-3])
	f.Add([]byte(magic))
	f.Add([]byte(sealedMagic))
	f.Add(append(bytes.Clone(b[:70]), b[90:]...))
	f.Add(bytes.Replace(b, []byte("t.x"), []byte("t.y"), 1))
	f.Add(b[5:])
	first, _ := begunAndWritten()
	f.Add(first)
	f.Add(first[:len(first)-3])
	f.Add(bytes.Replace(first, []byte("t.x"), []byte("t.y"), 1))
	// Only bodies get past the checksum.
	f.Add([]byte("\x00A\x02\x05\x00\x00\x00{\"a\":"))
	s := base()
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 0 && b[0] == 0 {
			head, _ := seal(nil, []byte(`H{"Lineage":"lin","Serial":7}`), 1, nil, nil)
			rest, _ := seal(nil, b[1:], 2, nil, nil)
			b = append(append([]byte(magic), head...), rest...)
		}
		rec, err := parse(b, noTail, nil, nil)
		if err != nil {
			return
		}
		for i, bad := range rec.Bad {
			if bad.From > bad.To || bad.To > int64(len(b)) || i > 0 && bad.From < rec.Bad[i-1].To {
				t.Errorf("bad: %v", rec.Bad)
			}
		}
		if got, ok, _ := Fold(s, rec); ok && got == nil {
			t.Error("the state is gone")
		}
		if rec.Damaged() && rec.Damage() == "" {
			t.Errorf("damage %v is not reported", rec.Bad)
		}
		StateOfJournal(rec, s)
	})
}

func BenchmarkAnswer(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := []state.Change{set(1, `{"id":"0f5b9b4e-6f7e-4c42-9a5e-2d6a8c3f8f10","input":{"value":{"name":"x"},"type":["object",{"name":"string"}]},"output":null,"triggers_replace":null}`)}
			for b.Loop() {
				b.StopTimer()
				j, err := Create(filepath.Join(b.TempDir(), "j"), Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				for i := range n {
					if err := errors.Join(j.Begin(i, "t.x[1]", "create"), j.Answer(i, c)); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				j.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/action")
		})
	}
}
