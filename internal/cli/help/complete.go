package help

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/estate/discovery"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// completeWord is the first word of a call by a completion script.
const completeWord = "__complete"

// Asked reports whether a shell called the program for candidates: through a completion
// script, or through a registration with "complete -C", which sets COMP_LINE.
func Asked(c *command.Call, args []string) bool {
	return len(args) > 0 && args[0] == completeWord || c.Env.Get("COMP_LINE") != ""
}

// Candidates prints the candidates for completion, one per line. After "__complete --", the
// words of the line follow, and if the shell should complete paths, :files or :directories is
// printed. After "__complete -bash", the line up to the cursor and COMP_WORDBREAKS follow.
func Candidates(ctx context.Context, c *command.Call, args []string) {
	from := folder{ctx, c}
	var list []string
	switch {
	case len(args) == 0 || args[0] != completeWord:
		list = registered(c, from)
	case len(args) == 4 && args[1] == "-bash":
		list = c.Table.CompleteLine(args[2], args[3], from)
	case len(args) > 1 && args[1] == "--":
		found := c.Table.Complete(args[2:], from)
		switch {
		case found.Elsewhere || found.Paths == flag.Nothing:
			list = found.All()
		case found.Paths == flag.Folders:
			list = []string{":directories"}
		default:
			list = []string{":files"}
		}
	}
	for _, x := range list {
		if !strings.Contains(x, "\n") {
			fmt.Fprintln(c.Stdout, x)
		}
	}
}

// registered returns the candidates for the line in COMP_LINE, up to the character COMP_POINT.
// bash replaces only a part of the last word, and is the shell that sets COMP_TYPE. zsh and
// fish replace the whole word and quote it themselves.
func registered(c *command.Call, from command.Source) []string {
	line := []rune(c.Env.Get("COMP_LINE"))
	if n, err := strconv.Atoi(c.Env.Get("COMP_POINT")); err == nil && n >= 0 && n < len(line) {
		line = line[:n]
	}
	if c.Env.Get("COMP_TYPE") == "" {
		return c.Table.CompleteWhole(string(line), from)
	}
	return c.Table.CompleteLine(string(line), command.Breaks, from)
}

// completedNames returns the names of commands that a completion script registers: the
// program's own, and the name of another tool that it was called by.
func completedNames(c *command.Call) []string {
	names := []string{view.Program}
	as := c.CalledAs()
	if as == "" {
		return names
	}
	for _, name := range []string{filepath.Base(c.System.Args[0]), as} {
		if name = strings.TrimSuffix(name, ".exe"); !slices.Contains(names, name) && plainName(name) {
			names = append(names, name)
		}
	}
	return names
}

// plainName reports whether a shell reads a name unchanged.
func plainName(name string) bool {
	for _, r := range name {
		if (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("._-+", r) {
			return false
		}
	}
	return name != ""
}

// folder provides candidates from the working directory. It ignores files that it cannot read.
type folder struct {
	ctx context.Context
	c   *command.Call
}

// In implements command.Source.
func (f folder) In(dir string) command.Source {
	c := f.c.Below(dir)
	return folder{f.ctx, c}
}

// Candidates implements command.Source.
func (f folder) Candidates(what flag.Completion, text string) []string {
	var out []string
	switch what {
	case flag.Commands:
		for i := range f.c.Table.Commands {
			if cmd := &f.c.Table.Commands[i]; !cmd.Hidden && !strings.Contains(cmd.Name, " ") {
				out = append(out, cmd.Name)
			}
		}
		for _, t := range f.c.Table.Topics {
			out = append(out, t.Name)
		}
	case flag.Workspaces:
		out = append(out, "default")
		entries, _ := os.ReadDir(f.c.Path("terraform.tfstate.d"))
		for _, e := range entries {
			if e.IsDir() {
				out = append(out, e.Name())
			}
		}
	case flag.Files, flag.Folders, flag.VarFiles:
		out = f.paths(what, text)
	case flag.UnitNames:
		files, _ := discovery.Files(f.c.Dir)
		for _, path := range files {
			if rel, err := filepath.Rel(f.c.Dir, filepath.Dir(path)); err == nil && fs.ValidPath(filepath.ToSlash(rel)) {
				out = append(out, filepath.ToSlash(rel))
			}
		}
	case flag.Explained:
		out = f.explained()
	case flag.Codes:
		for _, code := range diag.Codes() {
			out = append(out, code.Name)
		}
	default:
		out = f.objects(what)
	}
	return out
}

// objects returns the addresses in configuration and state, or the names of outputs.
func (f folder) objects(what flag.Completion) []string {
	var out []string
	root, _ := f.c.Root()
	if root != nil && what == flag.Outputs {
		for name := range root.Outputs {
			out = append(out, name)
		}
		return out
	}
	if root != nil && what == flag.Addresses {
		for a := range root.Resources {
			out = append(out, a.String())
		}
		for name := range root.Calls {
			out = append(out, "module."+name)
		}
	}
	if st, _ := f.c.CurrentState(f.ctx, nil, ""); st != nil {
		for a := range st.Instances() {
			out = append(out, a.String())
		}
	}
	return out
}

// paths returns the paths that begin with text. Those of directories end with a slash. Hidden
// files are candidates only if text names them. If no variable file matches, directories are
// candidates in their place.
func (f folder) paths(what flag.Completion, text string) []string {
	head, base := text[:strings.LastIndexByte(text, '/')+1], text[strings.LastIndexByte(text, '/')+1:]
	dir := head
	if rest, ok := strings.CutPrefix(head, "~/"); ok {
		dir = filepath.Join(f.c.Env.Home(), rest)
	}
	dir = f.c.Path(dir)
	var files, dirs []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || base == "" && name[0] == '.' {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, name)) // follows links
		switch {
		case err == nil && info.IsDir():
			dirs = append(dirs, head+name+"/")
		case what == flag.Files || what == flag.VarFiles && (strings.HasSuffix(name, ".tfvars") || strings.HasSuffix(name, ".tfvars.json")):
			files = append(files, head+name)
		}
	}
	if base == ".." && what != flag.VarFiles {
		dirs = append(dirs, text+"/")
	}
	if what == flag.VarFiles && len(files) > 0 {
		return files
	}
	return append(files, dirs...)
}
