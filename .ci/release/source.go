package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// A source is the commit that a release is built from.
type source struct {
	module     string    // the path of the Go module
	repository string    // the URL of the repository, which the path of the module names
	tag        string    // such as "v0.2.0"
	version    string    // the tag without "v"
	commit     string    // 40 hexadecimal digits
	time       time.Time // of the commit, in UTC; the time of all files of the release
}

// readSource returns the commit that is checked out in root. A version of "" means the tag of
// the commit. It fails if files differ from the commit, since the provenance of the release
// would then be wrong.
func readSource(root, version string) (source, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return source{}, err
	}
	s := source{module: modfile.ModulePath(text)}
	s.repository = "https://" + s.module
	changes, err := git(root, "status", "--porcelain")
	if err != nil {
		return source{}, err
	}
	if changes != "" {
		return source{}, fmt.Errorf("the checkout has changes; commit or remove them:\n%s", changes)
	}
	if s.commit, err = git(root, "rev-parse", "HEAD"); err != nil {
		return source{}, err
	}
	when, err := git(root, "log", "-1", "--format=%cI")
	if err != nil {
		return source{}, err
	}
	if s.time, err = time.Parse(time.RFC3339, when); err != nil {
		return source{}, err
	}
	s.time = s.time.UTC()
	if s.tag = version; s.tag == "" {
		if s.tag, err = git(root, "describe", "--tags", "--exact-match", "--match", "v*"); err != nil {
			s.tag = "v0.0.0-g" + s.commit[:12]
		}
	}
	if !semver.IsValid(s.tag) || semver.Canonical(s.tag) != s.tag {
		return source{}, fmt.Errorf("the version %q is not of the form v1.2.3 or v1.2.3-rc.1", s.tag)
	}
	s.version = strings.TrimPrefix(s.tag, "v")
	return s, nil
}

// git returns the output of a git command in root, without the last line end.
func git(root string, args ...string) (string, error) {
	c := exec.Command("git", args...)
	c.Dir = root
	b, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, exit.Stderr)
	}
	return strings.TrimSuffix(string(b), "\n"), err
}
