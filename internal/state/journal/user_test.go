package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/state"
)

// leave leaves the journal of a user like a killed run, with an answer in its tail.
func leave(t *testing.T, path string, u User, sealer sealing.Sealer) {
	t.Helper()
	j, err := Create(path, Options{Header: HeaderOf(base()), User: u, Sealer: sealer, Store: "state"})
	must(t, err, j.Begin(1, "t.x[5]", "create"), j.Answer(1, []state.Change{set(5, `{"a":5}`)}), j.Sync())
	body, err := appendAnswer([]byte{byte(kindAnswer)}, 2, []state.Change{set(6, `{"a":6}`)})
	must(t, err, j.answerByTail(body), j.Close())
}

// A journal belongs to the user only at the path where the user wrote it. A foreign journal can
// still be read.
func TestWhoseJournal(t *testing.T) {
	for _, sealer := range []sealing.Sealer{nil, flip{}} {
		dir, me, them := t.TempDir(), User{t.TempDir()}, User{t.TempDir()}
		path := filepath.Join(dir, "j")
		leave(t, path, me, sealer)
		must(t, os.Mkdir(filepath.Join(dir, "copy"), 0o755))
		b, err := os.ReadFile(path)
		must(t, err, os.WriteFile(filepath.Join(dir, "copy", "j"), b, 0o600), os.WriteFile(filepath.Join(dir, "k"), b, 0o600))
		_, err = them.key(true)
		must(t, err)
		for name, c := range map[string]struct {
			path string
			u    User
			own  bool
		}{
			"mine":                {path, me, true},
			"of another user":     {path, them, false},
			"nobody's":            {path, User{}, false},
			"no key yet":          {path, User{t.TempDir()}, false},
			"another directory":   {filepath.Join(dir, "copy", "j"), me, false},
			"another name":        {filepath.Join(dir, "k"), me, false},
			"the same, otherwise": {filepath.Join(dir, "copy", "..", "j"), me, true},
		} {
			rec, err := Inspect(c.path, sealer, c.u)
			must(t, err)
			if own := rec.Foreign == nil; own != c.own || len(rec.Changes) == 0 || rec.Header != HeaderOf(base()) {
				t.Errorf("%s: own %t (%v), %d changes", name, own, rec.Foreign, len(rec.Changes))
			}
		}
		must(t, os.Symlink(dir, filepath.Join(dir, "link")))
		if rec, err := Inspect(filepath.Join(dir, "link", "j"), sealer, me); err != nil || rec.Foreign != nil {
			t.Errorf("through a link to its directory: %v, %v", err, rec)
		}
		must(t, os.Symlink(path, filepath.Join(dir, "l")))
		if _, err := Inspect(filepath.Join(dir, "l"), sealer, me); err == nil {
			t.Error("a link in the place of a journal was followed")
		}
		if _, err := TakeOver(filepath.Join(dir, "l"), sealer); err == nil {
			t.Error("a link in the place of a journal was claimed")
		}
	}
}

// A record of another person in the user's own journal is ignored: a changed record with
// correct checksums, and an added record, in the journal or its tail.
func TestForgedRecords(t *testing.T) {
	me := User{t.TempDir()}
	path := filepath.Join(t.TempDir(), "j")
	leave(t, path, me, nil)
	whole, err := os.ReadFile(path)
	must(t, err)
	f, err := formatOf(whole)
	must(t, err)
	var records []record
	for at := f.start; at < len(whole); {
		r, ok := f.recordAt(whole, at)
		if !ok {
			t.Fatalf("no record at %d", at)
		}
		records = append(records, r)
		at = r.end
	}
	forged := bytes.Replace(records[len(records)-1].body, []byte(`"a":6`), []byte(`"a":9`), 1)
	for _, codes := range []*binding{nil, {make([]byte, 32)}} { // without a code, and with one of another key
		last := records[len(records)-1]
		replaced, err := seal(bytes.Clone(whole[:last.at]), forged, last.number, nil, codes)
		must(t, err)
		added, err := seal(bytes.Clone(whole), forged, last.number+1, nil, codes)
		must(t, err)
		for name, b := range map[string][]byte{"replaced": replaced, "added": added} {
			must(t, os.WriteFile(path, b, 0o600))
			rec, err := Inspect(path, nil, me)
			must(t, err)
			for _, c := range rec.Changes {
				if strings.Contains(string(c.New.JSON), "9") {
					t.Errorf("%s: a forged answer counts", name)
				}
			}
			if rec.Foreign != nil || !rec.Damaged() {
				t.Errorf("%s: it was not noticed: %v", name, rec.Foreign)
			}
		}
	}
	must(t, os.WriteFile(path, whole, 0o600))
	tl := newTail(tailPath(path), 2)
	if tl.put(append(forged, make([]byte, macSize)...)) < 0 {
		t.Skip("this system maps no files")
	}
	tl.close(false)
	rec, err := Inspect(path, nil, me)
	must(t, err)
	if len(rec.Changes) != 2 || rec.BadTail != 1 {
		t.Errorf("%d changes, %d bad in the tail", len(rec.Changes), rec.BadTail)
	}
}

// If there is no directory for the key, or others can read it, a run continues and its journal
// is foreign to every user. Journals of earlier formats are foreign.
func TestNoKey(t *testing.T) {
	open := User{t.TempDir()}
	_, err := open.key(true)
	must(t, err, os.Chmod(filepath.Join(open.Dir, keyName), 0o644))
	short := User{t.TempDir()}
	must(t, os.WriteFile(filepath.Join(short.Dir, keyName), []byte("short"), 0o600))
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for name, u := range map[string]User{"none": {}, "readable by others": open, "too short": short, "below a file": {filepath.Join(file, "x")}} {
		if name == "readable by others" && runtime.GOOS == "windows" {
			continue
		}
		path := filepath.Join(t.TempDir(), "j")
		leave(t, path, u, nil)
		rec, err := Inspect(path, nil, u)
		must(t, err)
		if rec.Foreign == nil || len(rec.Changes) != 2 {
			t.Errorf("%s: %v, %d changes", name, rec.Foreign, len(rec.Changes))
		}
	}
	old, _ := begunAndWritten()
	path := filepath.Join(t.TempDir(), "j")
	must(t, os.WriteFile(path, old, 0o600))
	if rec, err := Inspect(path, nil, User{t.TempDir()}); err != nil || rec.Foreign == nil {
		t.Errorf("format 1: %v", err)
	}
}

// The user's directory is determined by XDG_STATE_HOME or HOME, which must be absolute.
// Processes that need the key at the same time get the same one.
func TestUserOf(t *testing.T) {
	for env, want := range map[string]string{"": "", "HOME=/h": "/h/.local/state/terrace", "HOME=h": "", "HOME=/h XDG_STATE_HOME=/s": "/s/terrace", "HOME=/h XDG_STATE_HOME=s": "/h/.local/state/terrace"} {
		if got := filepath.ToSlash(UserOf(sys.Env(strings.Fields(env))).Dir); runtime.GOOS != "windows" && got != want {
			t.Errorf("%s: %s", env, got)
		}
	}
	u := User{filepath.Join(t.TempDir(), "a", "b")}
	keys := make(chan string, 8)
	for range cap(keys) {
		go func() {
			key, err := u.key(true)
			if err != nil {
				t.Error(err)
			}
			keys <- string(key)
		}()
	}
	first := <-keys
	for range cap(keys) - 1 {
		if key := <-keys; key != first || len(key) != keySize {
			t.Errorf("two keys, or one of %d bytes", len(key))
		}
	}
	if left, _ := os.ReadDir(u.Dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// A signature is valid for one user, one purpose and one list of texts.
func TestSign(t *testing.T) {
	me, them := User{t.TempDir()}, User{t.TempDir()}
	if me.Signed("", "p", "a") {
		t.Error("there was no key")
	}
	code, ok := me.Sign("p", "a", "b")
	if !ok || !me.Signed(code, "p", "a", "b") {
		t.Error("not signed")
	}
	if _, ok := them.Sign("p"); !ok || them.Signed(code, "p", "a", "b") || me.Signed(code, "q", "a", "b") || me.Signed(code, "p", "a b") || me.Signed(code, "p", "a", "b", "") {
		t.Error("something else is signed, too")
	}
	if _, ok := (User{}).Sign("p"); ok {
		t.Error("signed without a key")
	}
}

// A journal in a store is used for the state for which it was written, by any user.
func TestParseForStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	leave(t, path, User{t.TempDir()}, nil)
	b, err := os.ReadFile(path)
	must(t, err)
	for store, own := range map[string]bool{"state": true, "other": false, "": false} {
		if rec, err := Parse(b, nil, store); err != nil || (rec.Foreign == nil) != own || len(rec.Changes) == 0 {
			t.Errorf("%q: %v, %v", store, err, rec.Foreign)
		}
	}
}

// Texts in a journal are printed without terminal control characters, whoever wrote it.
func TestPrintable(t *testing.T) {
	if got := printable("a\x1b[2Jb\r\n\u202ec"); got != "a[2Jbc" {
		t.Errorf("%q", got)
	}
	if got := printable(strings.Repeat("x", 10000)); len(got) > 4096 {
		t.Errorf("%d bytes", len(got))
	}
}
