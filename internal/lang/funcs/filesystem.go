package funcs

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/terrace-iac/terrace/internal/base/readfile"
)

// filesystem returns the functions for files and paths.
func filesystem(s *scope) family {
	fs := family{
		"abspath": onStrings("Makes a path absolute; it starts from the working directory.", cty.String, s.absPath, "path"),
		"basename": onStrings("Returns the last part of a path.", cty.String, func(c call) (cty.Value, error) {
			return cty.StringVal(filepath.Base(c.text(0))), nil
		}, "path"),
		"dirname": onStrings("Returns a path without its last part.", cty.String, func(c call) (cty.Value, error) {
			return cty.StringVal(filepath.Dir(c.text(0))), nil
		}, "path"),
		"file": onStrings("Returns the contents of a file, which must be UTF-8.", cty.String, func(c call) (cty.Value, error) {
			text, err := s.readText(c, 0)
			return cty.StringVal(text), err
		}, "path"),
		"filebase64": s.fileFunc("contents, in Base64,", base64.StdEncoding.EncodeToString),
		"fileexists": onStrings("Tells whether a file exists at a path.", cty.Bool, s.fileExists, "path"),
		"fileset":    onStrings("Returns the paths, relative to a directory, of the regular files in it that match a pattern.", cty.Set(cty.String), s.fileSet, "path", "pattern"),
		"pathexpand": onStrings("Replaces a ~ at the beginning of a path by the home directory of the user.", cty.String, s.pathExpand, "path"),

		"filebase64sha256": s.fileFunc("SHA-256 hash, in Base64,", base64SHA256),
		"filebase64sha512": s.fileFunc("SHA-512 hash, in Base64,", base64SHA512),
		"filemd5":          s.fileFunc("MD5 hash, in hexadecimal digits,", hexMD5),
		"filesha1":         s.fileFunc("SHA-1 hash, in hexadecimal digits,", hexSHA1),
		"filesha256":       s.fileFunc("SHA-256 hash, in hexadecimal digits,", hexSHA256),
		"filesha512":       s.fileFunc("SHA-512 hash, in hexadecimal digits,", hexSHA512),
	}
	both := make(family, 2*len(fs))
	addBoth(both, fs)
	return both
}

// fileFunc returns a function that applies d to the content of a file.
func (s *scope) fileFunc(what string, d digest) function.Function {
	return onStrings("Returns the "+what+" of a file.", cty.String, func(c call) (cty.Value, error) {
		b, err := s.read(c, 0)
		if err != nil {
			return cty.NilVal, err
		}
		return cty.StringVal(d(b)), nil
	}, "path")
}

// at returns a path relative to the working directory of the process, or absolute.
func (s *scope) at(path string) string { return s.config.at(path) }

func (c *Config) at(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(c.BaseDir, path)
}

// inFolder returns the name in config.Folder of a path inside of it.
func (s *scope) inFolder(path string) (name string, ok bool) { return s.config.inFolder(path) }

func (c *Config) inFolder(path string) (name string, ok bool) {
	if c.Folder == nil {
		return "", false
	}
	rel, err := filepath.Rel(c.BaseDir, path)
	if err != nil {
		return "", false
	}
	name = filepath.ToSlash(rel)
	rest := name
	for range c.Above {
		if rest == ".." {
			return name, true
		}
		rest = strings.TrimPrefix(rest, "../")
	}
	return name, filepath.IsLocal(rest)
}

// Read reads a file like the functions do. path is relative to BaseDir.
func (c *Config) Read(path string) ([]byte, error) {
	path = c.at(path)
	if name, ok := c.inFolder(path); ok {
		b, err := fs.ReadFile(c.Folder, name)
		if !c.OnDisk || !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
	}
	if c.ReadFile != nil {
		return c.ReadFile(path)
	}
	return readfile.Whole(path)
}

// readFile reads a file by a path that at returned.
func (s *scope) readFile(path string) ([]byte, error) { return s.config.Read(path) }

func (s *scope) stat(path string) (fs.FileInfo, error) {
	if name, ok := s.inFolder(path); ok {
		info, err := fs.Stat(s.config.Folder, name)
		if !s.config.OnDisk || !errors.Is(err, fs.ErrNotExist) {
			return info, err
		}
	}
	if s.config.Stat != nil {
		return s.config.Stat(path)
	}
	return os.Stat(path)
}

// read reads the file in argument i of c.
func (s *scope) read(c call, i int) ([]byte, error) {
	expanded, err := s.expand(c.text(i))
	if err != nil {
		return nil, function.NewArgErrorf(i, "failed to expand ~: %s", err)
	}
	b, err := s.readFile(s.at(expanded))
	switch {
	case err == nil:
		return b, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, function.NewArgErrorf(i, "no file exists at %s; this function works only with files that are there before anything is planned, so if a resource in this configuration creates this file, take the result from an attribute of that resource instead", c.quoted(i))
	}
	return nil, function.NewArgErrorf(i, "failed to read file %s: %s", c.quoted(i), reason(err))
}

// reason returns the operating system's error about a path, without the path.
func reason(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// readText reads the file in argument i of c as text.
func (s *scope) readText(c call, i int) (string, error) {
	b, err := s.read(c, i)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", function.NewArgErrorf(i, "contents of %s are not valid UTF-8; take filebase64 for the bytes of such a file, or filesha256 and the like for a hash of them", c.quoted(i))
	}
	return string(b), nil
}

// expand replaces ~ at the beginning of path.
func (s *scope) expand(path string) (string, error) {
	if !strings.HasPrefix(path, "~") {
		return path, nil
	}
	if len(path) > 1 && path[1] != '/' && path[1] != filepath.Separator {
		return "", errors.New("cannot expand user-specific home dir")
	}
	if s.config.Home == nil {
		return "", errors.New("the home directory is not known here")
	}
	home, err := s.config.Home()
	if err != nil {
		return "", fmt.Errorf("the home directory is not known: %w", err)
	}
	return filepath.Join(home, path[1:]), nil
}

func (s *scope) pathExpand(c call) (cty.Value, error) {
	expanded, err := s.expand(c.text(0))
	if err != nil {
		return cty.NilVal, function.NewArgError(0, err)
	}
	return cty.StringVal(expanded), nil
}

func (s *scope) absPath(c call) (cty.Value, error) {
	abs, err := filepath.Abs(s.at(c.text(0)))
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(0, "the working directory is not known: %s", reason(err))
	}
	return cty.StringVal(filepath.ToSlash(abs)), nil
}

func (s *scope) fileExists(c call) (cty.Value, error) {
	expanded, err := s.expand(c.text(0))
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(0, "failed to expand ~: %s", err)
	}
	info, err := s.stat(s.at(expanded))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return cty.False, nil
	case err != nil:
		return cty.NilVal, function.NewArgErrorf(0, "failed to stat %s: %s", c.quoted(0), reason(err))
	case info.Mode().IsRegular():
		return cty.True, nil
	}
	return cty.NilVal, function.NewArgErrorf(0, "%s is %s", c.quoted(0), notRegular(info.Mode()))
}

func notRegular(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory, not a file"
	case mode&fs.ModeDevice != 0:
		return "a device node, not a regular file"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe, not a regular file"
	case mode&fs.ModeSocket != 0:
		return "a unix domain socket, not a regular file"
	}
	return "not a regular file"
}

// fileSet returns paths with forward slashes. The pattern may contain `..` to leave the
// directory; symbolic links are followed. A directory that does not exist is empty. Files that
// exist only during an apply are omitted, so that the result is the same in plan and apply.
func (s *scope) fileSet(c call) (cty.Value, error) {
	dir := s.at(c.text(0))
	pattern := path.Clean(strings.TrimLeft(filepath.ToSlash(c.text(1)), "/"))
	up := ""
	for strings.HasPrefix(pattern, "../") {
		pattern = pattern[3:]
		up += "../"
		dir = filepath.Join(dir, "..")
	}
	if pattern == "" || pattern == ".." {
		pattern = "."
	}
	var matches []string
	errMany := errors.New("more than a million files match")
	base, rest := doublestar.SplitPattern(pattern)
	files := &walked{FS: s.filesBelow(filepath.Join(dir, filepath.FromSlash(base)))}
	if strings.Contains(rest, "**") {
		files.seen = map[string]fs.FileInfo{}
	}
	err := doublestar.GlobWalk(files, rest, func(match string, _ fs.DirEntry) error {
		if len(matches) > maxElements {
			return errMany
		}
		matches = append(matches, path.Join(base, match))
		return nil
	})
	if files.loop != "" {
		return cty.NilVal, function.NewArgErrorf(1, "%q leads by a link back to a directory that it lies in, so that ** has no end there; take a pattern that leads past it", path.Join(up, base, files.loop))
	}
	if err != nil {
		return cty.NilVal, function.NewArgErrorf(1, "failed to glob pattern %s: %s", c.quoted(1), err)
	}
	var found []cty.Value
	for _, match := range matches {
		if s.ofRun(dir, match) {
			continue
		}
		info, err := s.stat(filepath.Join(dir, filepath.FromSlash(match)))
		if err == nil && info.Mode().IsRegular() {
			found = append(found, cty.StringVal(up+match))
		}
	}
	if len(found) == 0 {
		return cty.SetValEmpty(cty.String), nil
	}
	return cty.SetVal(found), nil
}

// ofRun reports whether a file exists only during an apply: its journal with the tail, and the
// reserved space for the next state. They are next to the state file, or for other stores in
// the working directory.
func (s *scope) ofRun(dir, name string) bool {
	hidden, ok := strings.CutPrefix(path.Base(name), ".")
	if !ok {
		return false
	}
	if at := strings.LastIndex(hidden, ".journal-tail"); at >= 0 {
		hidden = hidden[:at] + ".journal"
	}
	of, journal := strings.CutSuffix(hidden, ".journal")
	of, room := strings.CutSuffix(of, ".new")
	of, kept := strings.CutSuffix(of, ".lock.keep")
	if !journal && !room && !kept {
		return false
	}
	if strings.HasPrefix(of, "terraform.") || strings.Contains(of, ".tfstate") {
		return true
	}
	_, err := s.stat(filepath.Join(dir, filepath.FromSlash(path.Dir(name)), of))
	return err == nil
}

// filesBelow returns the files below a directory.
func (s *scope) filesBelow(dir string) fs.FS {
	if name, ok := s.inFolder(dir); ok {
		return subFolder{s.config.Folder, name}
	}
	if s.config.Stat != nil && s.config.ReadDir != nil {
		return readfile.DirFS{Dir: dir, ReadContent: s.readFile, Status: s.config.Stat, List: s.config.ReadDir}
	}
	return os.DirFS(dir)
}

// subFolder is the part of a file system below one of its directories, which may be above its root.
type subFolder struct {
	fs.FS
	dir string
}

// Open implements [fs.FS].
func (b subFolder) Open(name string) (fs.File, error) { return b.FS.Open(path.Join(b.dir, name)) }

// ReadDir implements [fs.ReadDirFS].
func (b subFolder) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(b.FS, path.Join(b.dir, name))
}

// walked is the file system below a directory. It follows links, except those that lead back to
// a parent.
type walked struct {
	fs.FS
	seen map[string]fs.FileInfo // the directories that were read; nil disables the check
	loop string                 // a directory that contains itself through a link
}

// Stat implements [fs.StatFS].
func (w *walked) Stat(name string) (fs.FileInfo, error) { return fs.Stat(w.FS, name) }

// ReadDir implements [fs.ReadDirFS]. A link back to a parent is an empty directory.
func (w *walked) ReadDir(name string) ([]fs.DirEntry, error) {
	if w.seen == nil {
		return fs.ReadDir(w.FS, name)
	}
	info, err := fs.Stat(w.FS, name)
	if err != nil {
		return nil, err
	}
	w.seen[name] = info
	for up := name; up != "."; {
		up = path.Dir(up)
		if above, ok := w.seen[up]; ok && readfile.SameFile(above, info) {
			w.loop = name
			return nil, nil
		}
	}
	return fs.ReadDir(w.FS, name)
}
