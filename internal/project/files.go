package project

import (
	"io/fs"
	"os"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/readfile"
)

// OnDisk are the files of the folder as they lie on disk, by their names relative to it.
func (c *Context) OnDisk() config.FS { return onDisk{c} }

type onDisk struct{ c *Context }

func (f onDisk) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(f.c.Path(name)) }
func (f onDisk) ReadFile(name string) ([]byte, error)       { return readfile.Whole(f.c.Path(name)) }

// Sources are the files on disk as they are now, for steps that share what is loaded from
// them.
func (c *Context) Sources() *engine.Sources { return &engine.Sources{FS: c.OnDisk()} }

// FilesOf are the files of the folder: those that a unit reads once, else those on disk.
func (c *Context) FilesOf() config.FS {
	switch {
	case c.Unit.Files != nil:
		return c.Unit.Files
	case c.Unit.Sources != nil:
		return c.Unit.Sources.FS
	}
	return c.OnDisk()
}

// Root loads the root module alone.
func (c *Context) Root() (*config.Module, diag.List) {
	return config.Load(".", config.Options{FS: c.FilesOf(), Set: c.Set})
}

// SelectWorkspace makes a workspace the selected one.
func (c *Context) SelectWorkspace(name string) diag.List {
	err := os.MkdirAll(c.DataPath(), 0o777)
	if err == nil {
		err = atomicfile.WriteUnlinked(c.DataPath("environment"), []byte(name), 0o644)
	}
	if err != nil {
		return diag.Errorf(nil, "Failed to select workspace", "The selected workspace cannot be recorded: %s.", err)
	}
	return nil
}
