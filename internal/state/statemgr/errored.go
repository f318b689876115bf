package statemgr

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
)

// erroredName is the file name that OpenTofu and Terraform use, too. States that a migration
// replaces have a name of their own.
const (
	erroredName  = "errored.tfstate"
	replacedName = "replaced.tfstate"
)

// PushedSuffix is appended to the name of a file with a saved state when the state was pushed.
const PushedSuffix = ".pushed"

// IsErrored reports whether a file name without directories is one of those that a state gets which
// cannot be written to its store: errored.tfstate or, with a number, errored.1.tfstate.
func IsErrored(name string) bool {
	if name == erroredName {
		return true
	}
	number, begins := strings.CutPrefix(name, "errored.")
	number, ends := strings.CutSuffix(number, ".tfstate")
	_, err := strconv.ParseUint(number, 10, 64)
	return begins && ends && err == nil
}

// writeErrored saves a whole state that could not be written to the store as errored.tfstate in
// o.Dir. If that file exists, the name gets a number. If it succeeds, it returns a warning with
// the file and what to do. If it fails, the caller must pass the state to the user another way,
// on standard output as a last resort. writeConflict means that another process may have
// written the state, and that its changes must not be overwritten.
func writeErrored(o Options, st *state.State, writeConflict bool) (path string, ds diag.List) {
	if path, ds = save(o, erroredName, st); ds.HasErrors() {
		return "", ds
	}
	if writeConflict {
		return path, diag.Warnf(diag.CodeStateSaved, nil, "State saved to another file", "The state was saved to %s instead. Do not push it as it is: that would undo what somebody else has written in the meantime. The next command here brings in what the journal holds, or says what it cannot bring in; the file is there to compare.", path)
	}
	return path, diag.Warnf(diag.CodeStateSaved, nil, "State saved to another file", "The state was saved to %s instead. Once the state can be written again, put it there with \"state push %s\". Until then other runs do not know of what this one did.", path, path)
}

// writeApart is like writeErrored for a state with only the objects in the journal of another
// state. The user must not push it.
func writeApart(o Options, st *state.State) (path string, ds diag.List) {
	if path, ds = save(o, erroredName, st); ds.HasErrors() {
		return "", ds
	}
	return path, diag.Warnf(diag.CodeStateObjectsSaved, nil, "Objects saved to another file", "What the journal knew was saved to %s. Compare it with the state, import what the state lacks, and do not push it: it holds these objects alone.", path)
}

// KeepReplaced saves a state that is about to be replaced by another one with fewer objects.
func KeepReplaced(o Options, st *state.State) diag.List {
	path, ds := save(o, replacedName, st)
	if ds.HasErrors() {
		return ds
	}
	return diag.Warnf(diag.CodeStateSaved, nil, "State saved to another file", "The state that was replaced has objects that the new one does not have. It was saved to %s before. Import from there what is to be managed further, and remove the file.", path)
}

func save(o Options, name string, st *state.State) (path string, ds diag.List) {
	path = filepath.Join(o.Dir, name)
	text, err := store.FileText(o.Sealer, st)
	for n := 1; err == nil; n++ {
		if err = exclusive(path, text); !errors.Is(err, fs.ErrExist) {
			break
		}
		err = nil
		path = filepath.Join(o.Dir, strings.Replace(name, ".", fmt.Sprintf(".%d.", n), 1))
	}
	if err != nil {
		return "", diag.Errorf(diag.CodeStateFile, nil, "Failed to save state", "The state cannot be written to %s either: %s.", path, plain(err))
	}
	return path, nil
}

// plain returns an error of the operating system without the path, which the surrounding
// message contains.
func plain(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// exclusive creates a file that must not exist. It is created completely or not at all.
func exclusive(path string, content func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.new") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err = errors.Join(content(f), f.Sync(), f.Close()); err != nil {
		return err
	}
	err = os.Link(f.Name(), path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // some file systems do not support links
		if _, there := os.Lstat(path); there == nil {
			return fs.ErrExist
		}
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil // if directories cannot be opened, they need not be synced
	}
	_ = d.Sync()
	return d.Close()
}
