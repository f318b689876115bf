// Package remoterun runs plan, apply, destroy and refresh at the service of a cloud block or of
// the backend "remote", if the workspace is configured for that. It prints the progress of the
// run.
//
// Main types: Request, and Do, the entry point for commands. Apply and Show are for plans that
// the service stores. The one rule: an interrupt also ends the run at the service, or a
// message reports that it continues.
package remoterun

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2/hclwrite"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/tfe"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
)

// A Request is an operation that a user requests.
type Request struct {
	Command     string // plan, apply, destroy or refresh
	Vars        []workdir.VarFlag
	Plan        plan.Options
	Input       bool
	Parallelism int           // value of -parallelism
	LockTimeout time.Duration // longest time to wait for other runs; 0 means no limit
	Approved    bool
	ReadsLess   bool   // -minimal-refresh, -minimal-data or -refresh-max-age
	Defers      bool   // -defer or -rounds
	Causes      bool   // -show-causes, -causes-out or -markdown, for which this program must plan
	Detailed    bool   // -detailed-exitcode
	Out         string // -out
	Generate    string // -generate-config-out
	PlanFile    string // a plan saved by this program; "" for none
}

const defaultParallelism = 10

// Do runs an operation at the service. done is false if the workspace does not run operations
// there, so that the caller must run it locally.
func Do(ctx context.Context, c *command.Call, q Request) (code int, done bool) {
	if !mayRun(c) {
		return 0, false
	}
	place, ds := c.WhereState(ctx, q.Vars)
	if ds.HasErrors() {
		return c.Fail(ds), true
	}
	b, ok := place.Opened.(*tfe.Backend)
	if !ok {
		return 0, false
	}
	name, ds := c.Directory.Workspace()
	if ds.HasErrors() {
		return c.Fail(ds), true
	}
	w, err := b.Workspace(ctx, name)
	if err != nil {
		return c.Fail(place.Located(backend.Message(diag.CodeBackendReadFailed, "Failed to read the workspace", "", err))), true
	}
	if !b.Remotely(w) {
		return 0, false
	}
	if ds := refused(q, b, w, c); ds.HasErrors() {
		return c.Fail(ds), true
	}
	o := &operation{c: c, at: place, b: b, w: w, q: q, workspace: name}
	return o.start(ctx), true
}

// mayRun reports whether the configured kind of backend can run operations. It sends no
// requests.
func mayRun(c *command.Call) bool {
	dir := c.Directory.Backend()
	r, ds := dir.Recorded()
	if ds.HasErrors() || r == nil {
		return false
	}
	k, ds := dir.Backends.Kind(r.Type)
	return !ds.HasErrors() && k.Runs
}

// refused returns an error for each option of the request that the service does not support.
func refused(q Request, b *tfe.Backend, w *tfe.Workspace, c *command.Call) diag.List {
	var ds diag.List
	no := func(summary, format string, args ...any) {
		ds = append(ds, diag.Errorf(diag.CodeCloudRefused, nil, summary, format, args...)...)
	}
	applies := q.Command != "plan"
	switch {
	case !w.May("can-queue-run"):
		no("Insufficient rights to generate a plan", "The provided credentials have insufficient rights to generate a plan. In order to generate plans, at least plan permissions on the workspace are required.")
	case applies && q.Plan.Mode == plan.Destroy && !w.May("can-queue-destroy"):
		no("Insufficient rights to destroy", "The provided credentials have insufficient rights to destroy what the workspace manages. In order to do that, at least write permissions on the workspace are required.")
	case applies && !w.May("can-queue-apply"):
		no("Insufficient rights to apply changes", "The provided credentials have insufficient rights to apply changes. In order to apply changes at least write permissions on the workspace are required.")
	case applies && w.VCS != nil:
		no("Apply not allowed for workspaces with a VCS connection", "A workspace that is connected to a VCS requires the VCS-driven workflow to ensure that the VCS remains the single source of truth.")
	}
	if q.Parallelism != 0 && q.Parallelism != defaultParallelism {
		no("Custom parallelism values are currently not supported", "The service sets the parallelism of its runs itself: leave -parallelism out, or set TFE_PARALLELISM in the workspace.")
	}
	if q.PlanFile != "" {
		no("Applying a saved plan is currently not supported", "The workspace runs at %s, which cannot apply a plan that was made here. Apply without a plan file, or save a plan there with \"plan -out\" and a cloud block.", b.Host)
	}
	if len(q.Plan.Excludes) > 0 {
		no("-exclude option is not supported", "The service does not know the -exclude option. Use -target, or a workspace with local execution.")
	}
	if len(q.Plan.ReplacePatterns) > 0 || slices.ContainsFunc(q.Plan.Targets, func(t addr.Target) bool { return t.Pattern != "" }) {
		no("Patterns are not supported", "The service knows no patterns in -target and -replace. Give each address, or use a workspace with local execution.")
	}
	if q.Out != "" && !b.IsCloud() {
		no("Saving a generated plan is currently not supported", "The backend \"remote\" cannot save the plan of a run. A cloud block can.")
	}
	if q.ReadsLess {
		no("Reading less is not supported", "The service decides what its runs read, and knows the options -refresh=false and -refresh-only alone. Leave -minimal-refresh, -minimal-data and -refresh-max-age out, or set them as TF_CLI_ARGS_plan in the workspace if its version knows them.")
	}
	if q.Defers {
		no("Deferral is not supported", "The service makes the plan, and does not know the options -defer and -rounds. Leave them out, or use a workspace with local execution.")
	}
	if q.Causes {
		no("Causes and Markdown are not supported", "The service makes the plan, and this program gets only its text. Leave -show-causes, -causes-out and -markdown out, or use a workspace with local execution.")
	}
	if q.Generate != "" && !b.IsCloud() {
		no("Generating configuration is not supported", "The runs of the backend \"remote\" cannot generate configuration. Those of a cloud block can, and a workspace with local execution.")
	}
	if q.Plan.Mode != plan.Destroy && !config.IsConfigDir(c.Dir, config.Options{}) {
		no("No configuration files found", "Planning without a configuration would mark everything for destruction, which is normally not what is desired. To destroy everything, use \"%s destroy\".", view.Program)
	}
	return ds
}

// runVariables returns the values of -var and -var-file, as expressions.
func runVariables(c *command.Call, given []workdir.VarFlag) ([]tfe.RunVariable, diag.List) {
	root, ds := c.Root()
	if ds.HasErrors() {
		return nil, ds
	}
	values, ds := workdir.CollectVariables(workdir.VarSources{Dir: c.Dir, FS: nothing{}, Flags: given, Set: c.Report.Set, Read: c.Files}, root.Variables)
	if ds.HasErrors() {
		return nil, ds
	}
	var out []tfe.RunVariable
	for _, name := range slices.Sorted(maps.Keys(values)) {
		d := root.Variables[name]
		if d == nil {
			continue
		}
		v, more := workdir.ReadVariable(d, values[name])
		if ds = append(ds, more...); more.HasErrors() {
			continue
		}
		v, _ = v.UnmarkDeep()
		out = append(out, tfe.RunVariable{Key: name, Value: strings.TrimSpace(string(hclwrite.TokensForValue(v).Bytes()))})
	}
	return out, ds
}

// nothing is a file system without files. The service itself finds values outside of flags.
type nothing struct{}

func (nothing) ReadDir(string) ([]fs.DirEntry, error) { return nil, nil }

func (nothing) ReadFile(name string) ([]byte, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// uploadRoot returns the directory to upload. The working directory of the workspace is
// relative to it.
func uploadRoot(dir, working string) string {
	working = strings.Trim(path.Clean("/"+working), "/")
	if working == "" {
		return dir
	}
	if rest, ok := strings.CutSuffix(filepath.ToSlash(dir), "/"+working); ok && rest != "" {
		return filepath.FromSlash(rest)
	}
	return dir
}

func targets(list []addr.Target) []string {
	var out []string
	for _, t := range list {
		out = append(out, t.String())
	}
	return out
}

// start uploads the configuration, begins the run and watches it.
func (o *operation) start(ctx context.Context) int {
	q, c := o.q, o.c
	variables, ds := runVariables(c, q.Vars)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	c.Report.Tell(ds)
	o.introduce()
	root := uploadRoot(c.Dir, o.w.WorkingDirectory)
	if o.w.WorkingDirectory != "" {
		o.say(fmt.Sprintf("The remote workspace is configured to work with configuration at\n%s relative to the target repository.\n\n%s will upload the contents of the following directory,\nexcluding files or directories as defined by a %s file\nat %s (if it is present):\n    %s\n\nThe remote run will use the %q directory as its working directory.\n", o.w.WorkingDirectory, o.c.Report.Names.Product(), ignoreFile, filepath.Join(root, ignoreFile), root, o.w.WorkingDirectory))
	}
	archive, err := pack(root, func(name string) {
		if strings.EqualFold(c.Env.Get("TF_IGNORE"), "trace") {
			fmt.Fprintf(c.Stderr, "Left out of the upload: %s\n", name)
		}
	})
	if err != nil {
		return c.Fail(diag.Errorf(diag.CodeBackendFailed, nil, "Failed to upload configuration files", "The directory %s cannot be packed: %s.", root, err))
	}
	speculative := q.Command == "plan" && q.Out == ""
	config, err := o.b.Upload(ctx, o.w, archive, speculative, q.Out != "")
	if err != nil {
		return c.Fail(o.at.Located(backend.Message(diag.CodeBackendFailed, "Failed to upload configuration files", "", err)))
	}
	var replace []string
	for _, a := range q.Plan.Replace {
		replace = append(replace, a.String())
	}
	o.run, err = o.b.CreateRun(ctx, tfe.RunRequest{
		Message: "Started by " + o.c.Report.Names.Program() + " " + q.Command, Destroy: q.Plan.Mode == plan.Destroy, RefreshOnly: q.Plan.Mode == plan.RefreshOnly, Refresh: !q.Plan.SkipRefresh,
		AutoApply: q.Approved && q.Command != "plan", Save: q.Out != "", Generate: q.Generate != "", Targets: targets(q.Plan.Targets), Replace: replace,
		Variables: variables, WorkspaceID: o.w.ID, ConfigID: config,
	})
	if err != nil {
		return c.Fail(o.at.Located(backend.Message(diag.CodeCloudRun, "Failed to create run", "", err)))
	}
	o.say("To view this run in a browser, visit:\n" + o.b.Address(o.w, o.run.ID) + "\n")
	if warnings, err := o.b.Warnings(ctx, o.run.ID); err == nil {
		for _, text := range warnings {
			c.Report.Tell(diag.Warnf(diag.CodeCloudRun, nil, "Warning of the service", "%s", text))
		}
	}
	return o.watch(ctx)
}

func (o *operation) introduce() {
	what, verb := o.q.Command, "apply"
	if what == "plan" {
		verb = "plan"
	}
	o.say(fmt.Sprintf("Running %s at %s. Output will stream here. An interrupt cancels the\nrun there as well, if it can still be cancelled.\n\nPreparing the remote %s...\n", what, o.b.Host, verb))
}

// say prints text for people, and writes it as a log line for programs.
func (o *operation) say(text string) {
	o.c.Report.Human.Say(text + "\n")
	o.c.Report.Stream.Log(strings.Join(strings.Fields(text), " "))
}
