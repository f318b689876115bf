package states_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/zclconf/go-cty/cty"
)

// A note is only valid for the user who wrote it, at the path for which it was written, and with
// unchanged content, because a checkout can contain another one.
func TestNoted(t *testing.T) {
	dir := t.TempDir()
	backends := (&workdir.Directory{}).NewBackends("me@here")
	me := states.NewKeeper(states.Settings{Backends: backends, User: journal.User{Dir: t.TempDir()}})
	them := states.NewKeeper(states.Settings{Backends: backends, User: journal.User{Dir: t.TempDir()}})
	at := backends.InFolder(dir)
	attrs := at.Value.AsValueMap()
	attrs["path"] = cty.StringVal("a&<b>.tfstate")
	at.Value = cty.ObjectVal(attrs)
	write := func(path string, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	state := []byte(`{"version":4,"terraform_version":"1.12.6","serial":1,"lineage":"l","outputs":{},"resources":[]}`)
	write(filepath.Join(dir, "a&<b>.tfstate"), state)
	write(filepath.Join(dir, "other.tfstate"), state)
	if err := them.Note(t.TempDir(), at, "default"); err != nil { // another user, with another key
		t.Fatal(err)
	}
	if err := me.Note(dir, at, "default"); err != nil {
		t.Fatal(err)
	}
	noted := func(k *states.Keeper, dir string) bool {
		_, ok := k.Noted(t.Context(), "u", dir, dir, nil, nil)
		return ok
	}
	if !noted(me, dir) {
		t.Error("the user's own note does not count")
	}
	if noted(them, dir) {
		t.Error("the note of another user counts")
	}
	path := filepath.Join(dir, ".terrace-state")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	moved := t.TempDir()
	write(filepath.Join(moved, ".terrace-state"), text)
	if noted(me, moved) {
		t.Error("a note that was brought from elsewhere counts")
	}
	changed := bytes.Replace(text, []byte(`a\u0026\u003cb\u003e.tfstate`), []byte("other.tfstate"), 1)
	if bytes.Equal(changed, text) {
		t.Fatalf("%s", text)
	}
	write(path, changed)
	if noted(me, dir) {
		t.Error("a note that was changed counts")
	}
}
