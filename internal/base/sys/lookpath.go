package sys

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// LookPath finds a program like a shell in the directory dir with the environment env: a
// name with a slash is relative to dir, any other name is looked up in PATH. It skips
// empty and relative entries of PATH: a program must not come from a downloaded directory.
func LookPath(name, dir string, env Env) (string, error) {
	if name == "" {
		return "", fmt.Errorf("no program was named")
	}
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		return findExecutable(path, env)
	}
	for _, folder := range filepath.SplitList(env.Get("PATH")) {
		if !filepath.IsAbs(folder) {
			continue
		}
		if path, err := findExecutable(filepath.Join(folder, name), env); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%q: %w", name, exec.ErrNotFound)
}

func findExecutable(path string, env Env) (string, error) {
	var last error
	for _, ext := range suffixes(path, env) {
		info, err := os.Stat(path + ext)
		switch {
		case err != nil:
			last = err
		case info.IsDir() || !executable(info):
			last = fmt.Errorf("%s: %w", path+ext, fs.ErrPermission)
		default:
			return path + ext, nil
		}
	}
	return "", last
}
