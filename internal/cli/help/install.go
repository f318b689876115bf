package help

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
)

// Autocomplete adds completion to the files that shells read at their start, or removes it
// from them. A shell without such a file is ignored. It returns the exit status.
func Autocomplete(c *command.Call, install, uninstall bool) int {
	fail := func(errs ...string) int {
		n := "1 error"
		if len(errs) != 1 {
			n = fmt.Sprintf("%d errors", len(errs))
		}
		return c.Report.Complain(fmt.Sprintf("Error executing CLI: %s occurred:\n\t* %s\n\n", n, strings.Join(errs, "\n\t* ")))
	}
	if install && uninstall {
		return c.Report.Complain("Error executing CLI: Either the autocomplete install or uninstall flag may be specified, but not both.\n")
	}
	home := c.Env.Home()
	program, err := sys.LookPath(c.System.Args[0], c.Dir, c.Env)
	if err == nil && home == "" {
		err = errors.New("the home directory is unknown, since HOME is not set")
	}
	if err != nil {
		return fail(err.Error())
	}
	var errs []string
	found := false
	for _, f := range startFiles(home, program) {
		exists := f.path
		if f.whole {
			exists = filepath.Dir(f.path)
		}
		if _, err := os.Stat(exists); err != nil {
			continue
		}
		found = true
		change, done := f.remove, "Removed from"
		if install {
			change, done = f.add, "Added to"
		}
		if err := change(); err != nil {
			errs = append(errs, err.Error())
			continue
		}
		fmt.Fprintf(c.Stdout, "%s %s.\n", done, f.path)
	}
	switch {
	case !found:
		return fail("found neither ~/.bashrc nor ~/.zshrc nor the directory ~/.config/fish/completions in " + home)
	case len(errs) > 0:
		return fail(errs...)
	}
	return 0
}

// A startFile is a file that a shell reads.
type startFile struct {
	path  string
	line  string // the line that registers completion, without its end
	whole bool   // the file contains only the line
}

// startFiles returns the files of all shells. Their lines do nothing if the program was
// deleted.
func startFiles(home, program string) []startFile {
	quoted := "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	fish := "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(program) + "'"
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	return []startFile{
		{path: filepath.Join(home, ".bashrc"), line: `[ ! -x ` + quoted + ` ] || eval "$(` + quoted + ` completion bash)"`},
		{path: filepath.Join(home, ".zshrc"), line: `[ ! -x ` + quoted + ` ] || eval "$(` + quoted + ` completion zsh)"`},
		{path: filepath.Join(home, ".config", "fish", "completions", name+".fish"), line: "test -x " + fish + "; and " + fish + " completion fish | source", whole: true},
	}
}

// add writes the line. An existing file without an end of line keeps that property, so that
// remove restores it exactly.
func (f startFile) add() error {
	data, err := readfile.Whole(f.path)
	text := string(data)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.whole:
		return atomicfile.Write(f.path, []byte(f.line+"\n"), 0o644)
	case err != nil:
		return err
	case f.at(text) >= 0:
		return fmt.Errorf("already installed in %s", f.path)
	case f.whole:
		return fmt.Errorf("%s exists and contains other text", f.path)
	case text == "" || strings.HasSuffix(text, "\n"):
		text += f.line + "\n"
	default:
		text += "\n" + f.line
	}
	return atomicfile.Write(f.path, []byte(text), 0o644)
}

// remove removes the line, or the file if it contains nothing else.
func (f startFile) remove() error {
	data, err := readfile.Whole(f.path)
	text := string(data)
	at := f.at(text)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && (at < 0 || f.whole && text != f.line+"\n"):
		return fmt.Errorf("not installed in %s", f.path)
	case err != nil:
		return err
	case f.whole:
		return os.Remove(f.path)
	}
	end := at + len(f.line)
	if end < len(text) {
		end++
	} else if at > 0 {
		at--
	}
	return atomicfile.Write(f.path, []byte(text[:at]+text[end:]), 0o644)
}

// at returns the index of the line in a text, or -1.
func (f startFile) at(text string) int {
	i := 0
	for line := range strings.Lines(text) {
		if strings.TrimSuffix(line, "\n") == f.line {
			return i
		}
		i += len(line)
	}
	return -1
}
