package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/explanation"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/dev/randconfig"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
	"github.com/zclconf/go-cty/cty"
)

// checkCauses compares every cause of a plan with the last step that Explain gives for the value.
// It returns the number of causes.
func checkCauses(t *testing.T, e *engine.Engine, p *plan.Plan, o engine.ExplainOptions) int {
	t.Helper()
	e.AddCauses(t.Context(), p, o)
	n := 0
	for _, c := range p.Changes {
		n += checkEnds(t, e, c.Addr.String(), c.Causes, o)
	}
	return n
}

// checkOrigins is like checkCauses for the origins of all values of resources and outputs.
func checkOrigins(t *testing.T, e *engine.Engine, p *plan.Plan, o engine.ExplainOptions) int {
	t.Helper()
	e.AddOrigins(t.Context(), p, o)
	n := 0
	check := func(name string, after cty.Value, all []plan.Cause) {
		n += checkEnds(t, e, name, all, o)
		have := map[string]bool{}
		for _, x := range all {
			have[value.PathString(x.Path)] = true
		}
		if after == cty.NilVal || after.IsNull() {
			return
		}
		err := cty.Walk(after, func(path cty.Path, v cty.Value) (bool, error) {
			if v.IsKnown() && !v.IsNull() && v.Type().IsPrimitiveType() && !have[value.PathString(path)] {
				if full, ds := e.Explain(t.Context(), name+value.PathString(path), o); !ds.HasErrors() && len(full.Steps) > 0 && full.Steps[len(full.Steps)-1].At != nil {
					t.Errorf("%s%s has no origin, and explain ends in %+v", name, value.PathString(path), full.Steps[len(full.Steps)-1].At)
				}
			}
			return !v.Type().IsSetType(), nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	for _, c := range p.Changes {
		if c.Deposed == "" {
			check(c.Addr.String(), c.After, c.Origins)
		}
	}
	for _, d := range p.DataRead {
		r := p.Prior.Resources[d.Addr.Abs()]
		v, err := r.Instances[d.Addr.Key].Current.Decode(cty.DynamicPseudoType)
		if err != nil {
			v = cty.NilVal
		}
		check(d.Addr.String(), v, d.Origins)
	}
	for _, x := range p.Outputs {
		check("output."+x.Name, x.After, x.Origins)
	}
	return n
}

// checkEnds compares causes of an object with the last steps that Explain gives for the values. It
// returns the number of causes.
func checkEnds(t *testing.T, e *engine.Engine, name string, all []plan.Cause, o engine.ExplainOptions) (n int) {
	t.Helper()
	for _, x := range all {
		if len(x.Path) == 0 && x.File == "" { // it is replaced because it is tainted, or by request
			continue
		}
		n++
		address := name + value.PathString(x.Path)
		full, ds := e.Explain(t.Context(), address, o)
		if ds.HasErrors() || len(full.Steps) == 0 {
			t.Errorf("%s has the cause %s:%d, but no explanation: %v", address, x.File, x.Line, ds)
			continue
		}
		switch last := full.Steps[len(full.Steps)-1]; {
		case x.File == "":
			// a flag or a variable of the environment has no file either
			if last.Kind != explanation.Provider && last.Kind != explanation.NotSet && (last.At == nil || last.At.File != "") {
				t.Errorf("%s is not from the configuration, but explain ends in %+v", address, last)
			}
		case last.At == nil || last.At.File != x.File || last.At.Line != x.Line:
			t.Errorf("%s has the cause %s:%d, but explain ends in %+v", address, x.File, x.Line, last.At)
		}
	}
	return n
}

// overrides returns an override file for half of the resources in a file with an argument "input".
func overrides(text string, seed int64) string {
	out := ""
	for i, m := range inputs.FindAllStringSubmatch(text, -1) {
		if (int64(i)+seed)%2 == 0 {
			out += fmt.Sprintf("resource \"terraform_data\" %q {\n  input = \"merged-${var.v}\"\n}\n", m[1])
		}
	}
	return out
}

var inputs = regexp.MustCompile(`(?m)^resource "terraform_data" "(\w+)" \{\n(?:  (?:count|for_each) .*\n)?  input`)

// Every cause and every origin in the plans of random configurations equals the answer of explain. The
// configurations have resources with count and for_each, data sources, nested modules, and merged files.
func TestCausesEqualExplain(t *testing.T) {
	var n, origins, replaced, outside, data, repeated, modules, merged int
	for seed := range int64(100) {
		c := randconfig.Make(seed % 50)
		if seed >= 50 {
			c = randconfig.MakeWide(seed)
		}
		dir := t.TempDir()
		write := func(files map[string]string) {
			for name, text := range files {
				p := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if main, ok := files["main.tf"]; ok && seed%3 == 0 {
				if err := os.WriteFile(filepath.Join(dir, "z_override.tf"), []byte(overrides(main, seed)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		write(c.Files)
		var st *state.State
		for round := range 3 {
			for _, s := range c.Steps {
				if round == 2 {
					write(s.Files)
				}
			}
			e, ds := engine.Open(t.Context(), engine.Options{Dir: dir, Services: engine.Services{ReadState: func(context.Context, engine.ReadStateRequest) (*state.State, diag.List) {
				return statefile.Parse("other.tfstate", []byte(c.Files["other.tfstate"]))
			}}})
			if ds.HasErrors() {
				break
			}
			v := fmt.Sprint(round)
			o := engine.PlanOptions{Variables: map[string]engine.InputValue{"v": {Text: &v, From: source.Layer{Kind: source.Flag}}}}
			if st != nil && round == 1 {
				for a, r := range st.Resources {
					for k := range r.Instances {
						if a.Resource.Mode == addr.Managed {
							o.Replace = append(o.Replace, a.Instance(k))
						}
					}
				}
			}
			p, ds := e.Plan(t.Context(), st, o)
			if p != nil && !ds.HasErrors() {
				n += checkCauses(t, e, p, engine.ExplainOptions{Variables: o.Variables, State: p.Prior})
				origins += checkOrigins(t, e, p, engine.ExplainOptions{Variables: o.Variables, State: p.Prior})
				for _, d := range p.DataRead {
					data += len(d.Origins)
				}
				for _, c := range p.Changes {
					if c.Addr.Key.Kind != addr.NoKey {
						repeated += len(c.Origins)
					}
					if c.Addr.Module != "" {
						modules += len(c.Origins)
					}
					for _, x := range c.Origins {
						if x.File == "z_override.tf" {
							merged++
						}
					}
					for _, x := range c.Causes {
						if x.Forces {
							replaced++
						}
						if x.File == "" {
							outside++
						}
					}
				}
				r, _ := e.Apply(t.Context(), p, engine.ApplyOptions{})
				st = r.State
			}
			e.Close()
		}
	}
	t.Logf("%d causes, %d that force a replacement, %d not from the configuration; %d origins: %d of data sources, %d of instances with keys, %d in modules, %d from override files",
		n, replaced, outside, origins, data, repeated, modules, merged)
	if n < 200 || origins < n || outside == 0 || data < 50 || repeated < 100 || modules < 100 || merged < 50 {
		t.Error("too few causes")
	}
}
