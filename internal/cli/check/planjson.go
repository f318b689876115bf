package check

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/rulecheck"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/internal/rules"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// planDocument is the output of show -json for the saved plan of a directory or of an estate.
type planDocument struct {
	Version   string `json:"format_version"`
	Variables map[string]struct {
		Value json.RawMessage `json:"value"`
	} `json:"variables"`

	Encrypted json.RawMessage `json:"encrypted_data"` // of an encrypted plan, which is a JSON document too

	EstateVersion string `json:"estate_format_version"`
	Units         []struct {
		Name string          `json:"name"`
		Plan json.RawMessage `json:"plan"`
	} `json:"units"`
}

// readJSON returns the text of the plan's file and its content if the file is in JSON. doc is nil
// for other files.
func readJSON(c *command.Call, o *options) (text []byte, doc *planDocument, ds diag.List) {
	text, err := workdir.ReadFile(c.Path(o.plan), func(r io.ReaderAt, size int64) ([]byte, error) {
		head := make([]byte, min(size, 64)) // saved plans are large
		if _, err := r.ReadAt(head, 0); err != nil || !bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) {
			return nil, err
		}
		return io.ReadAll(io.NewSectionReader(r, 0, size))
	})
	if err != nil || len(text) == 0 {
		return nil, nil, nil // reading it as a saved plan reports why it cannot be read
	}
	doc = &planDocument{}
	if err := json.Unmarshal(text, doc); err != nil {
		return nil, doc, jsonError(o, err)
	}
	if len(doc.Encrypted) > 0 {
		return nil, nil, nil
	}
	if doc.Version == "" && doc.EstateVersion == "" {
		return nil, doc, jsonError(o, errors.New("it is not the JSON form of a saved plan, which show -json prints"))
	}
	return text, doc, nil
}

func jsonError(o *options, err error) diag.List {
	return diag.Errorf(diag.CodePlanRead, nil, "Failed to load \""+o.plan+"\" as a plan file", "The JSON text is not that of a plan: %s.", diag.Reason(err))
}

// jsonPlan checks the rules for a plan in JSON.
func jsonPlan(ctx context.Context, c *command.Call, o *options, set *rulecheck.Rules, text []byte, doc *planDocument) (res rules.Result, ds diag.List) {
	if doc.EstateVersion != "" {
		var all []unitPlan
		for _, u := range doc.Units {
			if len(u.Plan) > 0 && !bytes.Equal(u.Plan, []byte("null")) {
				all = append(all, unitPlan{u.Name, func() (*plan.Plan, error) { return planIn(u.Plan) }})
			}
		}
		return unitPlans(ctx, c, o, set, all, false, true)
	}
	if overUnits(c, o) {
		return unitPlans(ctx, c, o, set, []unitPlan{{".", func() (*plan.Plan, error) { return planIn(text) }}}, true, true)
	}
	p, err := planIn(text)
	if err != nil {
		return res, jsonError(o, err)
	}
	if set == nil {
		return res, nil
	}
	loaded, ds := load(ctx, c)
	if loaded == nil {
		return res, ds.Errors()
	}
	defer loaded.Close()
	given := loaded.Vars
	if given == nil {
		given = map[string]engine.InputValue{}
	}
	for name, v := range doc.Variables {
		if v, ok := inJSON(v.Value); ok {
			given[name] = engine.InputValue{Value: v}
		}
	}
	return set.Directory(ctx, loaded.Engine, rulecheck.Given{Explain: engine.ExplainOptions{Variables: given}, Plan: p, InJSON: true, Schema: loaded.KeptSchemas(ctx)})
}

// planIn returns the plan in a JSON text. Its module instances are those with planned objects.
func planIn(text []byte) (*plan.Plan, error) {
	p, err := planjson.ReadPlan(text, plan.Mode(0))
	if err != nil {
		return nil, err
	}
	var doc struct {
		Deferred []struct {
			Address string
			Change  struct{ Address string } `json:"resource_change"` // Terraform writes the address only here
		} `json:"deferred_changes"`
		Prior struct {
			Values struct {
				Root moduleDocument `json:"root_module"`
			}
		} `json:"prior_state"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	for _, d := range doc.Deferred {
		p.Plan.Deferred = append(p.Plan.Deferred, &plan.Deferred{Addr: cmp.Or(d.Address, d.Change.Address)})
	}
	p.Plan.Prior = &state.State{Resources: map[addr.AbsResource]*state.Resource{}}
	if err := doc.Prior.Values.Root.data(p.Plan.Prior); err != nil {
		return nil, err
	}
	seen := map[addr.ModuleInstance]bool{}
	exists := func(m addr.ModuleInstance) {
		for ok := true; ok && m != "" && !seen[m]; m, _, ok = m.Parent() {
			seen[m] = true
			p.Plan.Modules = append(p.Plan.Modules, plan.CalledModule{Addr: m})
		}
	}
	for _, c := range p.Plan.Changes {
		if c.Op != plan.Delete && c.Op != plan.Forget {
			exists(c.Addr.Module)
		}
	}
	for a := range p.Plan.Prior.Resources {
		exists(a.Module)
	}
	slices.SortFunc(p.Plan.Modules, func(a, b plan.CalledModule) int { return a.Addr.Compare(b.Addr) })
	return p.Plan, nil
}

// A moduleDocument is a module instance in the prior state of a plan in JSON.
type moduleDocument struct {
	Resources []struct{ Address, Mode string }
	Children  []moduleDocument `json:"child_modules"`
}

// data adds the addresses of the data sources that planning read to a state.
func (d *moduleDocument) data(to *state.State) error {
	for _, r := range d.Resources {
		if r.Mode != "data" {
			continue
		}
		a, err := addr.ParseInstance(r.Address)
		if err != nil {
			return err
		}
		of := to.Resources[a.Abs()]
		if of == nil {
			of = &state.Resource{Addr: a.Abs(), Instances: map[addr.Key]*state.Instance{}}
			to.Resources[a.Abs()] = of
		}
		of.Instances[a.Key] = &state.Instance{}
	}
	for i := range d.Children {
		if err := d.Children[i].data(to); err != nil {
			return err
		}
	}
	return nil
}

// inJSON returns a value without a type constraint.
func inJSON(text []byte) (cty.Value, bool) {
	ty, err := ctyjson.ImpliedType(text)
	if err != nil {
		return cty.NilVal, false
	}
	v, err := ctyjson.Unmarshal(text, ty)
	return v, err == nil
}
