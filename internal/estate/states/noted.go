package states

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// whereName is the name of the file in a working directory that records where the state of the
// unit was at the last apply. It is only written if the location depends on outputs.
const whereName = ".terrace-state"

// A note is the content of the file whereName.
type note struct {
	Backend   string          `json:"backend"`
	Config    json.RawMessage `json:"config"`
	Workspace string          `json:"workspace"`
	Dir       string          `json:"dir"`
	// Code is a signature which proves that this user wrote the note for this path. Without it, a
	// file from a checkout could redirect to another state.
	Code string `json:"code,omitempty"`
}

// signed returns the texts that Code signs.
func (n note) signed(path string) []string {
	return []string{path, n.Backend, string(n.Config), n.Workspace, n.Dir}
}

const notePurpose = "place of a state"

// Note records the location of a unit's state in the working directory dir.
func (k *Keeper) Note(dir string, at backend.Config, workspace string) error {
	if k.s.Throwaway != "" {
		return nil
	}
	path := filepath.Join(dir, whereName)
	config, err := ctyjson.Marshal(at.Value, at.Value.Type())
	if err != nil {
		return err
	}
	n := note{Backend: at.Type, Config: config, Workspace: workspace, Dir: at.Dir}
	n.Code, _ = k.s.User.Sign(notePurpose, n.signed(path)...) // without a key the note is written, but never used
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if old, err := readfile.Whole(path); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return atomicfile.WriteMode(path, text, 0o600)
}

// Noted returns the location of a unit's state at the user's last apply. The result is false if
// no valid note exists or if there is no state at the location. home is the directory returned by
// Home, env the environment of the unit, and enc the encryption of its state.
func (k *Keeper) Noted(ctx context.Context, name, dir, home string, env sys.Env, enc *encryption.Config) (Location, bool) {
	if k.s.Throwaway != "" {
		return Location{}, false
	}
	p := Location{Unit: name, Dir: home, Encryption: enc}
	path := filepath.Join(dir, whereName)
	b, err := readfile.Whole(path)
	if err != nil {
		return p, false
	}
	var n note
	if json.Unmarshal(b, &n) != nil || !k.s.User.Signed(n.Code, notePurpose, n.signed(path)...) {
		return p, false
	}
	kind, ds := k.s.Backends.Kind(n.Backend)
	if ds.HasErrors() {
		return p, false
	}
	v, err := ctyjson.Unmarshal(n.Config, kind.Schema.ImpliedType())
	if err != nil {
		return p, false
	}
	p.Config, p.Workspace = backend.Config{Type: n.Backend, Value: v, Dir: n.Dir, Env: env}, n.Workspace
	s, ds := k.Read(ctx, p)
	return p, !ds.HasErrors() && s != nil
}
