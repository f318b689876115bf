package tfe

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// A Workspace is a workspace of the service.
type Workspace struct {
	ID   string
	Name string

	Locked       bool
	LockedReason string `json:"locked-reason"`
	lockedBy     string // the user; "" if unknown

	ExecutionMode    string `json:"execution-mode"`
	TerraformVersion string `json:"terraform-version"`
	WorkingDirectory string `json:"working-directory"`
	AutoApply        bool   `json:"auto-apply"`
	Structured       *bool  `json:"structured-run-output-enabled"`
	VCS              *struct {
		Identifier string
	} `json:"vcs-repo"`
	Permissions map[string]bool
	ProjectID   string
}

// May reports whether the token has a permission, according to the service. Permissions
// that the service does not report count as granted.
func (w *Workspace) May(permission string) bool {
	ok, known := w.Permissions[permission]
	return ok || !known
}

func workspaceOf(r resource, also []resource) (*Workspace, error) {
	w := &Workspace{}
	if err := r.attributes(w); err != nil {
		return nil, err
	}
	w.ID, w.ProjectID = r.ID, r.one("project")
	if user, ok := included(also, r.one("locked-by")); ok {
		var who struct{ Username, Name string }
		if user.attributes(&who) == nil {
			w.lockedBy = who.Username
			if w.lockedBy == "" {
				w.lockedBy = who.Name
			}
		}
		if user.Type == "runs" {
			w.lockedBy = "the run " + user.ID
		}
	}
	return w, nil
}

// find reads a workspace by its name at the service. If there is none, the error is
// errNoSuchWorkspace.
func (b *Backend) find(ctx context.Context, name string, holder bool) (*Workspace, error) {
	q := call{method: "GET", path: at("organizations", b.Organization, "workspaces", name)}
	if holder {
		q.query = url.Values{"include": {"locked_by"}}
	}
	r, also, err := b.document(ctx, q)
	switch {
	case IsStatus(err, http.StatusNotFound):
		return nil, errNoSuchWorkspace
	case err != nil:
		return nil, b.explain(err)
	}
	w, err := workspaceOf(r, also)
	return w, b.explain(err)
}

// Workspace reads a workspace for a run.
func (b *Backend) Workspace(ctx context.Context, workspace string) (*Workspace, error) {
	name, err := b.remote(workspace)
	if err != nil {
		return nil, err
	}
	w, err := b.find(ctx, name, false)
	if err == errNoSuchWorkspace {
		return nil, &backend.Error{Argument: "workspaces", Err: err, Code: diag.CodeCloudWorkspace, Summary: "Workspace not found", Answer: fmt.Sprintf("%s: there is no workspace %q in the organization %q, or this token may not see it", b.Host, name, b.Organization), Advice: "Run \"init\", which creates it, or \"workspace select\" another."}
	}
	return w, err
}

// Remotely reports whether the service executes the plans and applies of a workspace.
func (b *Backend) Remotely(w *Workspace) bool {
	return !b.forced && b.operations && w.ExecutionMode != "local"
}

// List implements backend.Backend.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	query := url.Values{}
	switch {
	case b.kind == remoteName && b.name != "":
		return nil, backend.ErrNoWorkspaces
	case b.name != "":
		return []string{b.name}, nil
	case b.prefix != "":
		query.Set("search[name]", b.prefix)
	}
	if len(b.tags) > 0 {
		query.Set("search[tags]", strings.Join(b.tags, ","))
	}
	if b.project != "" {
		id, err := b.projectID(ctx)
		if err != nil || id == "" {
			return nil, err
		}
		query.Set("filter[project][id]", id)
	}
	all, err := b.pages(ctx, at("organizations", b.Organization, "workspaces"), query)
	if err != nil {
		return nil, b.explain(err)
	}
	var out []string
	for _, r := range all {
		w, err := workspaceOf(r, nil)
		if err != nil {
			return nil, b.explain(err)
		}
		if name, ok := strings.CutPrefix(w.Name, b.prefix); ok && name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// projectID returns the ID of the configured project; "" if there is none of that name.
func (b *Backend) projectID(ctx context.Context) (string, error) {
	all, err := b.pages(ctx, at("organizations", b.Organization, "projects"), url.Values{"filter[names]": {b.project}})
	if err != nil {
		return "", b.explain(err)
	}
	for _, r := range all {
		var p struct{ Name string }
		if err := r.attributes(&p); err == nil && p.Name == b.project {
			return r.ID, nil
		}
	}
	return "", nil
}

// Create implements backend.Creator.
func (b *Backend) Create(ctx context.Context, workspace string) error {
	name, err := b.remote(workspace)
	if err != nil {
		return err
	}
	_, err = b.create(ctx, name)
	return err
}

// HasDefault implements backend.Named.
func (b *Backend) HasDefault() bool { return b.kind == remoteName && b.name != "" }

// Sole implements backend.Named.
func (b *Backend) Sole() string {
	if b.kind == remoteName && b.name != "" {
		return store.Default
	}
	return b.name
}

// Initialize creates the workspace in the configuration if it is missing.
func (b *Backend) Initialize(ctx context.Context) error {
	if b.name == "" {
		return nil
	}
	_, err := b.find(ctx, b.name, false)
	if err != errNoSuchWorkspace {
		return err
	}
	_, err = b.create(ctx, b.name)
	return err
}

// A document is the body of a request.
type document struct {
	Data any `json:"data"`
}

type sending struct {
	ID            string                 `json:"id,omitempty"`
	Type          string                 `json:"type"`
	Attributes    map[string]any         `json:"attributes,omitempty"`
	Relationships map[string]sendingRefs `json:"relationships,omitempty"`
}

type sendingRefs struct {
	Data any `json:"data"`
}

type ref struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// create creates a workspace with the tags, in the project and with the version of this
// configuration. If another process has created it meanwhile, it returns that workspace.
func (b *Backend) create(ctx context.Context, name string) (*Workspace, error) {
	new := sending{Type: "workspaces", Attributes: map[string]any{"name": name}}
	if b.project != "" {
		id, err := b.projectID(ctx)
		if err == nil && id == "" {
			id, err = b.createProject(ctx)
		}
		if err != nil {
			return nil, err
		}
		new.Relationships = map[string]sendingRefs{"project": {ref{id, "projects"}}}
	}
	r, _, err := b.document(ctx, call{method: "POST", path: at("organizations", b.Organization, "workspaces"), body: document{new}})
	if err != nil {
		if w, again := b.find(ctx, name, false); again == nil {
			return w, nil
		}
		out := b.explain(err)
		if e, ok := out.(*backend.Error); ok {
			e.Summary = "Failed to create workspace"
			if IsStatus(err, http.StatusUnprocessableEntity) {
				e.Argument = "workspaces"
			}
		}
		return nil, out
	}
	w, err := workspaceOf(r, nil)
	if err != nil {
		return nil, b.explain(err)
	}
	// A service that does not support our version keeps its own choice.
	patch := document{sending{Type: "workspaces", Attributes: map[string]any{"terraform-version": b.s.Version}}}
	if _, _, err := b.document(ctx, call{method: "PATCH", path: at("workspaces", w.ID), body: patch, repeat: true}); err == nil {
		w.TerraformVersion = b.s.Version
	}
	if len(b.tags) > 0 {
		var tags []any
		for _, tag := range b.tags {
			tags = append(tags, sending{Type: "tags", Attributes: map[string]any{"name": tag}})
		}
		if _, err := b.send(ctx, call{method: "POST", path: at("workspaces", w.ID, "relationships", "tags"), body: document{tags}, repeat: true}); err != nil {
			return nil, b.explain(err)
		}
	}
	return w, nil
}

func (b *Backend) createProject(ctx context.Context) (string, error) {
	r, _, err := b.document(ctx, call{method: "POST", path: at("organizations", b.Organization, "projects"), body: document{sending{Type: "projects", Attributes: map[string]any{"name": b.project}}}})
	if err != nil {
		out := b.explain(err)
		if e, ok := out.(*backend.Error); ok {
			e.Summary, e.Argument = "Failed to create project", "workspaces"
		}
		return "", out
	}
	return r.ID, nil
}

// Delete implements backend.Backend. If the service refuses to delete the workspace safely,
// it is deleted unconditionally, because the user requested that.
func (b *Backend) Delete(ctx context.Context, workspace string) error {
	name, err := b.remote(workspace)
	if err != nil {
		return err
	}
	path := at("organizations", b.Organization, "workspaces", name)
	_, err = b.send(ctx, call{method: "POST", path: path + "/actions/safe-delete"})
	if IsStatus(err, http.StatusConflict) || IsStatus(err, http.StatusNotFound) {
		w, again := b.find(ctx, name, true)
		switch {
		case again == errNoSuchWorkspace:
			return &backend.Error{Answer: fmt.Sprintf("there is no workspace %q", workspace), Err: again}
		case again != nil:
			return again
		case w.Locked:
			return &backend.Error{Answer: "the workspace is locked by " + backend.Describe(w.holder(b)), Advice: "Wait until the run has ended, or release the lock with \"force-unlock\"."}
		}
		_, err = b.send(ctx, call{method: "DELETE", path: path})
	}
	return b.explain(err)
}

// reason returns the text of a lock at the service; fromReason parses it.
func reason(i store.LockInfo) string {
	return fmt.Sprintf("Locked by %s: %s, %s, %s", i.Who, i.Operation, i.Created.UTC().Format(time.RFC3339Nano), i.ID)
}

func fromReason(text string) (store.LockInfo, bool) {
	text, ok := strings.CutPrefix(text, "Locked by ")
	who, rest, ok2 := strings.Cut(text, ": ")
	parts := strings.Split(rest, ", ")
	if !ok || !ok2 || len(parts) != 3 {
		return store.LockInfo{}, false
	}
	at, err := time.Parse(time.RFC3339Nano, parts[1])
	return store.LockInfo{Who: who, Operation: parts[0], Created: at}, err == nil
}

// holder returns the holder of a workspace's lock, as far as it is known. force-unlock
// accepts the ID.
func (w *Workspace) holder(b *Backend) *store.LockInfo {
	i, ours := fromReason(w.LockedReason)
	if !ours {
		i = store.LockInfo{Who: w.lockedBy, Info: w.LockedReason}
	}
	if i.Who == "" {
		i.Who = "somebody else"
	}
	i.ID, i.Path = b.lockID(w.Name), b.describe()+"/"+w.Name
	return &i
}

func (b *Backend) lockID(name string) string { return b.Organization + "/" + name }

// compatible reports whether states of our version may be written to a workspace of another
// version. From 1.3 on the minor versions must be equal; before that, all versions up to
// 1.2 are compatible.
func compatible(ours, theirs string) bool {
	if theirs == "latest" || theirs == "" || ours == theirs {
		return true
	}
	a, b := numbers(ours), numbers(theirs)
	switch {
	case a == nil || b == nil:
		return false
	case a[0] == b[0] && a[1] == b[1]:
		return true
	}
	old := func(n []int) bool { return n[0] == 0 && n[1] >= 14 || n[0] == 1 && n[1] < 3 }
	return old(a) && old(b)
}

// numbers returns the major and minor number of a version, or of a constraint that allows
// only one; nil for other constraints.
func numbers(version string) []int {
	version = strings.TrimLeft(version, "~>= v")
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return nil
	}
	major, err := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err != nil || err2 != nil {
		return nil
	}
	return []int{major, minor}
}
