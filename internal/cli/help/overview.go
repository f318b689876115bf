package help

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/wrap"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
)

// Overview returns a text about the working directory, and the commands with which a user may
// start there. To be quick, it reads only names of files and local state, and sends no
// requests.
func Overview(c *command.Call) string {
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
	var folders []string
	for _, path := range units {
		folders = append(folders, filepath.Dir(path))
		if filepath.Dir(path) == filepath.Clean(c.Dir) {
			own++
		} else {
			below++
		}
	}
	var start []string
	left := pendingBelow(folders)
	switch {
	case own > 0:
		fmt.Fprintf(&b, "%s is a unit", c.Dir)
		if below > 0 {
			fmt.Fprintf(&b, ", with %d more below it", below)
		}
		b.WriteString(".\n")
		start = []string{"plan", "explain", "render"}
	case below > 0:
		fmt.Fprintf(&b, "%s is an estate of %s.\n", c.Dir, view.Numbered(below, "unit"))
		start = []string{"list", "run --all plan", "estate check"}
	case files > 0:
		fmt.Fprintf(&b, "%s holds configuration in %s.\n", c.Dir, view.Numbered(files, "file"))
		start = []string{"plan", "apply", "explain"}
		if !initialized(c) {
			// Init writes nothing if there is nothing to install.
			b.WriteString("Nothing is installed here: init has not run, or had nothing to install.\n")
			start = append([]string{"init"}, start...)
		} else if name, ds := c.Directory.Workspace(); !ds.HasErrors() && name != "default" {
			fmt.Fprintf(&b, "The workspace is %s.\n", name)
		}
		left = pendingIn(c.Dir)
	default:
		fmt.Fprintf(&b, "%s holds neither configuration nor units.\n", c.Dir)
		start = []string{"init -from-module=SOURCE", "help"}
	}
	b.WriteString(left)
	b.WriteString("\nStart with:\n")
	column := 0
	for _, line := range start {
		column = max(column, len("  "+c.Table.Program+" "+line+"  "))
	}
	for _, line := range start {
		text := ""
		if cmd, _, ok := c.Table.Find(strings.Fields(line)); ok {
			text = cmd.Synopsis
		}
		b.WriteString(c.Table.Entry(c.Table.Program+" "+line, text, column))
	}
	return wrap.Fit(b.String(), c.Table.Width, 0)
}

// initialized reports whether init was run, or was not needed. A local state shows that an
// apply was run.
func initialized(c *command.Call) bool {
	for _, path := range []string{c.DataPath(), c.Path(".terraform.lock.hcl"), c.Path("terraform.tfstate")} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// leftovers returns the names of files that an interrupted apply leaves: the journal of each
// workspace's state, and a state that could not be written.
func leftovers(dir string) (journals, states []string) {
	journals, _ = filepath.Glob(filepath.Join(dir, ".*.journal"))
	all, _ := filepath.Glob(filepath.Join(dir, "errored.*"))
	for _, path := range all {
		if statemgr.IsErrored(filepath.Base(path)) {
			states = append(states, path)
		}
	}
	return journals, states
}

// pendingIn returns a text about the leftovers in a directory: an unfinished apply, or a state
// that could not be written.
func pendingIn(dir string) string {
	var text string
	journals, states := leftovers(dir)
	more, _ := filepath.Glob(filepath.Join(dir, "terraform.tfstate.d", "*", ".*.journal"))
	if len(journals)+len(more) > 0 {
		text += "An apply is under way or was not finished: then the next command takes its journal in.\n"
	}
	if len(states) > 0 {
		text += "A state could not be written: it is in errored.tfstate.\n"
	}
	return text
}

// pendingBelow is pendingIn for units. Their leftovers are next to the unit file or in the
// working directory in .terragrunt-cache.
func pendingBelow(units []string) string {
	var unfinished, unwritten int
	for _, unit := range units {
		var journals, states int
		for _, dir := range []string{unit, filepath.Join(unit, ".terragrunt-cache", "*", "*")} {
			j, s := leftovers(dir)
			journals, states = journals+len(j), states+len(s)
		}
		unfinished += min(journals, 1)
		unwritten += min(states, 1)
	}
	var text string
	if unfinished > 0 {
		text += fmt.Sprintf("An apply is under way or was not finished in %s: then the next command there takes its journal in.\n", view.Numbered(unfinished, "unit"))
	}
	if unwritten > 0 {
		text += fmt.Sprintf("The state of %s could not be written: it is in errored.tfstate there.\n", view.Numbered(unwritten, "unit"))
	}
	return text
}
