package tfe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend"
)

// A Run is a run of the service.
type Run struct {
	ID         string
	Status     string
	HasChanges bool `json:"has-changes"`
	Destroy    bool `json:"is-destroy"`
	Refresh    bool `json:"refresh-only"` // it only refreshes
	PlanOnly   bool `json:"plan-only"`
	Queued     int  `json:"position-in-queue"` // number of earlier runs of the organization
	Actions    struct {
		Cancelable      bool `json:"is-cancelable"`
		Confirmable     bool `json:"is-confirmable"`
		Discardable     bool `json:"is-discardable"`
		ForceCancelable bool `json:"is-force-cancelable"`
	}
	Permissions map[string]bool

	WorkspaceID, PlanID, ApplyID, CostID string   `json:"-"`
	PolicyIDs, StageIDs                  []string `json:"-"`
}

// Over reports whether a run has ended.
func (r *Run) Over() bool {
	return slices.Contains([]string{"applied", "errored", "discarded", "canceled", "force_canceled", "planned_and_finished", "planned_and_saved", "policy_soft_failed"}, r.Status)
}

// Ahead returns the number of runs of a workspace that must end before this run can begin.
func (b *Backend) Ahead(ctx context.Context, w *Workspace, id string) (int, error) {
	all, err := b.pages(ctx, at("workspaces", w.ID, "runs"), nil)
	if err != nil {
		return 0, b.explain(err)
	}
	n, before := 0, false // the newest run is first
	for _, one := range all {
		r, err := runOf(one)
		if err != nil {
			return 0, b.explain(err)
		}
		switch {
		case r.ID == id:
			before = true
		case before && !r.PlanOnly && !r.Over():
			n++
		}
	}
	return n, nil
}

// Waiting reports whether a run has not started planning.
func (r *Run) Waiting() bool {
	return slices.Contains([]string{"pending", "fetching", "fetching_completed", "queuing", "plan_queued", "pre_plan_running", "pre_plan_completed", "pre_plan_awaiting_decision"}, r.Status)
}

// A RunRequest describes a run to create.
type RunRequest struct {
	Message     string
	Destroy     bool
	RefreshOnly bool
	Refresh     bool
	AutoApply   bool
	Save        bool
	Generate    bool // generate configuration for imported objects without one
	Targets     []string
	Replace     []string
	Variables   []RunVariable
	WorkspaceID string
	ConfigID    string
}

// A RunVariable is the value of a variable for one run, as an expression.
type RunVariable struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

func runOf(r resource) (*Run, error) {
	out := &Run{}
	if err := r.attributes(out); err != nil {
		return nil, err
	}
	out.ID, out.WorkspaceID = r.ID, r.one("workspace")
	out.PlanID, out.ApplyID, out.CostID = r.one("plan"), r.one("apply"), r.one("cost-estimate")
	out.PolicyIDs, out.StageIDs = r.many("policy-checks"), r.many("task-stages")
	return out, nil
}

// many returns the IDs of a relation to several resources.
func (r resource) many(name string) []string {
	var refs []ref
	if json.Unmarshal(r.Relationships[name].Data, &refs) != nil {
		return nil
	}
	var out []string
	for _, one := range refs {
		out = append(out, one.ID)
	}
	return out
}

// Upload sends a configuration, a gzipped tar archive, and waits until the service has
// processed it.
func (b *Backend) Upload(ctx context.Context, w *Workspace, archive []byte, speculative, provisional bool) (string, error) {
	r, _, err := b.document(ctx, call{method: "POST", path: at("workspaces", w.ID, "configuration-versions"), body: document{sending{Type: "configuration-versions", Attributes: map[string]any{"auto-queue-runs": false, "speculative": speculative, "provisional": provisional}}}})
	if err != nil {
		return "", b.explain(err)
	}
	var at0 struct {
		URL string `json:"upload-url"`
	}
	if err := r.attributes(&at0); err != nil {
		return "", b.explain(err)
	}
	if _, err := b.blob(ctx, "PUT", at0.URL, archive); err != nil {
		return "", b.explain(err)
	}
	for n := range 60 {
		now, _, err := b.document(ctx, call{method: "GET", path: at("configuration-versions", r.ID)})
		if err != nil {
			return "", b.explain(err)
		}
		var v struct {
			Status string
			Error  string `json:"error-message"`
		}
		if err := now.attributes(&v); err != nil {
			return "", b.explain(err)
		}
		switch v.Status {
		case "uploaded":
			return r.ID, nil
		case "errored":
			return "", &backend.Error{Answer: b.Host + ": the service could not use the configuration: " + v.Error}
		}
		if err := b.Pause(ctx, n); err != nil {
			return "", err
		}
	}
	return "", &backend.Error{Answer: b.Host + ": the service did not take the configuration in time", Advice: "Try again later."}
}

// Pause waits before the nth repetition of a request, longer each time.
func (b *Backend) Pause(ctx context.Context, n int) error {
	return b.s.Sleep(ctx, min(100*time.Millisecond<<min(n, 10), 3*time.Second))
}

// CreateRun creates a run.
func (b *Backend) CreateRun(ctx context.Context, q RunRequest) (*Run, error) {
	attributes := map[string]any{"refresh": q.Refresh, "auto-apply": q.AutoApply}
	for name, on := range map[string]bool{"is-destroy": q.Destroy, "refresh-only": q.RefreshOnly, "save-plan": q.Save, "allow-config-generation": q.Generate} {
		if on {
			attributes[name] = true
		}
	}
	for name, list := range map[string][]string{"target-addrs": q.Targets, "replace-addrs": q.Replace} {
		if len(list) > 0 {
			attributes[name] = list
		}
	}
	if q.Message != "" {
		attributes["message"] = q.Message
	}
	if len(q.Variables) > 0 {
		attributes["variables"] = q.Variables
	}
	r, _, err := b.document(ctx, call{method: "POST", path: "runs", body: document{sending{Type: "runs", Attributes: attributes, Relationships: map[string]sendingRefs{
		"workspace":             {ref{q.WorkspaceID, "workspaces"}},
		"configuration-version": {ref{q.ConfigID, "configuration-versions"}},
	}}}})
	if err != nil {
		return nil, b.explain(err)
	}
	out, err := runOf(r)
	return out, b.explain(err)
}

// Run reads a run.
func (b *Backend) Run(ctx context.Context, id string) (*Run, error) {
	r, _, err := b.document(ctx, call{method: "GET", path: at("runs", id)})
	if err != nil {
		return nil, b.explain(err)
	}
	out, err := runOf(r)
	return out, b.explain(err)
}

// Act performs an action on a run: apply, discard, cancel or force-cancel.
func (b *Backend) Act(ctx context.Context, id, action string) error {
	_, err := b.send(ctx, call{method: "POST", path: at("runs", id, "actions", action), body: map[string]any{}})
	return b.explain(err)
}

// A Phase is the plan or the apply of a run.
type Phase struct {
	Status string
	Log    string `json:"log-read-url"`
}

// Over reports whether the log is complete.
func (p *Phase) Over() bool {
	return slices.Contains([]string{"finished", "errored", "canceled", "unreachable"}, p.Status)
}

// Plan reads the plan of a run.
func (b *Backend) Plan(ctx context.Context, id string) (*Phase, error) {
	return b.phase(ctx, "plans", id)
}

// Apply reads the apply of a run.
func (b *Backend) Apply(ctx context.Context, id string) (*Phase, error) {
	return b.phase(ctx, "applies", id)
}

func (b *Backend) phase(ctx context.Context, kind, id string) (*Phase, error) {
	r, _, err := b.document(ctx, call{method: "GET", path: at(kind, id)})
	if err != nil {
		return nil, b.explain(err)
	}
	p := &Phase{}
	return p, b.explain(r.attributes(p))
}

// The bytes that mark the beginning and the end of a log.
const (
	logBegins = "\x02"
	logEnds   = "\x03"
)

// Log reads a part of a log from an offset. end reports whether the log is complete.
func (b *Backend) Log(ctx context.Context, p *Phase, offset int) (text []byte, next int, end bool, err error) {
	u, err := url.Parse(p.Log)
	if err != nil || p.Log == "" {
		return nil, offset, false, b.explain(errors.New("the service gave no address of the log"))
	}
	q := u.Query()
	q.Set("limit", "65536")
	q.Set("offset", strconv.Itoa(offset))
	u.RawQuery = q.Encode()
	resp, err := b.blob(ctx, "GET", u.String(), nil)
	if err != nil {
		if IsStatus(err, http.StatusNotFound) { // nothing was written yet
			return nil, offset, false, nil
		}
		return nil, offset, false, b.explain(err)
	}
	text = resp.Body
	next = offset + len(text)
	if offset == 0 {
		text = bytes.TrimPrefix(text, []byte(logBegins))
	}
	text, end = bytes.CutSuffix(text, []byte(logEnds))
	return text, next, end, nil
}

// PlanJSON returns the plan in JSON. If the user may read only the redacted one, it returns
// that. It returns nil if there is none.
func (b *Backend) PlanJSON(ctx context.Context, id string) ([]byte, error) {
	var last error
	for _, form := range []string{"json-output", "json-output-redacted"} {
		resp, err := b.send(ctx, call{method: "GET", path: at("plans", id, form)})
		if err == nil && len(resp.Body) > 0 {
			return resp.Body, nil
		}
		last = err
	}
	if IsStatus(last, http.StatusNotFound) {
		last = nil
	}
	return nil, b.explain(last)
}

// Redacted returns the plan without sensitive values, with the schemas of its providers. It
// returns nil if the service has none.
func (b *Backend) Redacted(ctx context.Context, id string) ([]byte, error) {
	resp, err := b.send(ctx, call{method: "GET", path: at("plans", id, "json-output-redacted")})
	if err != nil || len(resp.Body) == 0 {
		return nil, b.explain(err)
	}
	return resp.Body, nil
}

// A CostEstimate is an estimate of the monthly cost of a plan.
type CostEstimate struct {
	Status    string
	Prior     string `json:"prior-monthly-cost"`
	Proposed  string `json:"proposed-monthly-cost"`
	Delta     string `json:"delta-monthly-cost"`
	Resources int    `json:"resources-count"`
	Matched   int    `json:"matched-resources-count"`
	Error     string `json:"error-message"`
}

// CostEstimate reads a cost estimate.
func (b *Backend) CostEstimate(ctx context.Context, id string) (*CostEstimate, error) {
	r, _, err := b.document(ctx, call{method: "GET", path: at("cost-estimates", id)})
	if err != nil {
		return nil, b.explain(err)
	}
	c := &CostEstimate{}
	return c, b.explain(r.attributes(c))
}

// A PolicyCheck is the result of checking a plan against policies.
type PolicyCheck struct {
	ID      string
	Status  string
	Scope   string
	Actions struct {
		Overridable bool `json:"is-overridable"`
	}
	Permissions map[string]bool
}

// PolicyCheck reads a policy check.
func (b *Backend) PolicyCheck(ctx context.Context, id string) (*PolicyCheck, error) {
	r, _, err := b.document(ctx, call{method: "GET", path: at("policy-checks", id)})
	if err != nil {
		return nil, b.explain(err)
	}
	p := &PolicyCheck{}
	err = r.attributes(p)
	p.ID = r.ID
	return p, b.explain(err)
}

// PolicyOutput returns the output of a policy check.
func (b *Backend) PolicyOutput(ctx context.Context, id string) ([]byte, error) {
	resp, err := b.send(ctx, call{method: "GET", path: at("policy-checks", id, "output")})
	if err != nil {
		return nil, b.explain(err)
	}
	return resp.Body, nil
}

// OverridePolicy continues a run in spite of a failed policy check.
func (b *Backend) OverridePolicy(ctx context.Context, id string) error {
	_, err := b.send(ctx, call{method: "POST", path: at("policy-checks", id, "actions", "override"), body: map[string]any{}})
	return b.explain(err)
}

// A Stage is a stage of run tasks.
type Stage struct {
	ID      string
	Stage   string
	Status  string
	Actions struct {
		Overridable bool `json:"is-overridable"`
	}
	Tasks []Task `json:"-"`
}

// A Task is the result of a task in a stage.
type Task struct {
	Name        string `json:"task-name"`
	Status      string
	Message     string
	URL         string
	Enforcement string `json:"workspace-task-enforcement-level"`
}

// Stage reads a stage with its results.
func (b *Backend) Stage(ctx context.Context, id string) (*Stage, error) {
	r, also, err := b.document(ctx, call{method: "GET", path: at("task-stages", id), query: url.Values{"include": {"task_results"}}})
	if err != nil {
		return nil, b.explain(err)
	}
	s := &Stage{}
	if err := r.attributes(s); err != nil {
		return nil, b.explain(err)
	}
	s.ID = r.ID
	for _, id := range r.many("task-results") {
		if one, ok := included(also, id); ok {
			var t Task
			if err := one.attributes(&t); err != nil {
				return nil, b.explain(err)
			}
			s.Tasks = append(s.Tasks, t)
		}
	}
	return s, nil
}

// OverrideStage continues a run in spite of a failed task.
func (b *Backend) OverrideStage(ctx context.Context, id string) error {
	_, err := b.send(ctx, call{method: "POST", path: at("task-stages", id, "actions", "override"), body: map[string]any{}})
	return b.explain(err)
}

// Warnings returns the service's warnings about a run before it begins.
func (b *Backend) Warnings(ctx context.Context, id string) ([]string, error) {
	r, err := b.send(ctx, call{method: "GET", path: at("runs", id, "run-events")})
	if IsStatus(err, http.StatusNotFound) {
		return nil, nil // a service without events
	}
	if err != nil {
		return nil, b.explain(err)
	}
	var doc struct{ Data []resource }
	if err := json.Unmarshal(r.Body, &doc); err != nil {
		return nil, b.explain(errors.New("the events of the run are not of the expected form"))
	}
	var out []string
	for _, e := range doc.Data {
		var v struct{ Action, Description string }
		if e.attributes(&v) == nil && v.Action == "warning" && v.Description != "" {
			out = append(out, v.Description)
		}
	}
	return out, nil
}

// Address returns the URL of a run's page.
func (b *Backend) Address(w *Workspace, run string) string {
	return fmt.Sprintf("https://%s/app/%s/%s/runs/%s", b.Host, b.Organization, w.Name, run)
}

// IsCloud reports whether a cloud block is configured, which supports saved plans.
func (b *Backend) IsCloud() bool { return b.kind == cloudName }
