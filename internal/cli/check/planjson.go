package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/rulecheck"
	"github.com/terrace-iac/terrace/internal/plan/planjson"
	"github.com/terrace-iac/terrace/internal/rules"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
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
		return unitPlans(ctx, c, o, set, all, false)
	}
	if overUnits(c, o) {
		return unitPlans(ctx, c, o, set, []unitPlan{{".", func() (*plan.Plan, error) { return planIn(text) }}}, true)
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
	return set.Directory(ctx, loaded.Engine, rulecheck.Given{Explain: engine.ExplainOptions{Variables: given}, Plan: p, Schema: loaded.KeptSchemas(ctx)})
}

// planIn returns the plan in a JSON text.
func planIn(text []byte) (*plan.Plan, error) {
	p, err := planjson.ReadPlan(text, plan.Mode(0))
	if err != nil {
		return nil, err
	}
	return p.Plan, nil
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
