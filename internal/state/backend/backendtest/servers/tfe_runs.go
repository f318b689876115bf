package servers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
)

// A TFEConfig is an uploaded configuration.
type TFEConfig struct {
	ID          string
	Speculative bool
	Provisional bool
	Files       []string // sorted

	uploaded bool
}

// A TFERun is a run of the service. TFEServer.Runs sets the first fields, which determine
// the course of the run.
type TFERun struct {
	PlanLog, ApplyLog string // complete logs
	Changes           bool   // the plan has changes
	PlanFails         bool
	ApplyFails        bool
	Cost              *TFECost
	Policies          []TFEPolicy
	Stages            []TFEStage
	Events            []string // warnings about the run
	JSONPlan          string   // the plan in JSON
	Redacted          string   // the same without sensitive values; "" means JSONPlan
	Late              int      // the number of reads before an action shows its effect
	Stuck             string   // the status in which the run stays until it is cancelled
	Queued            int      // the number of earlier runs in the organization's queue

	ID, Workspace, Config string
	Status                string
	Sent                  map[string]any // the received attributes
	AutoApply, PlanOnly   bool
	Saved                 bool
	Comment               string // the comment of the last action

	statuses []string // later statuses
	past     []string
	forced   bool
}

// A TFECost is a cost estimate.
type TFECost struct{ Prior, Proposed, Delta string }

// A TFEPolicy is a policy check.
type TFEPolicy struct {
	Status string // passed, soft_failed, hard_failed
	Log    string
}

// A TFEStage is a stage of run tasks.
type TFEStage struct {
	Stage  string // pre_plan, post_plan, pre_apply
	Status string // passed, failed, awaiting_override
	Task   string // the name of the task
}

// Run returns a copy of the last run; nil if there is none.
func (s *TFEServer) Run() *TFERun {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last *TFERun
	for _, r := range s.runs {
		if last == nil || r.ID > last.ID {
			last = r
		}
	}
	if last == nil {
		return nil
	}
	c := *last
	return &c
}

// Uploaded returns the last uploaded configuration.
func (s *TFEServer) Uploaded() *TFEConfig {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last *TFEConfig
	for _, c := range s.configs {
		if last == nil || c.ID > last.ID {
			last = c
		}
	}
	return last
}

// begin sets the statuses through which a run goes by itself.
func (r *TFERun) begin() {
	r.statuses = []string{"plan_queued"}
	for _, st := range r.Stages {
		if st.Stage == "pre_plan" {
			r.statuses = append(r.statuses, "pre_plan_running")
			if st.Status == "failed" {
				r.statuses = append(r.statuses, "errored")
				return
			}
			r.statuses = append(r.statuses, "pre_plan_completed")
		}
	}
	r.statuses = append(r.statuses, "planning")
	if r.PlanFails {
		r.statuses = append(r.statuses, "errored")
		return
	}
	if !r.Changes {
		r.statuses = append(r.statuses, "planned_and_finished")
		return
	}
	r.statuses = append(r.statuses, "planned")
	for _, st := range r.Stages {
		if st.Stage == "post_plan" {
			r.statuses = append(r.statuses, "post_plan_running")
			switch st.Status {
			case "failed":
				r.statuses = append(r.statuses, "errored")
				return
			case "awaiting_override":
				r.statuses = append(r.statuses, "post_plan_awaiting_decision")
				return
			}
			r.statuses = append(r.statuses, "post_plan_completed")
		}
	}
	r.afterStages()
}

func (r *TFERun) afterStages() {
	if r.Cost != nil {
		r.statuses = append(r.statuses, "cost_estimating", "cost_estimated")
	}
	for _, p := range r.Policies {
		r.statuses = append(r.statuses, "policy_checking")
		switch p.Status {
		case "hard_failed":
			r.statuses = append(r.statuses, "errored")
			return
		case "soft_failed":
			if r.PlanOnly {
				r.statuses = append(r.statuses, "policy_soft_failed")
				return
			}
			r.statuses = append(r.statuses, "policy_override")
			return
		}
		r.statuses = append(r.statuses, "policy_checked")
	}
	r.end()
}

// end appends the statuses after the last check.
func (r *TFERun) end() {
	switch {
	case r.PlanOnly:
		r.statuses = append(r.statuses, "planned_and_finished")
	case r.Saved:
		r.statuses = append(r.statuses, "planned_and_saved")
	case r.AutoApply:
		r.confirm()
	}
}

func (r *TFERun) confirm() {
	r.statuses = append(r.statuses, "apply_queued", "applying")
	if r.ApplyFails {
		r.statuses = append(r.statuses, "errored")
		return
	}
	r.statuses = append(r.statuses, "applied")
}

func (r *TFERun) advance() {
	if r.Stuck != "" && r.Status == r.Stuck || len(r.statuses) == 0 {
		return
	}
	if r.statuses[0] == "apply_queued" && r.Late > 0 {
		r.Late--
		return
	}
	r.Status, r.statuses = r.statuses[0], r.statuses[1:]
	r.past = append(r.past, r.Status)
}

// reached reports whether a run has reached one of the statuses, or is over.
func (r *TFERun) reached(statuses ...string) bool {
	return r.over() || slices.ContainsFunc(statuses, func(s string) bool { return slices.Contains(r.past, s) })
}

func (r *TFERun) confirmable() bool {
	return len(r.statuses) == 0 && slices.Contains([]string{"planned", "cost_estimated", "policy_checked", "planned_and_saved", "post_plan_completed"}, r.Status)
}

func (r *TFERun) over() bool {
	return slices.Contains([]string{"applied", "errored", "discarded", "canceled", "planned_and_finished", "force_canceled", "policy_soft_failed"}, r.Status)
}

func (q *tfeRequest) run(parts []string) {
	switch {
	case q.r.Method == "POST" && len(parts) == 1 && parts[0] == "runs":
		q.newRun()
		return
	case parts[0] == "configuration-versions" && len(parts) == 2 && q.configs[parts[1]] != nil:
		q.data(q.configDoc(q.configs[parts[1]]))
		return
	}
	if len(parts) < 2 {
		q.fail(http.StatusNotFound, "not found", "")
		return
	}
	r := q.runs[parts[1]]
	for _, other := range q.runs {
		for i := range max(len(other.Policies), len(other.Stages)) + 1 {
			if slices.Contains([]string{"plan-" + other.ID, "apply-" + other.ID, "ce-" + other.ID, fmt.Sprintf("polchk-%s-%d", other.ID, i), fmt.Sprintf("ts-%s-%d", other.ID, i)}, parts[1]) {
				r = other
			}
		}
	}
	if r == nil {
		q.fail(http.StatusNotFound, "not found", "")
		return
	}
	what := parts[0]
	if len(parts) > 2 {
		what += "/" + parts[len(parts)-1]
	}
	base := "https://" + q.Host + "/blob/log/"
	switch q.r.Method + " " + what {
	case "GET runs":
		r.advance()
		q.data(q.runDoc(r))
	case "GET runs/run-events":
		var out []any
		for i, text := range r.Events {
			out = append(out, object{"id": fmt.Sprintf("re-%d", i), "type": "run-events", "attributes": object{"action": "warning", "description": text}})
		}
		q.send(http.StatusOK, object{"data": append([]any{}, out...)})
	case "GET plans":
		q.data(object{"id": parts[1], "type": "plans", "attributes": object{"status": r.planStatus(), "has-changes": r.Changes, "log-read-url": base + "plan/" + r.ID, "resource-additions": 1}})
	case "GET plans/json-output", "GET plans/json-output-redacted":
		text := r.JSONPlan
		if parts[2] == "json-output-redacted" && r.Redacted != "" {
			text = r.Redacted
		}
		if text == "" {
			q.w.WriteHeader(http.StatusNoContent)
			return
		}
		io.WriteString(q.w, text)
	case "GET applies":
		status := "finished"
		switch {
		case r.Status == "errored" || r.Status == "canceled":
			status = "errored"
		case !r.over():
			status = "running"
		}
		q.data(object{"id": parts[1], "type": "applies", "attributes": object{"status": status, "log-read-url": base + "apply/" + r.ID}})
	case "GET cost-estimates":
		if !r.reached("cost_estimated") {
			r.advance() // the client is waiting for the estimate
		}
		status := "queued"
		if r.reached("cost_estimated") {
			status = "finished"
		}
		q.data(object{"id": parts[1], "type": "cost-estimates", "attributes": object{"status": status, "prior-monthly-cost": r.Cost.Prior, "proposed-monthly-cost": r.Cost.Proposed, "delta-monthly-cost": r.Cost.Delta, "resources-count": 3, "matched-resources-count": 2, "unmatched-resources-count": 1}})
	case "GET policy-checks", "GET policy-checks/output", "POST policy-checks/override":
		q.policy(r, parts)
	case "GET task-stages":
		q.stage(r, parts[1])
	case "POST task-stages/override":
		if r.Status == "post_plan_awaiting_decision" {
			r.Status = "post_plan_completed"
			r.Stages[0].Status = "passed"
			r.afterStages()
		}
		q.stage(r, parts[1])
	case "POST runs/apply":
		if !r.confirmable() {
			q.fail(http.StatusConflict, "conflict", "run is not currently confirmable")
			return
		}
		r.confirm()
		q.w.WriteHeader(http.StatusAccepted)
	case "POST runs/discard":
		if r.over() {
			q.fail(http.StatusConflict, "conflict", "run cannot be discarded")
			return
		}
		r.Status, r.statuses = "discarded", nil
		q.w.WriteHeader(http.StatusAccepted)
	case "POST runs/cancel", "POST runs/force-cancel":
		if r.over() {
			q.fail(http.StatusConflict, "conflict", "run cannot be canceled")
			return
		}
		r.Status, r.statuses, r.forced = "canceled", nil, parts[len(parts)-1] == "force-cancel"
		q.w.WriteHeader(http.StatusAccepted)
	default:
		q.fail(http.StatusNotFound, "not found", "")
	}
}

func (r *TFERun) planStatus() string {
	switch r.Status {
	case "pending", "plan_queued", "pre_plan_running", "pre_plan_completed":
		return "pending"
	case "planning":
		return "running"
	case "errored":
		if r.PlanFails {
			return "errored"
		}
	case "canceled":
		return "canceled"
	}
	return "finished"
}

func (q *tfeRequest) policy(r *TFERun, parts []string) {
	i, _ := strconv.Atoi(parts[1][len(parts[1])-1:])
	p := &r.Policies[i]
	switch {
	case parts[len(parts)-1] == "output":
		io.WriteString(q.w, p.Log)
		return
	case parts[len(parts)-1] == "override":
		p.Status = "overridden"
		r.Status = "policy_checked"
		r.end()
	}
	checked := []string{"policy_checked", "policy_override", "policy_soft_failed"}
	if !r.reached(checked...) {
		r.advance() // the client is waiting for the check
	}
	status, soft := "queued", p.Status == "soft_failed"
	if r.reached(checked...) {
		status = p.Status
	}
	q.data(object{"id": parts[1], "type": "policy-checks", "attributes": object{"status": status, "scope": "organization", "actions": object{"is-overridable": soft}, "permissions": object{"can-override": true}, "result": object{"soft-failed": 1, "passed": 1}}})
}

func (q *tfeRequest) stage(r *TFERun, id string) {
	i, _ := strconv.Atoi(id[len(id)-1:])
	st := r.Stages[i]
	result := "passed"
	if st.Status != "passed" {
		result = "failed"
	}
	if !r.reached(st.Stage+"_completed", st.Stage+"_awaiting_decision") {
		st.Status = "running"
	}
	q.send(http.StatusOK, object{
		"data": object{"id": id, "type": "task-stages", "attributes": object{"stage": st.Stage, "status": st.Status, "actions": object{"is-overridable": st.Status == "awaiting_override"}, "permissions": object{"can-override": true, "can-override-tasks": true}},
			"relationships": object{"task-results": object{"data": []any{object{"id": "taskrs-1", "type": "task-results"}}}, "policy-evaluations": object{"data": []any{}}}},
		"included": []any{object{"id": "taskrs-1", "type": "task-results", "attributes": object{"status": result, "message": "looked at", "task-name": st.Task, "url": "https://tasks.example.com/1", "workspace-task-enforcement-level": "mandatory"}}},
	})
}

func (q *tfeRequest) runDoc(r *TFERun) object {
	ref := func(typ, id string) object { return object{"data": object{"id": id, "type": typ}} }
	rel := object{"workspace": ref("workspaces", r.Workspace), "plan": ref("plans", "plan-"+r.ID), "apply": ref("applies", "apply-"+r.ID), "configuration-version": ref("configuration-versions", r.Config), "cost-estimate": object{"data": nil}}
	if r.Cost != nil {
		rel["cost-estimate"] = ref("cost-estimates", "ce-"+r.ID)
	}
	checks, stages := []any{}, []any{}
	for i := range r.Policies {
		checks = append(checks, object{"id": fmt.Sprintf("polchk-%s-%d", r.ID, i), "type": "policy-checks"})
	}
	for i := range r.Stages {
		stages = append(stages, object{"id": fmt.Sprintf("ts-%s-%d", r.ID, i), "type": "task-stages"})
	}
	rel["policy-checks"], rel["task-stages"] = object{"data": checks}, object{"data": stages}
	return object{"id": r.ID, "type": "runs", "relationships": rel, "attributes": object{
		"status": r.Status, "has-changes": r.Changes, "auto-apply": r.AutoApply, "plan-only": r.PlanOnly, "is-destroy": r.Sent["is-destroy"], "save-plan": r.Saved, "message": r.Sent["message"], "refresh-only": r.Sent["refresh-only"], "source": "tfe-api", "created-at": "2026-01-02T03:04:05Z", "position-in-queue": r.Queued,
		"actions":     object{"is-cancelable": !r.over() && !r.confirmable(), "is-confirmable": r.confirmable(), "is-discardable": !r.over(), "is-force-cancelable": false},
		"permissions": object{"can-apply": true, "can-cancel": true, "can-discard": true, "can-force-cancel": true, "can-force-execute": true},
	}}
}

func (q *tfeRequest) newRun() {
	doc, ok := q.sent()
	if !ok {
		return
	}
	ws := q.workspaces[doc.Data.Relationships["workspace"].Data.ID]
	if ws == nil {
		q.fail(http.StatusNotFound, "not found", "")
		return
	}
	r := &TFERun{ID: q.id("run"), Workspace: ws.ID, Config: doc.Data.Relationships["configuration-version"].Data.ID, Status: "pending", Sent: doc.Data.Attributes, AutoApply: doc.bool("auto-apply"), Saved: doc.bool("save-plan"), PlanOnly: doc.bool("plan-only")}
	if c := q.configs[r.Config]; c != nil && c.Speculative {
		r.PlanOnly = true
	}
	if q.Runs != nil {
		q.Runs(r)
	}
	r.begin()
	q.runs[r.ID] = r
	q.created(q.runDoc(r))
}

func (q *tfeRequest) newConfig(ws *TFEWorkspace) {
	doc, ok := q.sent()
	if !ok {
		return
	}
	c := &TFEConfig{ID: q.id("cv"), Speculative: doc.bool("speculative"), Provisional: doc.bool("provisional")}
	q.configs[c.ID] = c
	q.created(q.configDoc(c))
}

func (q *tfeRequest) configDoc(c *TFEConfig) object {
	status := "pending"
	if c.uploaded {
		status = "uploaded"
	}
	return object{"id": c.ID, "type": "configuration-versions", "attributes": object{"status": status, "speculative": c.Speculative, "provisional": c.Provisional, "upload-url": "https://" + q.Host + "/blob/config/" + c.ID}}
}

// runBlob receives configurations and sends logs.
func (q *tfeRequest) runBlob(parts []string) {
	if len(parts) == 2 && parts[0] == "config" && q.r.Method == "PUT" && q.configs[parts[1]] != nil {
		c := q.configs[parts[1]]
		z, err := gzip.NewReader(bytes.NewReader(q.body))
		if err != nil {
			http.Error(q.w, err.Error(), http.StatusBadRequest)
			return
		}
		for tr := tar.NewReader(z); ; {
			h, err := tr.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				http.Error(q.w, err.Error(), http.StatusBadRequest)
				return
			}
			c.Files = append(c.Files, h.Name)
		}
		slices.Sort(c.Files)
		c.uploaded = true
		return
	}
	if len(parts) != 3 || parts[0] != "log" || q.runs[parts[2]] == nil {
		http.NotFound(q.w, q.r)
		return
	}
	r := q.runs[parts[2]]
	if q.r.Method == "GET" && slices.Contains([]string{"plan_queued", "planning", "apply_queued", "applying"}, r.Status) {
		r.advance() // the client is reading the log
	}
	text := "\x02" + r.PlanLog
	finished := r.planStatus() != "pending" && r.planStatus() != "running"
	if parts[1] == "apply" {
		text, finished = "\x02"+r.ApplyLog, r.over()
	}
	if finished {
		text += "\x03"
	}
	v := q.r.URL.Query()
	offset, _ := strconv.Atoi(v.Get("offset"))
	limit, err := strconv.Atoi(v.Get("limit"))
	if err != nil {
		limit = len(text)
	}
	offset = min(offset, len(text))
	io.WriteString(q.w, text[offset:min(offset+limit, len(text))])
}

// module is a registry with one module, "acme/net/test" 1.0.0, which requires a token.
func (q *tfeRequest) module(path string) {
	switch {
	case path == "net.tar.gz":
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		t := tar.NewWriter(z)
		text := `output "name" { value = "net" }` + "\n"
		_ = t.WriteHeader(&tar.Header{Name: "main.tf", Mode: 0o644, Size: int64(len(text))})
		_, _ = io.WriteString(t, text)
		_, _ = t.Close(), z.Close()
		_, _ = q.w.Write(b.Bytes())
	case q.r.Header.Get("Authorization") == "":
		http.Error(q.w, "no token", http.StatusUnauthorized)
	case path == "v1/acme/net/test/versions":
		q.plain(object{"modules": []any{object{"versions": []any{object{"version": "1.0.0"}}}}})
	case path == "v1/acme/net/test/1.0.0/download":
		q.w.Header().Set("X-Terraform-Get", "/modules/net.tar.gz")
		q.w.WriteHeader(http.StatusNoContent)
	default:
		http.NotFound(q.w, q.r)
	}
}
