package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// # The files of an estate as a tree of blobs
//
// The files of each directory are one blob. The list of all directories is another blob, whose
// name identifies the whole tree. Directories that have not changed since the last run are
// therefore not sent again.

// A wireFolder contains the files of one directory.
type wireFolder struct {
	Files []wireFile `json:"files"`
}

type wireFile struct {
	Name string `json:"name"`
	Exec bool   `json:"exec,omitempty"`
	Link string `json:"link,omitempty"` // target of a symbolic link, with slashes
	Data []byte `json:"data,omitempty"`
}

// A wireTree contains the names of the blobs of all directories, by path with slashes.
type wireTree map[string]string

// leftOut contains names of directories that are not sent, since they can be created again.
var leftOut = []string{".git", ".terraform", ".terragrunt-cache", ".terrace"}

// skipped reports whether a file is not sent: states, data of earlier runs, and the link of a
// worktree to its repository.
func skipped(name string) bool {
	return name == ".git" || strings.HasSuffix(name, ".tfstate") || strings.Contains(name, ".tfstate.") || strings.HasSuffix(name, ".journal") ||
		name == ".terraform.tfstate.lock.info" || name == ".terrace-state"
}

// PutTree stores the files below a directory in the blob store and returns the name of the tree.
func (b *Blobs) PutTree(ctx context.Context, root string) (string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if p != root && slices.Contains(leftOut, d.Name()) {
			return filepath.SkipDir
		}
		dirs = append(dirs, p)
		return nil
	})
	if err != nil {
		return "", err
	}
	has, err := b.present(ctx, files)
	if err != nil {
		return "", err
	}
	type put struct {
		name string
		err  error
	}
	all := parallel.Map(len(dirs), 8, func(i int) put {
		name, err := b.putFolder(ctx, root, dirs[i], has)
		return put{name, err}
	})
	tree := wireTree{}
	for i, x := range all {
		if x.err != nil {
			return "", x.err
		}
		rel, err := filepath.Rel(root, dirs[i])
		if err != nil {
			return "", err
		}
		tree[filepath.ToSlash(rel)] = x.name
	}
	text, err := json.Marshal(tree)
	if err != nil {
		return "", err
	}
	name, err := b.put(ctx, files, text, has)
	if err != nil {
		return "", err
	}
	note := trees + b.Now().UTC().Format(dayForm) + "/" + name
	if err := b.Objects.PutBlob(ctx, note, []byte("asked for on this day\n")); err != nil {
		return "", fmt.Errorf("what the run needs cannot be put into %s: %w", b.Place, err)
	}
	return name, nil
}

func (b *Blobs) putFolder(ctx context.Context, root, dir string, has func(name string) bool) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var out wireFolder
	for _, e := range entries {
		if e.IsDir() || skipped(e.Name()) {
			continue
		}
		f := wireFile{Name: e.Name()}
		p := filepath.Join(dir, e.Name())
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			if err != nil {
				return "", err
			}
			if in, err := filepath.Rel(root, filepath.Join(dir, to)); filepath.IsAbs(to) || err != nil || !filepath.IsLocal(in) {
				return "", fmt.Errorf("%s is a link to %s, outside of %s, which workers do not have", p, to, root)
			}
			f.Link = filepath.ToSlash(to)
		case e.Type().IsRegular():
			info, err := e.Info()
			if err != nil {
				return "", err
			}
			f.Exec = info.Mode()&0o100 != 0
			if f.Data, err = readfile.Large(p); err != nil {
				return "", err
			}
		default: // sockets and other special files
			continue
		}
		out.Files = append(out.Files, f)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return "", err
	}
	return b.put(ctx, files, text, has)
}

// GetTree writes the files of a tree into a directory, which must not exist. If another process
// does the same concurrently, the directory of one of them is used.
func (b *Blobs) GetTree(ctx context.Context, name, dir string) error {
	text, err := b.get(ctx, files, name)
	if err != nil {
		return err
	}
	var tree wireTree
	if err := json.Unmarshal(text, &tree); err != nil {
		return fmt.Errorf("the list of the run's files cannot be read: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(filepath.Dir(dir), ".draft-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft)
	root, err := os.OpenRoot(draft)
	if err != nil {
		return err
	}
	defer root.Close()
	var names []string
	for rel := range tree {
		names = append(names, rel)
	}
	slices.Sort(names)
	for _, rel := range names {
		if err := root.MkdirAll(filepath.FromSlash(rel), 0o755); err != nil {
			return err
		}
	}
	for _, err := range parallel.Map(len(names), 8, func(i int) error { return b.getFolder(ctx, root, names[i], tree[names[i]]) }) {
		if err != nil {
			return err
		}
	}
	if err := os.Rename(draft, dir); err != nil {
		if info, gone := os.Stat(dir); gone == nil && info.IsDir() {
			return nil
		}
		return err
	}
	return nil
}

func (b *Blobs) getFolder(ctx context.Context, root *os.Root, rel, name string) error {
	text, err := b.get(ctx, files, name)
	if err != nil {
		return err
	}
	var folder wireFolder
	if err := json.Unmarshal(text, &folder); err != nil {
		return fmt.Errorf("the files of %s cannot be read: %w", rel, err)
	}
	for _, f := range folder.Files {
		if f.Name != path.Base(f.Name) || f.Name == "." || f.Name == ".." {
			return errors.New("the run's files have a name that is a path")
		}
		at := filepath.FromSlash(path.Join(rel, f.Name))
		if f.Link != "" {
			err = root.Symlink(filepath.FromSlash(f.Link), at)
		} else {
			mode := fs.FileMode(0o644)
			if f.Exec {
				mode = 0o755
			}
			err = root.WriteFile(at, f.Data, mode)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
