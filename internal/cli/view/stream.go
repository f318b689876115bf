package view

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// StreamVersion is the version of the stream's format (reference section 7.6).
const StreamVersion = "1.2"

// A Stream writes one JSON object per line, for programs. Its methods may be called
// concurrently. All methods except Pass do nothing if s is nil.
type Stream struct {
	Out      io.Writer
	Now      func() time.Time
	Messages diag.JSON
	Version  string // language version, which tools that parse OpenTofu's output read
	Unit     string // first field of every line; "" for none

	of       *Stream // the stream that this is a part of; nil for none
	mu       sync.Mutex
	applying bool
}

// For returns a part of the stream for a unit. "" keeps the unit of s. Messages of the part
// refer to the files of set. Parts write whole lines, one at a time.
func (s *Stream) For(unit string, set *source.Set) *Stream {
	if s == nil {
		return nil
	}
	return &Stream{Out: s.Out, Now: s.Now, Messages: JSONMessages(set, s.Messages.Names), Version: s.Version, Unit: cmp.Or(unit, s.Unit), of: cmp.Or(s.of, s)}
}

type fields = map[string]any

// line writes one object. typ is "" for a plain log line.
func (s *Stream) line(level, message, typ string, more fields) {
	if more == nil {
		more = make(fields, 5)
	}
	more["@level"], more["@message"], more["@module"] = level, message, "tofu.ui"
	more["@timestamp"] = s.Now().Format("2006-01-02T15:04:05.000000Z07:00")
	if typ != "" {
		more["type"] = typ
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(more); err != nil {
		return // only if a value of the caller has no JSON form
	}
	text := b.Bytes()
	if s.Unit != "" {
		name, err := json.Marshal(s.Unit)
		if err != nil {
			return // cannot happen
		}
		text = slices.Concat([]byte(`{"unit":`), name, []byte(","), text[1:])
	}
	whole := cmp.Or(s.of, s)
	whole.mu.Lock()
	defer whole.mu.Unlock()
	_, _ = s.Out.Write(text)
}

// Pass writes lines that come from the stream of another process.
func (s *Stream) Pass(lines string) {
	whole := cmp.Or(s.of, s)
	whole.mu.Lock()
	defer whole.mu.Unlock()
	_, _ = io.WriteString(s.Out, lines)
}

// Start writes the first line.
func (s *Stream) Start() {
	if s != nil {
		s.line("info", s.Messages.Names.Product()+" "+s.Version, "version", fields{"tofu": s.Version, "ui": StreamVersion})
	}
}

// Applying marks the beginning of the apply of a plan.
func (s *Stream) Applying() {
	if s != nil {
		s.mu.Lock()
		s.applying = true
		s.mu.Unlock()
	}
}

// Log writes a line of text.
func (s *Stream) Log(message string) {
	if s != nil {
		s.line("info", message, "", nil)
	}
}

// Typed writes a line of a type, with additional fields.
func (s *Stream) Typed(message, typ string, more map[string]any) {
	if s != nil {
		s.line("info", message, typ, more)
	}
}

// TypedError is Typed for a line about an error.
func (s *Stream) TypedError(message, typ string, more map[string]any) {
	if s != nil {
		s.line("error", message, typ, more)
	}
}

// Tell writes messages.
func (s *Stream) Tell(ds diag.List) {
	s.TellAbout(ds, nil)
}

// TellAbout writes messages with additional fields.
func (s *Stream) TellAbout(ds diag.List, about map[string]any) {
	if s == nil {
		return
	}
	for _, m := range ds {
		level, word := "error", "Error: "
		if m.Severity == diag.Warning {
			level, word = "warn", "Warning: "
		}
		o := s.Messages.Object(m)
		f := fields{"diagnostic": o}
		maps.Copy(f, about)
		s.line(level, word+o.Summary, "diagnostic", f)
	}
}

// A resourceName is a resource in the stream.
type resourceName struct {
	Addr            string `json:"addr"`
	Module          string `json:"module"`
	Resource        string `json:"resource"`
	ImpliedProvider string `json:"implied_provider"`
	ResourceType    string `json:"resource_type"`
	ResourceName    string `json:"resource_name"`
	ResourceKey     any    `json:"resource_key"`
}

func nameOf(a addr.Instance) resourceName {
	n := resourceName{
		Addr: a.String(), Module: string(a.Module), Resource: a.Resource.String() + a.Key.String(),
		ImpliedProvider: config.ImpliedProvider(a.Resource.Type), ResourceType: a.Resource.Type, ResourceName: a.Resource.Name,
	}
	switch a.Key.Kind {
	case addr.IntKey:
		n.ResourceKey = a.Key.Int
	case addr.StringKey:
		n.ResourceKey = a.Key.Str
	}
	return n
}

type hook struct {
	Resource    resourceName `json:"resource"`
	Action      string       `json:"action,omitempty"`
	Provisioner string       `json:"provisioner,omitempty"`
	Output      *string      `json:"output,omitempty"`
	IDKey       string       `json:"id_key,omitempty"`
	IDValue     string       `json:"id_value,omitempty"`
	Elapsed     *float64     `json:"elapsed_seconds,omitempty"`
	Msg         string       `json:"Msg,omitempty"` // as OpenTofu spells it
}

var eventTypes = map[event.Kind]string{
	event.RefreshStart: "refresh_start", event.RefreshDone: "refresh_complete",
	event.ReadStart: "apply_start", event.ReadDone: "apply_complete",
	event.ApplyStart: "apply_start", event.ApplyProgress: "apply_progress", event.ApplyDone: "apply_complete", event.ApplyError: "apply_errored",
	event.ProvisionStart: "provision_start", event.ProvisionOutput: "provision_progress", event.ProvisionDone: "provision_complete", event.ProvisionError: "provision_errored",
	event.OpenStart: "ephemeral_action_started", event.OpenDone: "ephemeral_action_complete",
	event.RenewStart: "ephemeral_action_started", event.RenewDone: "ephemeral_action_complete",
	event.CloseStart: "ephemeral_action_started", event.CloseDone: "ephemeral_action_complete",
}

// Event writes an event.
func (s *Stream) Event(e event.Event) {
	if s == nil {
		return
	}
	if e.Kind == event.Message {
		if e.Diag != nil {
			s.Tell(diag.List{e.Diag})
		}
		return
	}
	if e.Kind == event.ImportStart || e.Kind == event.ImportDone || e.Kind == event.OpenDeferred {
		return // the format has no lines for these
	}
	h := hook{Resource: nameOf(e.Object.Instance), Provisioner: e.Provisioner, IDKey: e.IDKey, IDValue: e.IDValue}
	elapsed := elapsedSeconds(e.Elapsed)
	switch e.Kind {
	case event.ApplyStart:
		h.Action = actionName(e.Op)
	case event.ApplyProgress, event.ApplyDone, event.ApplyError:
		h.Action, h.Elapsed = actionName(e.Op), &elapsed
		if e.Kind != event.ApplyDone || e.Op == plan.Delete {
			h.IDKey, h.IDValue = "", ""
		}
	case event.ReadStart:
		h.Action = "read"
	case event.ReadDone:
		h.Action, h.Elapsed = "read", &elapsed
	case event.ProvisionOutput:
		h.Output = &e.Text
	case event.OpenStart, event.OpenDone, event.RenewStart, event.RenewDone, event.CloseStart, event.CloseDone:
		h.Msg = ephemeralText(e.Kind)
	}
	s.mu.Lock()
	applying := s.applying
	s.mu.Unlock()
	s.line("info", jsonText(e, applying), eventTypes[e.Kind], fields{"hook": h})
}

// actionName returns the name of an operation in the stream.
func actionName(o plan.Op) string {
	switch {
	case o == plan.NoOp:
		return "noop"
	case o == plan.Forget:
		return "remove"
	case o.IsReplace():
		return "replace"
	}
	return o.String()
}

// streamTransfer is a move between the states of units.
type streamTransfer struct {
	Resource  resourceName `json:"resource"`
	Direction string       `json:"direction"` // "to" or "from"
	Unit      string       `json:"unit"`
	Other     resourceName `json:"other_resource"`
}

type streamChange struct {
	Resource         resourceName  `json:"resource"`
	PreviousResource *resourceName `json:"previous_resource,omitempty"`
	Action           string        `json:"action"`
	Reason           string        `json:"reason,omitempty"`
	Importing        *streamImport `json:"importing,omitempty"`
	GeneratedConfig  string        `json:"generated_config,omitempty"`
}

type streamImport struct {
	ID       string          `json:"id,omitempty"`
	Identity json.RawMessage `json:"identity,omitempty"`
}

var streamReasons = map[plan.Reason]string{
	plan.ReplaceCannotUpdate: "cannot_update", plan.ReplaceTainted: "tainted", plan.ReplaceByRequest: "requested", plan.ReplaceByTriggers: "replace_triggered_by",
}

// Plan writes a line for each change found and each change planned, the summary and the
// outputs.
func (s *Stream) Plan(p *plan.Plan) {
	if s == nil || p.Refused {
		return
	}
	for _, c := range plan.Shown(p.Drift) {
		if c.Op != plan.NoOp || p.Mode == plan.RefreshOnly && c.Moved() {
			s.change("resource_drift", c)
		}
	}
	s.changes(p, true)
	for _, d := range p.Deferred {
		s.line("info", d.String(), "deferred", fields{"address": d.Addr, "reason": d.Reason.Text(), "at": fields{"filename": d.At.Filename, "line": d.At.Start.Line, "column": d.At.Start.Column}, "waits_for": WaitsForObjects(d.Objects)})
	}
	s.Summary("plan", p.Counts())
	s.Reads(p.Reads)
	outputs := make(fields)
	for _, o := range p.Outputs {
		if o.Left {
			continue
		}
		outputs[o.Name] = streamOutput{o.AfterSensitive || o.BeforeSensitive, actionName(o.Op)}
	}
	if len(outputs) > 0 {
		s.line("info", "Outputs: "+strconv.Itoa(len(outputs)), "outputs", fields{"outputs": outputs})
	}
}

// WaitsForObjects returns the objects of a configuration that a deferred object waits for, in
// the form of JSON events.
func WaitsForObjects(addresses []string) []map[string]any {
	out := []map[string]any{}
	for _, a := range addresses {
		out = append(out, map[string]any{"address": a})
	}
	return out
}

// Accepted writes a line for drift that the list of accepted drift contains.
func (s *Stream) Accepted(a plan.AcceptedDrift) {
	if s == nil {
		return
	}
	by := make([]fields, len(a.By))
	for i, e := range a.By {
		by[i] = fields{"file": e.File, "line": e.Line, "reason": e.Reason}
		if e.Expires != "" {
			by[i]["expires"] = e.Expires
		}
	}
	s.line("info", a.Address+": Drift accepted", "accepted_drift", fields{"drift": fields{"address": a.Address, "attributes": append([]string{}, a.Attributes...), "accepted_by": by}})
}

// Changes writes a line for each planned change, at the start of the apply of a saved plan. It
// leaves out moves and imports without a change, which the plan has reported.
func (s *Stream) Changes(p *plan.Plan) {
	if s != nil {
		s.changes(p, false)
	}
}

func (s *Stream) changes(p *plan.Plan, all bool) {
	for _, t := range p.Transfers {
		other, text := nameOf(t.Other), ": Plan to move from the unit "
		move := streamTransfer{Resource: nameOf(t.Addr), Unit: t.Unit, Other: other, Direction: "from"}
		if t.Out {
			move.Direction, text = "to", ": Plan to move to the unit "
		}
		s.line("info", t.Addr.String()+text+t.Unit, "planned_state_move", fields{"move": move})
	}
	if p.Mode == plan.RefreshOnly {
		return
	}
	for _, c := range plan.Shown(p.Changes) {
		if c.Op != plan.NoOp || all && (c.Moved() || c.Import != nil) {
			s.change("planned_change", c)
		}
	}
}

func (s *Stream) change(typ string, c *plan.Change) {
	sc := streamChange{Resource: nameOf(c.Addr), Action: actionName(c.Op)}
	if short, ok := streamReasons[c.Reason]; ok {
		sc.Reason = short
	} else {
		sc.Reason = string(c.Reason)
	}
	text := ": Plan to " + sc.Action
	if typ == "resource_drift" {
		text, sc.Reason = ": Drift detected ("+sc.Action+")", ""
	}
	if c.Moved() {
		prev := nameOf(c.Prev)
		sc.PreviousResource = &prev
		if c.Op == plan.NoOp {
			sc.Action = "move"
			text = ": Plan to move"
			if typ == "resource_drift" {
				text = ": Drift detected (move)"
			}
		}
	}
	if c.Import != nil {
		sc.Importing, sc.GeneratedConfig = importOf(c.Import), strings.TrimSuffix(c.Import.GeneratedConfig, "\n")
		if c.Op == plan.NoOp {
			sc.Action, text = "import", ": Plan to import"
		}
	}
	s.line("info", c.Addr.String()+text, typ, fields{"change": sc})
}

func importOf(i *plan.Import) *streamImport {
	out := &streamImport{ID: i.ID}
	if i.Identity != cty.NilVal {
		if src, err := ctyjson.Marshal(i.Identity, i.Identity.Type()); err == nil {
			out.Identity = src
		}
	}
	return out
}

type streamOutput struct {
	Sensitive bool   `json:"sensitive"`
	Action    string `json:"action"`
}

type streamCounts struct {
	Add       int    `json:"add"`
	Change    int    `json:"change"`
	Import    int    `json:"import"`
	Remove    int    `json:"remove"`
	Forget    int    `json:"forget"`
	Operation string `json:"operation"`
}

// Summary writes the counts of a plan, an apply or a destroy.
func (s *Stream) Summary(operation string, n plan.Counts) {
	if s == nil {
		return
	}
	text := "Plan: " + Summary(n)
	if operation != "plan" {
		text = Complete(operation, n)
	}
	s.line("info", text, "change_summary", fields{"changes": streamCounts{n.Add, n.Change, n.Import, n.Destroy, n.Forget, operation}})
}

// Reads writes the number of objects that a plan did not refresh. It writes nothing if all
// were refreshed.
func (s *Stream) Reads(n plan.Reads) {
	if s != nil && n != (plan.Reads{}) {
		text := cmp.Or(strings.Join(n.Lines(), "; "), "Everything was read")
		s.line("info", text, "refresh_summary", fields{"refresh": fields{
			"objects": n.Objects, "not_refreshed": n.NotRefreshed(), "data_sources": n.Data, "data_not_read": n.Kept,
		}})
	}
}

// Complete returns the line at the end of an apply or a destroy.
func Complete(operation string, n plan.Counts) string {
	if operation == "destroy" {
		return "Destroy complete! Resources: " + strconv.Itoa(n.Destroy) + " destroyed."
	}
	s := "Apply complete! Resources: "
	if n.Import > 0 {
		s += strconv.Itoa(n.Import) + " imported, "
	}
	s += strconv.Itoa(n.Add) + " added, " + strconv.Itoa(n.Change) + " changed, " + strconv.Itoa(n.Destroy) + " destroyed"
	if n.Forget > 0 {
		s += ", " + strconv.Itoa(n.Forget) + " forgotten"
	}
	return s + "."
}

// A JSONOutput is an output in JSON.
type JSONOutput struct {
	Sensitive  bool            `json:"sensitive"`
	Deprecated string          `json:"deprecated,omitempty"`
	Type       json.RawMessage `json:"type,omitempty"`
	Value      json.RawMessage `json:"value,omitempty"`
}

// JSONOutputs converts outputs. It omits the values of sensitive outputs unless reveal is set.
func JSONOutputs(outputs map[string]*state.Output, reveal bool) (map[string]JSONOutput, error) {
	out := make(map[string]JSONOutput, len(outputs))
	for name, o := range outputs {
		ty, err := ctyjson.MarshalType(o.Value.Type())
		if err != nil {
			return nil, err
		}
		v, err := ctyjson.Marshal(o.Value, o.Value.Type())
		if err != nil {
			return nil, err
		}
		j := JSONOutput{Sensitive: o.Sensitive, Deprecated: o.Deprecated, Type: ty, Value: v}
		if o.Sensitive && !reveal {
			j.Value = nil
		}
		out[name] = j
	}
	return out, nil
}

// Outputs writes the outputs after an apply.
func (s *Stream) Outputs(outputs map[string]*state.Output) {
	if s == nil {
		return
	}
	if m, err := JSONOutputs(outputs, false); err == nil {
		s.line("info", "Outputs: "+strconv.Itoa(len(m)), "outputs", fields{"outputs": m})
	}
}
