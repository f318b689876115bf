// Package record reads and writes the file in the data directory in which init records the
// backend of a working directory, in the form of OpenTofu and Terraform.
//
// Main type: Record. The one rule: the file contains only properties that OpenTofu and Terraform
// know, since they reject the file otherwise.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Name is the name of the file in the data directory.
const Name = "terraform.tfstate"

const version = 3

// A Record is the backend that init configured.
type Record struct {
	Type   string          `json:"type"`
	Config json.RawMessage `json:"config"` // from block, options and answers, without environment and defaults
	Hash   uint64          `json:"hash"`   // hash of the block in the files only
}

type document struct {
	Version int     `json:"version"`
	Backend *Record `json:"backend,omitempty"`
}

// Of returns the record of a configuration. written is the configuration in the block only.
func Of(c backend.Config, written cty.Value) (*Record, error) {
	text, err := ctyjson.Marshal(c.Value, c.Value.Type())
	if err != nil {
		return nil, err
	}
	return &Record{Type: c.Type, Config: text, Hash: Hash(c.Type, written)}, nil
}

// Hash returns the number that OpenTofu and Terraform compute for a block.
func Hash(kind string, written cty.Value) uint64 {
	return uint64(cty.TupleVal([]cty.Value{cty.StringVal(kind), written}).Hash())
}

// Value returns the configuration in the record. Missing arguments are null. An argument that
// the kind does not have is an error.
func (r *Record) Value(k backend.Kind) (cty.Value, error) {
	ty := k.Schema.ImpliedType()
	given := map[string]json.RawMessage{}
	if len(r.Config) > 0 && !bytes.Equal(bytes.TrimSpace(r.Config), []byte("null")) {
		if err := json.Unmarshal(r.Config, &given); err != nil {
			return cty.NilVal, errors.New("its configuration is not an object")
		}
	}
	vals := make(map[string]cty.Value, len(ty.AttributeTypes()))
	for name, at := range ty.AttributeTypes() {
		vals[name] = cty.NullVal(at)
		text, ok := given[name]
		if !ok {
			if nb := k.Schema.Blocks[name]; nb != nil {
				vals[name] = nb.EmptyValue()
			}
			continue
		}
		v, err := ctyjson.Unmarshal(text, at)
		if err != nil {
			return cty.NilVal, fmt.Errorf("its argument %q is not of the right type", name)
		}
		vals[name] = v
		delete(given, name)
	}
	for name := range given {
		return cty.NilVal, fmt.Errorf("it has an argument %q, which the backend %q does not know", name, k.Name)
	}
	return cty.ObjectVal(vals), nil
}

// Read reads the file. It returns nil if there is no file, or no backend in it.
func Read(dataDir string) (*Record, error) {
	src, err := readfile.Whole(filepath.Join(dataDir, Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var doc document
	if err := json.Unmarshal(src, &doc); err != nil {
		return nil, errors.New("it is not JSON of the right form")
	}
	if doc.Version != version {
		return nil, fmt.Errorf("it has the version %d, and %d is the only one that is known", doc.Version, version)
	}
	if doc.Backend == nil || doc.Backend.Type == "" {
		return nil, nil
	}
	return doc.Backend, nil
}

// Write writes the file. If r is nil, it removes the backend from an existing file.
func Write(dataDir string, r *Record) error {
	path := filepath.Join(dataDir, Name)
	if r == nil {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	src, err := json.MarshalIndent(document{version, r}, "", "    ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dataDir, 0o777); err != nil {
		return err
	}
	return atomicfile.WriteUnlinked(path, append(src, '\n'), 0o644)
}
