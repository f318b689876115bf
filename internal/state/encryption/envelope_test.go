package encryption

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/terrace-iac/terrace/internal/base/sealing"
)

// Envelopes are read like a JSON parser reads them, in any format and in pieces of any size. A
// truncated one is an error.
func TestEnvelopesAreReadInPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		data := make([]byte, r.IntN(1<<r.IntN(18)))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		serial, lineage := uint64(n), `a "encrypted_data" \ b`
		e := &envelope{Serial: &serial, Lineage: &lineage, Data: data, Version: version, Meta: map[string][]byte{"encrypted_data": []byte(`"`), "k": nil}}
		write, err := e.text(n%2 == 0)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := write(&text); err != nil {
			t.Fatal(err)
		}
		want, _ := json.Marshal(e)
		if n%2 == 0 {
			var pretty bytes.Buffer
			_ = json.Indent(&pretty, want, "", "  ")
			want = append(pretty.Bytes(), '\n')
		}
		if !bytes.Equal(text.Bytes(), want) {
			t.Fatalf("another text is written than the encoder of JSON writes, of %d bytes", len(data))
		}
		form := text.Bytes()
		switch n % 5 {
		case 1: // other orders
			var m map[string]any
			if err := json.Unmarshal(form, &m); err != nil {
				t.Fatal(err)
			}
			form, _ = json.Marshal(m)
		case 2:
			form = bytes.ReplaceAll(form, []byte("/"), []byte(`\/`))
		}
		for _, in := range []io.Reader{bytes.NewReader(form), iotest.HalfReader(bytes.NewReader(form)), iotest.DataErrReader(bytes.NewReader(form))} {
			size := int64(0)
			if n%3 == 0 {
				size = int64(len(form))
			}
			got, _, err := readEnvelope(in, size)
			if err != nil || got == nil || !bytes.Equal(got.Data, data) || *got.Lineage != lineage || *got.Serial != serial || len(got.Meta) != 2 {
				t.Fatalf("%v %+v\n%s", err, got, form)
			}
		}
		if len(form) < 3000 {
			for cut := range bytes.TrimSpace(form) {
				if got, _, err := readEnvelope(bytes.NewReader(form[:cut]), 0); err == nil && got != nil {
					t.Fatalf("%d of %d bytes are taken for the whole", cut, len(form))
				}
			}
		}
	}
	broken := errors.New("broken")
	for _, head := range []string{`{"serial":1,"encrypted_data":"AAAA`, `{"serial":1,"meta":{`} {
		_, rest, err := readEnvelope(io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken)), 0)
		if err == nil {
			_, err = io.ReadAll(rest)
		}
		if !errors.Is(err, broken) {
			t.Errorf("%s: %v", head, err)
		}
	}
	for _, odd := range []string{`{"encrypted_data":"A*AA","encryption_version":"v0"}`, `{"encrypted_data":"A\\u0041AA","encryption_version":"v0"}`} {
		if _, _, err := readEnvelope(strings.NewReader(odd), 0); err == nil {
			t.Errorf("%s is read", odd)
		}
	}
	for _, other := range []string{"", "{", "x", `{"version":4,"encrypted_data":"AAAA","encryption_version":"v0"}`, `{"serial":1,"version":4,"resources":[{"a":"\""}]}`, `{"lineage":"encrypted_data","serial":1}`} {
		got, rest, err := readEnvelope(strings.NewReader(other), 0)
		if err != nil || got != nil {
			t.Errorf("%s: %v %v", other, got, err)
			continue
		}
		if b, err := io.ReadAll(rest); err != nil || string(b) != other {
			t.Errorf("%s is read as %s: %v", other, b, err)
		}
	}
}

// The text of a large state is in memory once when it is encrypted, and once when it is
// decrypted.
func TestSealingTakesTheTextOnce(t *testing.T) {
	target := parse(t, fast+"state {\n method = method.aes_gcm.m\n}", services(t, t.TempDir())).State(ctx)
	const size = 32 << 20
	head := `{"version":4,"serial":1,"lineage":"l","x":"`
	fill := bytes.Repeat([]byte("x"), 64<<10)
	write := func(w io.Writer) error {
		_, err := io.WriteString(w, head)
		for range size / len(fill) {
			if err == nil {
				_, err = w.Write(fill)
			}
		}
		if err == nil {
			_, err = io.WriteString(w, `"}`)
		}
		return err
	}
	allocated := func(what string, do func()) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		if times := float64(after.TotalAlloc-before.TotalAlloc) / size; times > 1.2 {
			t.Errorf("%s allocates %.2f times the text", what, times)
		}
	}
	if _, err := sealed0(target, []byte("x"), 1, "l"); err != nil { // creates the key
		t.Fatal(err)
	}
	sealed := bytes.NewBuffer(make([]byte, 0, 3*size))
	allocated("sealing", func() {
		text, err := target.Seal(sealing.Plaintext{Write: write, Serial: 1, Lineage: "l"})
		if err == nil {
			err = text(sealed)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	allocated("opening", func() {
		r, _, err := target.Open(sealed, int64(sealed.Len()))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, r); err != nil || n != int64(len(head)+size+2) {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

// Earlier contents are released before the next one is read: a command that reads, compares and
// writes a large state has one in memory at a time.
func TestOneContentAtATime(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1000)) // so that the garbage collector does not run by itself
	target := parse(t, fast+"state {\n method = method.aes_gcm.m\n}", services(t, t.TempDir())).State(ctx)
	const size = 24 << 20
	plain := append([]byte(`{"version":4,"serial":1,"lineage":"l","x":"`), bytes.Repeat([]byte("x"), size)...)
	plain = append(plain, `"}`...)
	heap := func() int64 {
		m := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(m)
		return int64(m[0].Value.Uint64())
	}
	sealed := bytes.NewBuffer(make([]byte, 0, 2*size))
	runtime.GC()
	before := heap()
	for range 4 {
		text, err := target.Seal(sealing.Plaintext{Write: whole(plain), Serial: 1, Lineage: "l"})
		if err != nil {
			t.Fatal(err)
		}
		sealed.Reset()
		if err := text(sealed); err != nil {
			t.Fatal(err)
		}
		if _, _, err := target.Open(bytes.NewReader(sealed.Bytes()), int64(sealed.Len())); err != nil {
			t.Fatal(err)
		}
		if times := float64(heap()-before) / size; times > 2.5 {
			t.Errorf("%.1f contents are in memory", times)
		}
	}
}
