package estate

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/atomicfile"
	"github.com/terrace-iac/terrace/internal/demand"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// debugName is the file of --inputs-debug beside a unit's file.
const debugName = "terragrunt-debug.tfvars.json"

// unconfigured is an error about a unit whose module has no configuration: planning
// it would destroy all that it manages.
func (w *work) unconfigured() diag.List {
	root := w.engine.Root()
	if w.mode() == plan.Destroy || slices.ContainsFunc(root.Files, func(f config.FileRole) bool { return isConfig(filepath.Base(f.Path)) }) {
		return nil
	}
	var at *source.Range
	if tf := w.u.place.terraform; tf != nil && tf.Source != nil {
		at = tf.Source.At
	}
	ds := diag.Errorf(at, "No configuration files", "There is no .tf or .tofu file in the module of the unit %s. Set terraform.source to where its module is, or leave the unit out: a file that others include or import should not be called %s.", w.u.Name, filepath.Base(w.u.Path))
	ds[0].Code = "estate/no-configuration"
	return ds
}

// debugInputs writes the inputs that the module declares, as a file of variables
// that can be used in the module's folder. Those that are not known yet are left out.
func (e *Estate) debugInputs(t *demand.Task, u *Unit, root *config.Module) diag.List {
	if !e.o.Inputs.Debug || root == nil {
		return nil
	}
	settings, ds := u.Inputs(t, func(name string) bool { return root.Variables[name] != nil })
	if ds.HasErrors() {
		return nil // told where they are used
	}
	doc := map[string]json.RawMessage{}
	for _, s := range settings {
		v, _ := s.Value.UnmarkDeep()
		if s.Name == "" || !v.IsWhollyKnown() {
			continue
		}
		b, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			continue // nothing that a file of variables could hold
		}
		doc[s.Name] = b
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	path := filepath.Join(u.Dir, debugName)
	if err == nil {
		err = atomicfile.WriteMode(path, append(b, '\n'), 0o600)
	}
	if err != nil {
		return diag.Errorf(nil, "Failed to write inputs", "The file %s cannot be written: %s.", path, err)
	}
	return diag.Warnf(nil, "Inputs written", "The inputs of the unit %s, secret ones among them, are in %s. With -var-file they can be used in the module's own folder.", u.Name, path)
}
