// Package planjson writes plans, states and configuration as JSON in the form of `show -json`
// of OpenTofu 1.12. It also reads plans of remote services in this form.
//
// Main functions: Plan, State, Configuration and ReadPlan. The one rule: other programs read
// this form, so that member names, their order and omitted members follow section 7.5 of the
// reference. Sensitive values are written in clear text; a separate tree marks them.
package planjson

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/terrace-iac/terrace/internal/plan/relevantattrs"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/schema"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// The versions of the formats.
const (
	PlanVersion  = "1.2"
	StateVersion = "1.0"
)

// Schemas returns the schema of a resource type or of a provider's configuration; nil if it is
// not known.
type Schemas interface {
	Resource(p addr.Provider, mode addr.Mode, typ string) *schema.Resource
	ProviderConfig(p addr.Provider) *schema.Block
}

// Input contains everything that is written about a plan.
type Input struct {
	Plan    *plan.Plan
	Tree    *module.Tree // the configuration; nil omits it
	Schemas Schemas
	Version string // the language version
}

// Plan writes a plan. The configuration is written concurrently with the rest.
func Plan(in Input) (Document, error) {
	w := &planWriter{Input: in}
	c := &configWriter{writer: new(writer), schemas: in.Schemas}
	var priorErr error
	parts := []func(){func() { priorErr = w.objects() }}
	relevant := in.Plan.Relevant
	if in.Tree != nil {
		parts = append(parts, func() {
			c.refs = relevantattrs.References{}
			c.tree(in.Tree)
			relevant = relevantattrs.Attributes(in.Plan, in.Tree, in.Schemas, c.refs)
		})
	}
	parallel.Each(len(parts), len(parts), func(i int) { parts[i]() })
	if err := cmp.Or(priorErr, c.err); err != nil {
		return nil, err
	}
	if in.Tree != nil {
		w.name("configuration")
		w.append(c.document())
	}
	w.relevant(relevant)
	w.rest()
	return w.document(), w.err
}

// objects writes the objects and outputs.
func (w *planWriter) objects() error {
	p := w.Plan
	w.begin('{')
	w.name("format_version")
	w.str(PlanVersion)
	w.name("terraform_version")
	w.str(w.Version)
	w.variables()
	w.name("planned_values")
	w.planned()
	if len(p.Drift) > 0 {
		w.name("resource_drift")
		w.changes(p.Drift)
	}
	if len(p.Changes) > 0 {
		w.name("resource_changes")
		w.changes(p.Changes)
	}
	if len(p.Deferred) > 0 {
		w.deferred()
	}
	w.outputChanges()
	if prior := priorState(p); !prior.Empty() {
		w.name("prior_state")
		return writeState(&w.writer, prior, w.Schemas, w.Version, before(p), false)
	}
	return nil
}

// rest writes the remaining members of the plan.
func (w *planWriter) rest() {
	p := w.Plan
	writeChecks(&w.writer, p.Checks)
	w.name("timestamp")
	w.str(p.Timestamp.UTC().Format("2006-01-02T15:04:05Z"))
	w.name("errored")
	w.bool(p.Errored)
	if len(p.Deferred) > 0 {
		w.name("complete")
		w.bool(false)
	}
	if len(p.Transfers) > 0 {
		w.name("state_moves")
		w.begin('[')
		for _, t := range p.Transfers {
			w.begin('{')
			for _, m := range [][2]string{{"address", t.Addr.String()}, {"direction", map[bool]string{true: "to", false: "from"}[t.Out]}, {"unit", t.Unit}, {"other_address", t.Other.String()}} {
				w.name(m[0])
				w.str(m[1])
			}
			w.end('}')
		}
		w.end(']')
	}
	if n := p.Reads; n != (plan.Reads{}) {
		w.name("refresh")
		w.begin('{')
		w.name("objects")
		w.int(int64(n.Objects))
		w.name("not_refreshed")
		w.int(int64(n.NotRefreshed()))
		w.name("data_sources")
		w.int(int64(n.Data))
		w.name("data_not_read")
		w.int(int64(n.Kept))
		w.end('}')
	}
	w.end('}')
}

// priorState returns the state from which the plan starts. As in the format, its outputs are
// those that planning computed, if known.
func priorState(p *plan.Plan) *state.State {
	prior := p.Prior
	if prior == nil {
		prior = state.New()
	}
	d := prior.Edit()
	for _, o := range p.Outputs {
		if p.Mode != plan.Destroy && o.Op == plan.Delete { // no longer declared: it keeps its value
			continue
		}
		out := &state.Output{Value: o.After, Sensitive: o.AfterSensitive, Deprecated: o.Deprecated}
		if p.Mode == plan.Destroy {
			out.Value, out.Sensitive = o.Before, o.BeforeSensitive
			if old := prior.Outputs[o.Name]; old != nil {
				out.Deprecated = old.Deprecated
			}
		}
		switch {
		case out.Value.IsKnown() && out.Value.IsNull():
			d.SetOutput(o.Name, nil)
		case out.Value.IsWhollyKnown():
			d.SetOutput(o.Name, out)
		}
	}
	return d.Freeze()
}

// before returns the values that the planned changes start from. Unlike the stored values, the
// provider upgraded them, so that they contain no null in place of blocks.
func before(p *plan.Plan) map[addr.Object]cty.Value {
	out := make(map[addr.Object]cty.Value, len(p.Changes))
	for _, c := range p.Changes {
		if c.Before != cty.NilVal && !c.Before.IsNull() {
			out[addr.Object{Instance: c.Addr, Deposed: c.Deposed}] = c.Before
		}
	}
	return out
}

type planWriter struct {
	writer
	Input
	err error
}

// variables writes the root variables. Variables without a given value have their default.
func (w *planWriter) variables() {
	values := maps.Clone(w.Plan.Variables)
	if values == nil {
		values = make(map[string]cty.Value)
	}
	deprecated := make(map[string]string)
	if w.Tree != nil {
		for name, d := range w.Tree.Root.Config.Variables {
			deprecated[name] = d.Deprecated
			if _, ok := values[name]; !ok && !d.Required() {
				values[name] = d.Default
			}
		}
	}
	if len(values) == 0 {
		return
	}
	w.name("variables")
	w.begin('{')
	for _, name := range keys(values) {
		w.name(name)
		w.begin('{')
		if v := values[name]; v != cty.NilVal && v.IsKnown() {
			w.name("value")
			w.value(v)
		}
		w.field("deprecated", deprecated[name])
		w.end('}')
	}
	w.end('}')
}

func (w *planWriter) block(p addr.ProviderConfig, a addr.Instance) *schema.Resource {
	if w.Schemas == nil {
		return nil
	}
	return w.Schemas.Resource(p.Provider, a.Resource.Mode, a.Resource.Type)
}

// names writes the members that identify a resource instance.
func (w *writer) names(a addr.Instance, withModule bool, prev string) {
	w.name("address")
	w.str(a.String())
	w.field("previous_address", prev)
	if withModule {
		w.field("module_address", string(a.Module))
	}
	w.name("mode")
	w.str(a.Resource.Mode.String())
	w.name("type")
	w.str(a.Resource.Type)
	w.name("name")
	w.str(a.Resource.Name)
	switch a.Key.Kind {
	case addr.IntKey:
		w.name("index")
		w.int(int64(a.Key.Int))
	case addr.StringKey:
		w.name("index")
		w.str(a.Key.Str)
	}
}

func (w *planWriter) changes(cs []*plan.Change) {
	w.begin('[')
	for _, c := range plan.Shown(cs) {
		w.resourceChange(c)
		w.piece()
	}
	w.end(']')
}

func (w *planWriter) resourceChange(c *plan.Change) {
	w.begin('{')
	prev := ""
	if c.Moved() {
		prev = c.Prev.String()
	}
	w.names(c.Addr, true, prev)
	w.name("provider_name")
	w.str(c.Provider.Provider.String())
	w.field("deposed", string(c.Deposed))
	w.name("change")
	w.change(c)
	w.field("action_reason", string(c.Reason))
	w.end('}')
}

// deferred writes the objects that cannot be planned yet.
func (w *planWriter) deferred() {
	w.name("deferred_changes")
	w.begin('[')
	for _, d := range w.Plan.Deferred {
		w.begin('{')
		w.field("reason", string(d.Reason))
		if d.Change != nil {
			w.name("resource_change")
			w.resourceChange(d.Change)
		}
		w.field("address", d.Addr)
		if waits := d.Waits(); len(waits) > 0 {
			w.strs("waits_for", waits)
		}
		w.end('}')
	}
	w.end(']')
}

// Actions returns the names of an operation's actions.
func Actions(o plan.Op) []string {
	switch o {
	case plan.DeleteThenCreate:
		return []string{"delete", "create"}
	case plan.CreateThenDelete:
		return []string{"create", "delete"}
	case plan.ForgetThenCreate:
		return []string{"forget", "create"}
	}
	return []string{o.String()}
}

func (w *planWriter) change(c *plan.Change) {
	var block *schema.Block
	if s := w.block(c.Provider, c.Addr); s != nil {
		block = s.Block
	}
	w.begin('{')
	w.strs("actions", Actions(c.Op))
	w.name("before")
	w.value(orNull(c.Before))
	if after := orNull(c.After); after.IsKnown() {
		w.name("after")
		w.value(after)
	}
	w.name("after_unknown")
	if c.After == cty.NilVal || c.After.IsWhollyKnown() {
		w.raw("{}")
	} else {
		w.tree(c.After, nil, isUnknown)
	}
	w.name("before_sensitive")
	w.objectTree(c.Before, sensitive(c.BeforeSensitive, c.Before, block), isMarked, "false")
	w.name("after_sensitive")
	w.objectTree(c.After, sensitive(c.AfterSensitive, c.After, block), isMarked, "false")
	if len(c.ReplacePaths) > 0 {
		w.name("replace_paths")
		w.pathList(c.ReplacePaths)
	}
	if c.Import != nil {
		w.importing(c.Import)
	}
	if known(c.BeforeIdentity) {
		w.name("before_identity")
		w.value(c.BeforeIdentity)
	}
	if known(c.AfterIdentity) {
		w.name("after_identity")
		w.value(c.AfterIdentity)
	}
	w.end('}')
}

func known(v cty.Value) bool { return v != cty.NilVal && v.IsKnown() && !v.IsNull() }

// objectTree is like tree for a whole object. missing is the text for an object that does not
// exist.
func (w *writer) objectTree(v cty.Value, p *value.PathSet, test flag, missing string) {
	if v == cty.NilVal || v.IsKnown() && v.IsNull() {
		w.raw(missing)
		return
	}
	w.tree(v, p, test)
}

func orNull(v cty.Value) cty.Value {
	if v == cty.NilVal {
		return cty.NullVal(cty.DynamicPseudoType)
	}
	return v
}

func (w *planWriter) importing(i *plan.Import) {
	w.name("importing")
	w.begin('{')
	w.field("id", i.ID)
	if known(i.Identity) {
		w.name("identity")
		w.value(i.Identity)
	}
	w.end('}')
	w.field("generated_config", strings.TrimSuffix(i.GeneratedConfig, "\n"))
}

func (w *writer) pathList(ps []cty.Path) {
	w.begin('[')
	for _, p := range ps {
		w.path(p)
	}
	w.end(']')
}

func (w *writer) path(p cty.Path) {
	w.begin('[')
	for _, step := range p {
		switch s := step.(type) {
		case cty.GetAttrStep:
			w.str(s.Name)
		case cty.IndexStep:
			w.value(s.Key)
		}
	}
	w.end(']')
}

func (w *planWriter) outputChanges() {
	outputs := slices.DeleteFunc(slices.Clone(w.Plan.Outputs), func(o *plan.OutputChange) bool { return o.Left })
	if len(outputs) == 0 {
		return
	}
	w.name("output_changes")
	w.begin('{')
	slices.SortFunc(outputs, func(a, b *plan.OutputChange) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range outputs {
		secret := o.BeforeSensitive || o.AfterSensitive
		w.name(o.Name)
		w.begin('{')
		w.strs("actions", Actions(o.Op))
		w.name("before")
		w.value(orNull(o.Before))
		after := orNull(o.After)
		if after.IsKnown() {
			w.name("after")
			w.value(after)
		}
		w.name("after_unknown")
		if after.IsWhollyKnown() {
			w.raw("false")
		} else {
			w.tree(after, nil, isUnknown)
		}
		w.name("before_sensitive")
		w.bool(secret)
		w.name("after_sensitive")
		w.bool(secret)
		w.end('}')
	}
	w.end('}')
}

// relevant writes relevant attributes, which must be grouped by resource.
func (w *planWriter) relevant(list []plan.RelevantAttr) {
	if len(list) == 0 {
		return
	}
	w.name("relevant_attributes")
	w.begin('[')
	for _, r := range list {
		w.begin('{')
		w.name("resource")
		w.str(r.Resource.String())
		w.name("attribute")
		w.path(r.Path)
		w.end('}')
		w.piece()
	}
	w.end(']')
}

// typeJSON returns a type as JSON.
func typeJSON(ty cty.Type) (string, error) {
	src, err := ctyjson.MarshalType(ty)
	return string(src), err
}
