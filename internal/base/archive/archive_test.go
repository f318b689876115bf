package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// entry is an entry of a test archive.
type entry struct {
	name, text, link string
	typ              byte
	mode             fs.FileMode
}

func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode | 0o644)
		if e.link != "" {
			h.SetMode(fs.ModeSymlink | 0o777)
			e.text = e.link
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(w, e.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode | 0o644), Typeflag: e.typ, Linkname: e.link, Size: int64(len(e.text))}
		if e.typ == 0 {
			h.Typeflag = tar.TypeReg
			if e.link != "" {
				h.Typeflag = tar.TypeSymlink
			}
		}
		err := w.WriteHeader(h)
		if err == nil {
			_, err = io.WriteString(w, e.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gz(t testing.TB, in []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(in); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unpack unpacks into a directory and returns its content.
func unpack(t testing.TB, in []byte, kind Kind, lim Limits) (map[string]string, error) {
	t.Helper()
	dir := t.TempDir()
	src := filepath.Join(dir, "archive")
	if err := os.WriteFile(src, in, 0o600); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(dir, "parent", "to")
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	err := Unpack(context.Background(), File{src, kind, "single"}, to, lim)
	out := make(map[string]string)
	werr := filepath.WalkDir(filepath.Join(dir, "parent"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == to || path == filepath.Dir(to) {
			return err
		}
		rel, _ := filepath.Rel(to, path)
		if strings.HasPrefix(rel, "..") {
			t.Errorf("written outside: %s", rel)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			out[rel] = "/"
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			out[rel] = "-> " + target
			return err
		default:
			text, err := os.ReadFile(path)
			out[rel] = fmt.Sprintf("%o %s", info.Mode().Perm(), text)
			return err
		}
		return nil
	})
	if werr != nil {
		t.Error(werr)
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 2 {
		t.Errorf("written outside: %v", entries)
	}
	return out, err
}

func TestUnpack(t *testing.T) {
	in := []entry{
		{name: "main.tf", text: "main"},
		{name: "bin/run", text: "run", mode: 0o755},
		{name: "a/b/c.txt", text: "deep"},
		{name: "a/link", link: "b/c.txt"},
		{name: "dangling", link: "none"},
	}
	want := map[string]string{"main.tf": "644 main", "bin": "/", "bin/run": "755 run", "a": "/", "a/b": "/", "a/b/c.txt": "644 deep", "a/link": "-> b/c.txt", "dangling": "-> none"}
	tarred := tarOf(t, in...)
	for kind, b := range map[Kind][]byte{Zip: zipOf(t, in...), Tar: tarred, TarGz: gz(t, tarred), TarXz: xz(t, tarred), TarBz2: bz2(t, tarred)} {
		if b == nil {
			continue
		}
		got, err := unpack(t, b, kind, Limits{})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", kind, d)
		}
		if s := Sniff(b); s != kind {
			t.Errorf("%s is taken for %s", kind, s)
		}
	}
	got, err := unpack(t, gz(t, []byte("text")), Gz, Limits{})
	if d := cmp.Diff(map[string]string{"single": "644 text"}, got); d != "" || err != nil {
		t.Error(d, err)
	}
	got, err = unpack(t, tarOf(t, entry{name: "a", text: "x"}, entry{name: "b", link: "a", typ: tar.TypeLink}), Tar, Limits{})
	if d := cmp.Diff(map[string]string{"a": "644 x", "b": "644 x"}, got); d != "" || err != nil {
		t.Error(d, err)
	}
}

// command compresses with an installed program. Without the program, it skips that format.
func command(t testing.TB, in []byte, name string, args ...string) []byte {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func xz(t testing.TB, in []byte, args ...string) []byte {
	return command(t, in, "xz", append([]string{"-c"}, args...)...)
}

func bz2(t testing.TB, in []byte) []byte { return command(t, in, "bzip2", "-c") }

func TestHostileArchives(t *testing.T) {
	big := strings.Repeat("0", 1<<20)
	for _, c := range []struct {
		name, want string
		entries    []entry
		lim        Limits
	}{
		{"dots", "leads out of its directory", []entry{{name: "../evil", text: "x"}}, Limits{}},
		{"dots inside", "leads out of its directory", []entry{{name: "a/../../evil", text: "x"}}, Limits{}},
		{"absolute", "not a relative path", []entry{{name: "/tmp/evil", text: "x"}}, Limits{}},
		{"backslashes", "leads out of its directory", []entry{{name: `..\evil`, text: "x"}}, Limits{}},
		{"drive", "not a relative path", []entry{{name: `C:/evil`, text: "x"}}, Limits{}},
		{"link out", "leads out of its directory", []entry{{name: "l", link: "../.."}}, Limits{}},
		{"link out behind what is not there", "does not exist", []entry{{name: "d/e/l", link: "later/../../x"}}, Limits{}},
		{"link out behind a link to what is not there", "does not exist", []entry{{name: "d/later", link: "none"}, {name: "d/l", link: "later/../x"}}, Limits{}},
		{"absolute link", "only relative links", []entry{{name: "l", link: "/etc/passwd"}}, Limits{}},
		{"link chain out", "", []entry{{name: "a", link: "."}, {name: "b", link: "a/.."}, {name: "c", link: "b/../x"}}, Limits{}},
		{"through a link", "", []entry{{name: "l", link: "."}, {name: "l/evil", text: "x"}}, Limits{}},
		{"file then directory", "both as a file and as a directory", []entry{{name: "a", text: "x"}, {name: "a/b", text: "x"}}, Limits{}},
		{"twice", "twice", []entry{{name: "a", text: "x"}, {name: "./a", text: "y"}}, Limits{}},
		{"too large", "more than is allowed", []entry{{name: "a", text: big}}, Limits{Bytes: 1000}},
		{"too many", "more files than is allowed", []entry{{name: "a", text: "x"}, {name: "b", text: "x"}, {name: "c", text: "x"}}, Limits{Files: 2}},
		{"long name", "too long", []entry{{name: strings.Repeat("a/", 3000) + "x", text: "x"}}, Limits{}},
	} {
		for kind, b := range map[Kind][]byte{Zip: zipOf(t, c.entries...), TarGz: gz(t, tarOf(t, c.entries...))} {
			_, err := unpack(t, b, kind, c.lim)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: got %v, want %s", c.name, kind, err, c.want)
			}
		}
	}
	for name, e := range map[string]entry{
		"device":        {name: "d", typ: tar.TypeChar},
		"pipe":          {name: "p", typ: tar.TypeFifo},
		"hard link out": {name: "h", link: "../archive", typ: tar.TypeLink},
		"no target":     {name: "h", link: "x", typ: tar.TypeLink},
	} {
		if _, err := unpack(t, tarOf(t, e), Tar, Limits{}); err == nil {
			t.Errorf("%s was unpacked", name)
		}
	}
	for _, kind := range []Kind{Zip, Tar, TarGz, TarXz, TarBz2, Gz, "rar"} {
		if _, err := unpack(t, []byte("no archive, but long enough to be read as one, to be sure"), kind, Limits{}); err == nil {
			t.Errorf("text was unpacked as %s", kind)
		}
	}
}

func TestUnpackStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	src := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(src, zipOf(t, entry{name: "a", text: "x"}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(ctx, File{Path: src, Kind: Zip}, t.TempDir(), Limits{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestXZ(t *testing.T) {
	if _, err := exec.LookPath("xz"); err != nil {
		t.Skip("there is no xz program to make data with")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	random := make([]byte, 100_000)
	for i := range random {
		random[i] = byte(rnd.Uint32())
	}
	var text bytes.Buffer
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d of %d\n", i%1000, rnd.IntN(50))
	}
	for name, in := range map[string][]byte{"empty": nil, "short": []byte("hello"), "random": random, "text": text.Bytes(), "zeros": make([]byte, 1<<20), "mixed": append(text.Bytes(), random...)} {
		for _, args := range [][]string{{"-0"}, {"-6"}, {"-9", "--check=sha256"}, {"--check=crc32", "--block-size=100000"}, {"--check=none", "--lzma2=preset=6,lc=0,lp=2,pb=0,dict=4096"}} {
			r, err := newXZ(bytes.NewReader(xz(t, in, args...)))
			var got []byte
			if err == nil {
				got, err = io.ReadAll(r)
			}
			if err != nil || sha256.Sum256(got) != sha256.Sum256(in) {
				t.Errorf("%s %v: %d bytes of %d, %v", name, args, len(got), len(in), err)
			}
		}
	}
	two := append(xz(t, []byte("one ")), xz(t, []byte("two"))...)
	if r, err := newXZ(bytes.NewReader(two)); err != nil {
		t.Error(err)
	} else if got, err := io.ReadAll(r); string(got) != "one two" || err != nil {
		t.Error(string(got), err)
	}
	greedy := xz(t, []byte("two"), "--lzma2=preset=0,dict=128MiB")
	for what, b := range map[string][]byte{"first": greedy, "second": append(xz(t, []byte("one ")), greedy...)} {
		r, err := newXZ(bytes.NewReader(b))
		if err == nil {
			_, err = io.ReadAll(r)
		}
		if err == nil || !strings.Contains(err.Error(), "wants a dictionary of 134217728 bytes") {
			t.Errorf("the %s stream wants much memory: %v", what, err)
		}
	}
	whole := xz(t, text.Bytes()[:50_000])
	for cut := 0; cut < len(whole); cut += 1 + len(whole)/30 {
		if r, err := newXZ(bytes.NewReader(whole[:cut])); err == nil {
			if _, err := io.ReadAll(r); err == nil {
				t.Errorf("cut off at %d and nothing was said", cut)
			}
		}
	}
	for at := 12; at < len(whole)-12; at += 1 + len(whole)/30 {
		bad := bytes.Clone(whole)
		bad[at] ^= 0x55
		if r, err := newXZ(bytes.NewReader(bad)); err == nil {
			if got, err := io.ReadAll(r); err == nil && !bytes.Equal(got, text.Bytes()[:50_000]) {
				t.Errorf("changed at %d and nothing was said", at)
			}
		}
	}
}

func FuzzUnpack(f *testing.F) {
	kinds := []Kind{Zip, Tar, TarGz, TarXz, TarBz2}
	tarred := tarOf(f, entry{name: "a/b", text: "x"}, entry{name: "l", link: "a/b"}, entry{name: "h", link: "a/b", typ: tar.TypeLink})
	f.Add(zipOf(f, entry{name: "a/b", text: "x"}, entry{name: "l", link: "../l"}), 0)
	f.Add(tarred, 1)
	f.Add(gz(f, tarred), 2)
	for i, b := range [][]byte{xz(f, tarred), bz2(f, tarred)} {
		if b != nil {
			f.Add(b, 3+i)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte, kind int) {
		if kind < 0 || kind >= len(kinds) {
			return
		}
		_, _ = unpack(t, in, kinds[kind], Limits{Bytes: 1 << 20, Files: 100}) // reports files that are written outside
	})
}
