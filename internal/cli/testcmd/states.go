package testcmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/testrun"
	"github.com/terrace-iac/terrace/internal/testrun/testfile"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/zclconf/go-cty/cty"
)

// The states of runs that create real objects are stored while the objects exist: in the backend of
// the run, or in the directory "tests" of the data directory, with a journal. After a crash, the next
// test command merges the journals and names the states that remain.

// held is a stored state of a test.
type held struct {
	*workdir.OpenState
	file string // path of a state without a backend; "" means that it is in a backend
}

// Release implements testrun.Held.
func (h *held) Release(discard bool) diag.List {
	ds := h.OpenState.Release()
	if h.file == "" || !discard || ds.HasErrors() {
		return ds
	}
	for _, name := range []string{h.file, h.file + ".backup"} {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			return append(ds, diag.Warnf(diag.CodeFilesWrite, nil, "Failed to delete a state", "The state of a test, which has no objects any more, cannot be deleted: %s.", err)...)
		}
	}
	_ = os.Remove(filepath.Dir(h.file)) // fails if other states are there
	return ds
}

// Take implements testrun.Program.
func (x *suiteProgram) Take(ctx context.Context, f *testfile.File, r *testfile.Run, value func(hcl.Expression) (cty.Value, diag.List)) (testrun.Held, diag.List) {
	enc, ds := testEncryption(ctx, x.Call, x.options)
	if ds.HasErrors() {
		return nil, ds
	}
	what := "test " + f.Name + "/" + r.Name
	if r.Backend == nil {
		dir := x.DataPath("tests")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, diag.Errorf(diag.CodeFilesWrite, &r.At, "Failed to create a directory", "The state of this run cannot be stored: %s.", err)
		}
		file := filepath.Join(dir, stateName(f, r)+"."+x.Mark().ID+".tfstate")
		open, more := takeFile(ctx, x.Call, enc, file, what)
		if ds = append(ds, more...); open == nil {
			return nil, ds
		}
		return &held{open, file}, ds
	}
	b, more := openBackend(ctx, x.Call, enc, r.Backend, value)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds.Under(&r.Backend.At)
	}
	st, more := x.OpenStore(ctx, b, store.Default, workdir.StateFiles{})
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds.Under(&r.Backend.At)
	}
	open, more := workdir.Take(ctx, x.PlaceOf(b, st, store.Default).Locked(ctx, lockFor(x.Call, what)), nil)
	if ds = append(ds, more...); open == nil {
		return nil, ds.Under(&r.Backend.At)
	}
	return &held{OpenState: open}, ds
}

func lockFor(c *command.Call, what string) workdir.Lock {
	return workdir.Lock{Operation: what, Who: c.Who(), Run: c.Mark(), Now: c.Now()}
}

// testEncryption returns the encryption of states and plans of the module under test.
func testEncryption(ctx context.Context, c *command.Call, o *options) (*encryption.Config, diag.List) {
	root, ds := c.Root()
	if ds.HasErrors() {
		return nil, ds
	}
	if root.Encryption == nil {
		return c.EnvironmentEncryption()
	}
	p, ds := workdir.Load(ctx, c.Directory, workdir.LoadOptions{Vars: o.vars, Partial: true, StateOnly: true})
	if p == nil {
		return nil, ds
	}
	defer p.Close()
	return p.Encryption(ctx)
}

// openBackend opens the backend of a run.
func openBackend(ctx context.Context, c *command.Call, enc *encryption.Config, b *testfile.Backend, value func(hcl.Expression) (cty.Value, diag.List)) (*workdir.OpenedBackend, diag.List) {
	from := c.Backend()
	k, ds := from.Backends.Kind(b.Type)
	if ds.HasErrors() {
		return nil, ds
	}
	if k.Settings {
		return nil, diag.Errorf(diag.CodeTestFile, nil, "Unsupported backend", "The backend %q cannot contain the state of a test.", b.Type)
	}
	v, ds := configure.Block(k.Schema, b.Body, value)
	if ds.HasErrors() {
		return nil, ds
	}
	cfg, more := from.Of(b.Type, v)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	opened, more := workdir.OpenBackend(ctx, c.Directory, cfg, b, enc)
	return opened, append(ds, more...)
}

// takeFile takes the state in a file.
func takeFile(ctx context.Context, c *command.Call, enc *encryption.Config, file, what string) (*workdir.OpenState, diag.List) {
	o, ds := fileOptions(ctx, c, enc, file)
	if ds.HasErrors() {
		return nil, ds
	}
	open, more := workdir.Take(ctx, o.Locked(ctx, lockFor(c, what)), nil)
	return open, append(ds, more...)
}

// fileOptions returns the location of the state in a file.
func fileOptions(ctx context.Context, c *command.Call, enc *encryption.Config, file string) (workdir.StatePlace, diag.List) {
	b, ds := c.LocalFile(ctx, enc)
	if ds.HasErrors() {
		return workdir.StatePlace{}, ds
	}
	st, more := c.OpenStore(ctx, b, store.Default, workdir.StateFiles{Path: file, Backup: "-"})
	return c.PlaceOf(b, st, store.Default), append(ds, more...)
}

// stateName returns the readable part of the name of a state's file.
func stateName(f *testfile.File, r *testfile.Run) string {
	name := f.Name
	for _, end := range []string{".hcl", ".json", ".tftest", ".tofutest"} {
		name = strings.TrimSuffix(name, end)
	}
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			return c
		}
		return '_'
	}, name+"_"+r.Name)
}

// leftFiles returns the states of earlier tests on disk, sorted, also those that are only in a
// journal.
func leftFiles(c *command.Call) []string {
	files, _ := filepath.Glob(filepath.Join(c.DataPath("tests"), "*.tfstate"))
	journals, _ := filepath.Glob(filepath.Join(c.DataPath("tests"), ".*.tfstate.journal"))
	for _, j := range journals { // of a state that was not written yet
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(j), "."), ".journal")
		files = append(files, filepath.Join(filepath.Dir(j), name))
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// remaining warns about the states of earlier tests that did not end. It skips states that another
// process uses.
func remaining(ctx context.Context, c *command.Call, o *options) diag.List {
	ds := inspect(ctx, c, o, leftFiles(c), "test", func(shown, objects string) diag.List {
		return diag.Warnf(diag.CodeTestRemaining, nil, "Objects of an earlier test remain", "A test did not destroy %s. The state is %s. To destroy what tests have left, run \"%s test cleanup\" with the variables of the test.", objects, shown, view.Program)
	})
	return slices.DeleteFunc(ds, func(m *diag.Message) bool { return m.Code == diag.CodeStateLocked })
}

// inspect merges the journals of states on disk, and deletes states without objects. For each other
// state, it adds the messages of report, which gets the file and the objects as texts.
func inspect(ctx context.Context, c *command.Call, o *options, files []string, what string, report func(shown, objects string) diag.List) diag.List {
	if len(files) == 0 {
		return nil
	}
	enc, ds := testEncryption(ctx, c, o)
	if ds.HasErrors() {
		return ds
	}
	for _, file := range files {
		open, more := takeFile(ctx, c, enc, file, what)
		ds = append(ds, more...)
		if open == nil {
			continue
		}
		var names []string
		if s := open.Current(); s != nil {
			for obj := range s.Objects() {
				names = append(names, obj.Instance.String())
			}
		}
		ds = append(ds, (&held{open, file}).Release(len(names) == 0)...)
		if len(names) == 0 {
			continue
		}
		shown, _ := filepath.Rel(c.Dir, file)
		list := strings.Join(names[:min(len(names), 10)], ", ")
		if len(names) > 10 {
			list = fmt.Sprintf("%s and %d more", list, len(names)-10)
		}
		ds = append(ds, report(filepath.ToSlash(shown), list)...)
	}
	return ds
}

var _ testrun.Held = (*held)(nil)
