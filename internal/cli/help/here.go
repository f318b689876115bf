package help

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
)

// Here tells where one is, and the commands that one starts with there. It reads the
// names of files alone, and a state that lies in the folder, so it is quick and asks
// nobody.
func Here(ctx context.Context, c *command.Call) string {
	var b strings.Builder
	root, _ := config.Files(c.Dir, config.Options{})
	files := 0
	for _, f := range root {
		if f.Role == config.RoleBase || f.Role == config.RoleOverride {
			files++
		}
	}
	units, _ := discovery.Files(c.Dir)
	own, below := 0, 0
	for _, path := range units {
		if filepath.Dir(path) == filepath.Clean(c.Dir) {
			own++
		} else {
			below++
		}
	}
	var start []string
	switch {
	case own > 0:
		fmt.Fprintf(&b, "%s is a unit", c.Dir)
		if below > 0 {
			fmt.Fprintf(&b, ", with %d more below it", below)
		}
		b.WriteString(".\n")
		start = []string{"plan", "explain", "render"}
	case below > 0:
		fmt.Fprintf(&b, "%s is an estate of %s.\n", c.Dir, count(below, "unit"))
		start = []string{"list", "run --all plan", "estate check"}
	case files > 0:
		fmt.Fprintf(&b, "%s holds configuration in %s.\n", c.Dir, count(files, "file"))
		start = []string{"plan", "apply", "explain"}
		if !initialized(c) {
			// An init that has nothing to install leaves nothing.
			b.WriteString("Nothing is installed here: init has not run, or had nothing to install.\n")
			start = append([]string{"init"}, start...)
		} else {
			b.WriteString(pending(ctx, c))
		}
	default:
		fmt.Fprintf(&b, "%s holds neither configuration nor units.\n", c.Dir)
		start = []string{"init -from-module=SOURCE", "help"}
	}
	b.WriteString("\nStart with:\n")
	for _, line := range start {
		text := ""
		if cmd, _, ok := c.Table.Find(strings.Fields(line)); ok {
			text = cmd.Synopsis
		}
		fmt.Fprintf(&b, "  %s %-24s  %s\n", c.Table.Program, line, text)
	}
	return b.String()
}

// initialized reports whether init was run here.
func initialized(c *command.Call) bool {
	_, err := os.Stat(c.DataPath())
	if err == nil {
		return true
	}
	_, lock := os.Stat(c.Path(".terraform.lock.hcl"))
	return !errors.Is(err, fs.ErrNotExist) || lock == nil
}

// count is a number of things.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// pending tells of the workspace, of an apply that was not finished, and of a state that
// could not be written.
func pending(ctx context.Context, c *command.Call) string {
	var b strings.Builder
	if name, ds := c.Folder().Workspace(); !ds.HasErrors() && name != "default" {
		fmt.Fprintf(&b, "The workspace is %s.\n", name)
	}
	if found, _ := filepath.Glob(c.Path(".*.journal")); len(found) > 0 {
		b.WriteString("An apply was not finished: the next command takes its journal in.\n")
	}
	if _, err := os.Stat(c.Path("errored.tfstate")); err == nil {
		b.WriteString("A state could not be written: it is in errored.tfstate.\n")
	}
	return b.String()
}
