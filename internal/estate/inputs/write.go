package inputs

import (
	"encoding/json"
	"path/filepath"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// debugName is the name of the file that --inputs-debug writes next to a unit's file.
const debugName = "terragrunt-debug.tfvars.json"

// WriteDebug writes the inputs that the module declares to a variable file that can be used in
// the module's directory. It omits unknown values.
func WriteDebug(t *demand.Task, u *unit.Unit, name string, declared map[string]*config.Variable) diag.List {
	settings, ds := u.Inputs(t, func(input string) bool { return declared[input] != nil })
	if ds.HasErrors() {
		return nil // errors are reported where the inputs are used
	}
	doc := map[string]json.RawMessage{}
	for _, s := range settings {
		v, _ := s.Value.UnmarkDeep()
		if s.Name == "" || !v.IsWhollyKnown() {
			continue
		}
		b, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			continue // a variable file cannot contain the value
		}
		doc[s.Name] = b
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	path := filepath.Join(u.Dir, debugName)
	if err == nil {
		err = atomicfile.WriteMode(path, append(b, '\n'), 0o600)
	}
	if err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write inputs", "The file %s cannot be written: %s.", path, err)
	}
	return diag.Warnf(diag.CodeEstateInputsWritten, nil, "Inputs written", "The inputs of the unit %s, secret ones among them, are in %s. With -var-file they can be used in the module's own directory.", name, path)
}

// Environ returns the inputs of a unit as TF_VAR_ variables for the programs that run for it,
// including inputs that the module does not declare. It omits inputs that cannot be computed, and
// variables that env contains.
func Environ(t *demand.Task, u *unit.Unit, env sys.Env) []string {
	settings, _ := u.Inputs(t, nil)
	var vars []string
	for _, s := range settings {
		if _, given := env.Lookup("TF_VAR_" + s.Name); given || s.Name == "" {
			continue
		}
		v, _ := s.Value.UnmarkDeep()
		switch {
		case v == cty.NilVal || v.IsNull() || !v.IsWhollyKnown():
		case v.Type() == cty.String:
			vars = append(vars, "TF_VAR_"+s.Name+"="+v.AsString())
		default:
			if b, err := ctyjson.Marshal(v, v.Type()); err == nil {
				vars = append(vars, "TF_VAR_"+s.Name+"="+string(b))
			}
		}
	}
	slices.Sort(vars)
	return vars
}
