package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// guides are the files that a program for this machine writes about itself. They are the same
// for all platforms.
type guides struct {
	pages       []string          // the paths of the man pages
	completions map[string]string // for each shell, the path of its completion script
}

// guides has terrace write its man pages and completion scripts to a directory in work.
func (r *release) guides(work string) (guides, error) {
	dir := r.programs(host())
	if !slices.Contains(r.targets, host()) {
		dir = filepath.Join(work, "host")
		if err := r.compile(host(), dir); err != nil {
			return guides{}, err
		}
	}
	terrace := filepath.Join(dir, host().file("terrace"))
	pages := filepath.Join(work, "man")
	if b, err := exec.Command(terrace, "man", pages).CombinedOutput(); err != nil {
		return guides{}, fmt.Errorf("terrace man: %w\n%s", err, b)
	}
	g := guides{completions: map[string]string{}}
	var err error
	if g.pages, err = filepath.Glob(filepath.Join(pages, "*.1")); err != nil {
		return guides{}, err
	}
	for _, shell := range []string{"bash", "fish", "zsh"} {
		b, err := exec.Command(terrace, "completion", shell).Output()
		if err != nil {
			return guides{}, fmt.Errorf("terrace completion %s: %w", shell, err)
		}
		g.completions[shell] = filepath.Join(work, shell)
		if err := os.WriteFile(g.completions[shell], b, 0o666); err != nil {
			return guides{}, err
		}
	}
	return g, nil
}
