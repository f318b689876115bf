package planfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/plan"
)

// bundle returns a bundle of three units, the second of which has no plan.
func bundle(t testing.TB) []byte {
	t.Helper()
	k := new(Packer)
	var parts []*Part
	for i, note := range []string{"a", "b", "c"} {
		p := k.NewPart()
		put := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if i != 1 {
			put(p.PutPlan(sample().Plan))
		}
		put(p.Put("note", []byte("other")))
		put(p.Put("note", []byte(note)))
		put(p.Put("long", []byte(strings.Repeat("again and ", 1000))))
		parts = append(parts, p)
	}
	var b bytes.Buffer
	if err := WriteBundle(&b, []byte("about"), slices.Values(parts), "1.0.0"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBundle(t *testing.T) {
	src := bundle(t)
	r := bytes.NewReader(src)
	one := written(t, sample())
	if !IsBundle(r, r.Size()) || IsBundle(bytes.NewReader(one), int64(len(one))) {
		t.Error("a bundle and a plan are not told apart")
	}
	got, err := ReadBundle(r, r.Size(), "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Parts) != 3 || string(got.About) != "about" {
		t.Fatalf("got %+v", got)
	}
	notes := ""
	var plans []*plan.Plan
	for _, p := range got.Parts {
		note, err := p.Get("note")
		none, err2 := p.Get("none")
		made, err3 := p.Plan()
		if err := errors.Join(err, err2, err3, p.Check()); err != nil || none != nil {
			t.Errorf("%v, %q", err, none)
		}
		notes += string(note)
		plans = append(plans, made)
	}
	if notes != "abc" || plans[1] != nil {
		t.Errorf("got %s %v", notes, plans[1])
	}
	want := *sample().Plan
	want.Prior, want.PrevRun = nil, nil
	if d := cmp.Diff(&want, plans[2], compare...); d != "" {
		t.Error(d)
	}
	if _, err := Read(r, r.Size(), "1.0.0"); !errors.Is(err, ErrBundle) {
		t.Errorf("read as a plan: %v", err)
	}
	if _, err := ReadBundle(r, r.Size(), "1.0.1"); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: %v", err)
	}
	if _, err := ReadBundle(bytes.NewReader(one), int64(len(one)), "1.0.0"); !errors.Is(err, ErrFolder) {
		t.Errorf("a plan read as a bundle: %v", err)
	}
}

// whole reads everything in a bundle.
func whole(src []byte) error {
	b, err := ReadBundle(bytes.NewReader(src), int64(len(src)), "1.0.0")
	if err != nil {
		return err
	}
	for _, p := range b.Parts {
		_, err1 := p.Get("note")
		_, err2 := p.Plan()
		err = errors.Join(err, err1, err2, p.Check())
	}
	return err
}

// TestBundleDamaged reads truncated bundles and bundles with a changed byte. Everything that is
// read without an error must be unchanged.
func TestBundleDamaged(t *testing.T) {
	src := bundle(t)
	if err := whole(src); err != nil {
		t.Fatal(err)
	}
	for n := range src {
		if _, err := Read(bytes.NewReader(src[:n]), int64(n), "1.0.0"); err == nil {
			t.Fatalf("a bundle cut off after %d bytes is read as the plan of a unit", n)
		}
		if whole(src[:n]) == nil {
			t.Fatalf("a bundle cut off after %d bytes is read", n)
		}
	}
	unnoticed := 0
	for n := 0; n < len(src); n += 3 {
		other := bytes.Clone(src)
		other[n] ^= 0x55
		if whole(other) == nil {
			unnoticed++ // unused data such as times
		}
	}
	if unnoticed > len(src)/9 {
		t.Errorf("of %d bytes, %d may be anything", len(src), unnoticed)
	}
}

// TestBundleHostile reads maliciously constructed archives.
func TestBundleHostile(t *testing.T) {
	raw := func(z *zip.Writer, name string, method uint16, size uint64, body string) {
		w, err := z.CreateRaw(&zip.FileHeader{Name: name, Method: method, CompressedSize64: uint64(len(body)), UncompressedSize64: size})
		if err == nil {
			_, err = io.WriteString(w, body)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	asPlan := func(z *zip.Writer, body []byte) {
		p, err := new(Packer).pack(planMember, body)
		if err == nil {
			err = p.write(z, "parts/000000/plan")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, want string
		fill       func(z *zip.Writer)
	}{
		{"in the wrong place", "wrong place", func(z *zip.Writer) { raw(z, "parts/000001/note", zip.Deflate, 0, "") }},
		{"twice", "wrong place", func(z *zip.Writer) {
			raw(z, "parts/000000/note", zip.Deflate, 0, "")
			raw(z, "parts/000000/note", zip.Deflate, 0, "")
		}},
		{"elsewhere", "wrong place", func(z *zip.Writer) { raw(z, "../x", zip.Deflate, 0, "") }},
		{"not packed", "not packed", func(z *zip.Writer) { raw(z, "parts/000000/note", zip.Store, 1, "x") }},
		{"large", "holds more than", func(z *zip.Writer) { raw(z, "parts/000000/note", zip.Deflate, 1<<62, "x") }},
		{"larger than it says", "not what was written", func(z *zip.Writer) {
			p, err := new(Packer).pack("", bytes.Repeat([]byte("x"), 1<<20))
			if err != nil {
				t.Fatal(err)
			}
			raw(z, "parts/000000/note", zip.Deflate, 10, string(p.body))
		}},
		{"a list of four thousand million elements", "cut off", func(z *zip.Writer) {
			e := newEncoder()
			e.str("")
			e.uint(1)
			e.bytes([]byte(`["list","string"]`))
			e.bytes([]byte("\xdd\xff\xff\xff\xff"))
			asPlan(z, e.buf)
		}},
		{"no plan", "damaged", func(z *zip.Writer) {
			asPlan(z, []byte("no plan"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			z := zip.NewWriter(&b)
			for _, m := range [][2]string{{"format", string(head(bundleMagic, "1.0.0"))}, {"about", "{}"}} {
				w, err := z.Create(m[0])
				if err == nil {
					_, err = io.WriteString(w, m[1])
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			c.fill(z)
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
			if err := whole(b.Bytes()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func FuzzReadBundle(f *testing.F) {
	f.Add(bundle(f))
	f.Add(written(f, sample()))
	f.Fuzz(func(_ *testing.T, src []byte) { _ = whole(src) })
}
