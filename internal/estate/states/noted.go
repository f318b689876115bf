package states

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/local"
)

// whereName is the file in a working directory that notes where the state of the unit was
// when something was applied last, where that depends on outputs.
const whereName = ".terrace-state"

// Note notes in the working directory where the state of a unit is.
func (k *Keeper) Note(dir string, where local.Options) error {
	path := filepath.Join(dir, whereName)
	text := []byte(local.Open(where).Path() + "\n")
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteMode(path, text, 0o600)
}

// Noted is where the state of a unit was when something was applied last. A file that is
// not there any more says nothing.
func (k *Keeper) Noted(name, dir string) (local.Options, bool) {
	o := local.Options{Dir: dir, Unit: name, Now: k.s.Now, Workspace: store.Default, Who: k.s.Who}
	b, err := os.ReadFile(filepath.Join(dir, whereName))
	if err != nil {
		return o, false
	}
	o.Path = strings.TrimSuffix(string(b), "\n")
	info, err := os.Stat(o.Path)
	return o, err == nil && info.Mode().IsRegular()
}
