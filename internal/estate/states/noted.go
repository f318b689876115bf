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

// whereName is the file in a working directory that notes where the state of the unit was
// when something was applied last, where that depends on outputs.
const whereName = ".terrace-state"

// A note is what is in it.
type note struct {
	Backend   string          `json:"backend"`
	Config    json.RawMessage `json:"config"`
	Workspace string          `json:"workspace"`
	Dir       string          `json:"dir"`
	// Code proves that the user wrote the note in this place: a checkout can bring a file of
	// its name, which would lead to another state.
	Code string `json:"code,omitempty"`
}

// signed are the texts that the code of a note is computed of.
func (n note) signed(path string) []string {
	return []string{path, n.Backend, string(n.Config), n.Workspace, n.Dir}
}

const notePurpose = "place of a state"

// Note notes in the working directory where the state of a unit is.
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
	n.Code, _ = k.s.User.Sign(notePurpose, n.signed(path)...) // without a key the note is of no use
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

// Noted is where the state of a unit was when the user applied something last. A state that is
// not there any more says nothing. home is as Home tells it; env is the environment of the
// unit, and enc how its state is encrypted.
func (k *Keeper) Noted(ctx context.Context, name, dir, home string, env sys.Env, enc *encryption.Config) (Place, bool) {
	if k.s.Throwaway != "" {
		return Place{}, false
	}
	p := Place{Unit: name, Dir: home, Encryption: enc}
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
