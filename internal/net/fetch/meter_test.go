package fetch

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMeter(t *testing.T) {
	var got []int64
	w := &work{Fetcher: &Fetcher{Progress: func(p Progress) { got = append(got, p.Done) }}, key: "k"}
	var rest bytes.Buffer
	m := &meter{w: w, rest: &rest}
	for _, part := range []string{
		"Cloning into 'x'...\nremote: Enumerating objects: 7, done.\n", "Receiving objects:  20% (1/5)\rReceiving objects: 100% (5/5), 1.", "50 MiB | 3.00 MiB/s\r",
		"Receiving objects: 100% (5/5), 2.00 KiB, done.\n", "fatal: no such thing", ": really\n\nand more",
	} {
		if n, err := m.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	m.flush()
	if d := cmp.Diff([]int64{1572864, 2048}, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("fatal: no such thing: really\nand more\n", rest.String()); d != "" {
		t.Error(d)
	}
}

func FuzzMeter(f *testing.F) {
	f.Add([]byte("Receiving objects: 100% (5/5), 2.00 KiB, done.\n"), 3)
	f.Add([]byte("Receiving objects: , -1 MiB\rx"), 1)
	f.Fuzz(func(t *testing.T, text []byte, step int) {
		step = max(step, 1)
		w := &work{Fetcher: &Fetcher{Progress: func(p Progress) {
			if p.Done < 0 {
				t.Errorf("%d bytes", p.Done)
			}
		}}}
		m := &meter{w: w, rest: &bytes.Buffer{}}
		for len(text) > 0 {
			n := min(step, len(text))
			if _, err := m.Write(text[:n]); err != nil {
				t.Fatal(err)
			}
			text = text[n:]
		}
		m.flush()
	})
}
