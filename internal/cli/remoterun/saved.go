package remoterun

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/tfe"
	"github.com/terrace-iac/terrace/internal/workdir"
)

const bookmarkFormat = 1

// A bookmark is the file that refers to a plan stored by the service. OpenTofu writes the same
// format.
type bookmark struct {
	Format int    `json:"remote_plan_format"`
	RunID  string `json:"run_id"`
	Host   string `json:"hostname"`
}

func save(path string, m bookmark) diag.List {
	text, err := json.Marshal(m)
	if err == nil {
		err = atomicfile.Write(path, text, 0o600)
	}
	if err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write plan file", "The plan file could not be written: %s.", err)
	}
	return nil
}

// IsBookmark reports whether a file refers to a plan that a service stores.
func IsBookmark(c *command.Call, name string) bool {
	_, ok := read(c, name)
	return ok
}

// bookmarkLimit is the largest size of a bookmark, in bytes.
const bookmarkLimit = 4096

func read(c *command.Call, name string) (bookmark, bool) {
	info, err := os.Stat(c.Path(name))
	if err != nil || info.Size() > bookmarkLimit || !info.Mode().IsRegular() {
		return bookmark{}, false
	}
	text, err := readfile.Given(c.Path(name))
	var m bookmark
	return m, err == nil && json.Unmarshal(text, &m) == nil && m.Format != 0
}

// find opens the run of a saved plan, and checks that it belongs to the workspace of the
// directory.
func find(ctx context.Context, c *command.Call, name string, given []workdir.VarFlag) (*operation, diag.List) {
	m, _ := read(c, name)
	if m.Format != bookmarkFormat || m.RunID == "" {
		return nil, diag.Errorf(diag.CodeCloudSavedPlan, nil, "Invalid saved cloud plan", "The file %q names a plan in format %d, and this version knows format %d alone.", name, m.Format, bookmarkFormat)
	}
	place, ds := c.WhereState(ctx, given)
	if ds.HasErrors() {
		return nil, ds
	}
	b, ok := place.Opened.(*tfe.Backend)
	if !ok {
		return nil, diag.Errorf(diag.CodeCloudSavedPlan, nil, "Saved cloud plan without a cloud block", "The file %q names a plan at %s, and the configuration of this directory keeps its state elsewhere.", name, m.Host)
	}
	if b.Host != m.Host {
		return nil, diag.Errorf(diag.CodeCloudSavedPlan, nil, "Saved plan is for another host", "The file %q names a plan at %s, and the configuration of this directory is for %s.", name, m.Host, b.Host)
	}
	workspace, ds := c.Directory.Workspace()
	if ds.HasErrors() {
		return nil, ds
	}
	w, err := b.Workspace(ctx, workspace)
	if err != nil {
		return nil, place.Located(backend.Message(diag.CodeBackendReadFailed, "Failed to read the workspace", "", err))
	}
	r, err := b.Run(ctx, m.RunID)
	if err != nil {
		return nil, place.Located(backend.Message(diag.CodeBackendReadFailed, "Failed to read the run of the saved plan", "", err))
	}
	if r.WorkspaceID != w.ID {
		return nil, diag.Errorf(diag.CodeCloudSavedPlan, nil, "Saved plan is for another workspace", "The file %q names a plan of another workspace than %q, which is selected here.", name, workspace)
	}
	return &operation{c: c, at: place, b: b, w: w, run: r, workspace: workspace}, nil
}

// Apply applies a plan that the service stores. It does not ask for approval, as with any
// saved plan.
func Apply(ctx context.Context, c *command.Call, name string, q Request) int {
	o, ds := find(ctx, c, name, q.Vars)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	q.Out = ""
	q.Approved = true
	if ds := refused(q, o.b, o.w, c); ds.HasErrors() {
		return c.Fail(ds)
	}
	o.q = q
	switch {
	case o.run.Status == "planned_and_finished":
		o.say("The saved plan has no changes, so there is nothing to apply.")
		return 0
	case !o.run.Actions.Confirmable:
		return c.Fail(diag.Errorf(diag.CodeCloudSavedPlan, nil, "Saved plan cannot be applied", "The run of the saved plan is in the status %q, in which it cannot be applied: it was applied or discarded already, or has not come to its end. See %s", o.run.Status, o.b.Address(o.w, o.run.ID)))
	}
	o.say(fmt.Sprintf("Running apply of the saved plan at %s.\n\nTo view this run in a browser, visit:\n%s\n", o.b.Host, o.b.Address(o.w, o.run.ID)))
	if err := o.b.Act(ctx, o.run.ID, "apply"); err != nil {
		return c.Fail(o.at.Located(backend.Message(diag.CodeBackendFailed, "Failed to apply the saved plan", "", err)))
	}
	o.announced, o.planShown, o.confirmed = true, true, true
	return o.watch(ctx)
}

// Show prints a plan that the service stores: its log, or with asJSON its JSON form.
func Show(ctx context.Context, c *command.Call, name string, given []workdir.VarFlag, asJSON bool) int {
	o, ds := find(ctx, c, name, given)
	if ds.HasErrors() {
		return c.Fail(ds)
	}
	if asJSON {
		text, err := o.b.PlanJSON(ctx, o.run.PlanID)
		if err != nil || text == nil {
			if err == nil {
				return c.Fail(diag.Errorf(diag.CodeCloudSavedPlan, nil, "No plan in JSON", "The service has no JSON of this plan: it has not come to its end, or it failed."))
			}
			return c.Fail(o.at.Located(backend.Message(diag.CodeBackendReadFailed, "Failed to read the plan", "", err)))
		}
		if _, err := c.Stdout.Write(append(text, '\n')); err != nil {
			return 1
		}
		return 0
	}
	if err := o.stream(ctx, ctx, "plan", o.b.Plan, o.run.PlanID); err != nil {
		return c.Fail(o.messageOf(err))
	}
	o.say(fmt.Sprintf("\nThe run has the status %q: %s", o.run.Status, o.b.Address(o.w, o.run.ID)))
	return 0
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
