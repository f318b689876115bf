package lsp

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
)

// skipped contains the names of directories that a copy of the working tree does not need.
var skipped = []string{".git", ".terragrunt-cache", "node_modules"}

// affected runs the command affected on a copy of the working tree with the texts of buffers, against
// the last commit. It returns the text that the command prints. The working tree is not changed.
func affected(ctx context.Context, c *command.Call, run func(context.Context, sys.Command) error, dir string, buffers map[string][]byte) (string, error) {
	repository := sys.Nearest(dir, ".git")
	if repository == "" {
		return "", fmt.Errorf("%s is not part of a git repository", dir)
	}
	top := filepath.Dir(repository)
	temp, err := os.MkdirTemp("", "terrace-lsp")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temp)
	if err := copyTree(ctx, top, temp, buffers); err != nil {
		return "", err
	}
	link := []byte("gitdir: " + repository + "\n")
	if info, err := os.Stat(repository); err == nil && !info.IsDir() { // a worktree of git
		if link, err = readfile.Whole(repository); err != nil {
			return "", err
		}
	}
	if err := os.WriteFile(filepath.Join(temp, ".git"), link, 0o600); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		return "", err
	}
	program, err := c.System.Executable()
	if err != nil {
		return "", err
	}
	var out, errs bytes.Buffer
	err = run(ctx, sys.Command{Path: program, Args: []string{"affected", "-no-color", "HEAD"}, Dir: filepath.Join(temp, rel), Env: c.Env.With("GIT_OPTIONAL_LOCKS=0"), Stdout: &out, Stderr: &errs})
	if err != nil && out.Len() > 0 && ctx.Err() == nil { // some units have errors; the others were compared
		return out.String() + "\n" + errs.String(), nil
	}
	if err != nil {
		return "", fmt.Errorf("the comparison failed: %w\n%s", err, errs.String())
	}
	return out.String(), nil
}

// copyTree copies the regular files below a directory, with other texts for some paths, which may be
// those of files that do not exist.
func copyTree(ctx context.Context, from, to string, texts map[string][]byte) error {
	write := func(path string, text []byte) error {
		rel, err := filepath.Rel(from, path)
		if err != nil || !filepath.IsLocal(rel) {
			return nil // a document of another repository
		}
		target := filepath.Join(to, rel)
		if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case path != from && slices.Contains(skipped, d.Name()):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !d.Type().IsRegular() || texts[path] != nil:
			return nil
		case strings.Contains(filepath.ToSlash(path), "/.terraform/providers/"):
			return nil
		}
		text, err := readfile.Whole(path)
		if err != nil {
			return err
		}
		return write(path, text)
	})
	for path, text := range texts {
		if err == nil {
			err = write(path, text)
		}
	}
	return err
}
