package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/cli/vars"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// workspaceName is the selected workspace: TF_WORKSPACE, else what the data
// folder says, else the default one.
func (s *session) workspaceName() (string, diag.List) {
	name := s.Env.Get("TF_WORKSPACE")
	if name == "" {
		src, err := os.ReadFile(s.dataPath("environment"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", diag.Errorf(nil, "Failed to read the selected workspace", "The file that names the selected workspace cannot be read: %s.", err)
		}
		name = strings.TrimSpace(string(src))
	}
	if name == "" {
		return store.Default, nil
	}
	if !store.ValidWorkspace(name) {
		return "", invalidWorkspace(name)
	}
	return name, nil
}

func invalidWorkspace(name string) diag.List {
	return diag.Errorf(nil, "Invalid workspace name", "The workspace name %q is not allowed. The name must contain only URL safe characters, and no path separators.", name)
}

// selectWorkspace makes a workspace the selected one.
func (s *session) selectWorkspace(name string) diag.List {
	err := os.MkdirAll(s.dataPath(), 0o777)
	if err == nil {
		err = atomicfile.Write(s.dataPath("environment"), []byte(name), 0o644)
	}
	if err != nil {
		return diag.Errorf(nil, "Failed to select workspace", "The selected workspace cannot be recorded: %s.", err)
	}
	return nil
}

// A workspaceRun is what the commands on workspaces need.
type workspaceRun struct {
	*session
	backend *place
	all     backend.Workspaces
	names   []string
	current string
}

// workspaces finds the workspaces of the working folder.
func (s *session) workspaces(ctx context.Context, flags []vars.Flag) (*workspaceRun, diag.List) {
	b, ds := s.whereState(ctx, flags)
	if ds.HasErrors() {
		return nil, ds
	}
	w := &workspaceRun{session: s, backend: b, all: backend.Workspaces{Backend: b.opened, Options: s.storeOptions(stateFlags{})}}
	var more diag.List
	if w.current, more = s.workspaceName(); more.HasErrors() {
		return nil, append(ds, more...)
	}
	w.names, more = w.all.List(ctx)
	if ds = append(ds, more...); ds.HasErrors() {
		return nil, ds
	}
	return w, ds
}

func (w *workspaceRun) has(name string) bool { return slices.Contains(w.names, name) }

// overridden refuses to select while the environment does.
func (s *session) overridden() diag.List {
	if s.Env.Get("TF_WORKSPACE") == "" {
		return nil
	}
	return diag.Errorf(nil, "The selected workspace is overridden using the TF_WORKSPACE environment variable", "To select a new workspace, either update this environment variable or unset it and then run this command again.")
}

// workspaceArgs parses the flags of a command on workspaces and its arguments.
func (s *session) workspaceArgs(command string, args []string, want int, add func(*workspaceOptions)) (*workspaceOptions, bool) {
	o := &workspaceOptions{flags: newFlags(command)}
	addVars(o.flags, &o.vars)
	if command != "workspace show" {
		o.json.add(o.flags)
	}
	if add != nil {
		add(o)
	}
	if !s.parse(o.flags, args) {
		return nil, false
	}
	if o.flags.NArg() != want {
		detail := "Expected no positional arguments."
		if want == 1 {
			detail = "Expected a single argument: the name of a workspace."
		}
		s.usageError(command, "Unexpected argument", detail)
		return nil, false
	}
	o.name = o.flags.Arg(0)
	if !s.useJSON(o.json) {
		return nil, false
	}
	return o, true
}

func workspaceCommand(_ context.Context, s *session, _ []string) int {
	fmt.Fprintln(s.Stderr, workspaceUsage())
	return 1
}

func workspaceUsage() string {
	var b strings.Builder
	b.WriteString("Usage: " + view.Program + " [global options] workspace\n\n  new, list, show, select and delete " + view.Product + " workspaces.\n\nSubcommands:\n")
	for _, c := range commands() {
		if name, ok := strings.CutPrefix(c.name, "workspace "); ok {
			fmt.Fprintf(&b, "    %-8s  %s\n", name, c.synopsis)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

func workspaceHelp(command, args, what string, options ...string) string {
	options = append(options,
		option("-var 'foo=bar'", "Set a value for one of the input variables of the root module."),
		option("-var-file=path", "Load variable values from a file."))
	return usageText("Usage: "+view.Program+" [global options] workspace "+command+args+"\n\n  "+what, options...)()
}
