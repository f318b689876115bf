package unit_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/unit"
)

// TestTracked compares two versions of an estate: a Tracking must note exactly what the changed line reaches.
func TestTracked(t *testing.T) {
	unitFile := `include "root" {
  path   = find_in_parent_folders("root.hcl")
  expose = true
}
terraform {
  source = "../m"
}
dependency "d" {
  config_path = "../d"
}
inputs = {
  own   = "x"
  named = include.root.locals.same
}
`
	root := func(env string) string {
		return "locals {\n  env  = \"" + env + "\"\n  same = \"s\"\n}\ngenerate \"p\" {\n  path = \"p.tf\"\n  if_exists = \"overwrite\"\n  contents = local.env\n}\n" +
			"remote_state {\n  backend = \"local\"\n  config = {\n    path = local.same\n  }\n}\ninputs = {\n  env = local.env\n}\n"
	}
	old := map[string]string{"root.hcl": root("dev"), "u/terragrunt.hcl": unitFile, "d/terragrunt.hcl": "terraform {\n  source = \"../m\"\n}\n"}
	compared := func(change map[string]string) *unit.Loader {
		now := maps.Clone(old)
		maps.Copy(now, change)
		env := memory(now)
		dir := env.WorkingDir
		env.Changed = func(path string) ([]byte, bool) {
			for name, text := range change {
				if path == dir+"/"+name && text != old[name] {
					return []byte(old[name]), true
				}
			}
			return nil, false
		}
		return unit.NewLoader(env)
	}
	parts := map[string]func(*demand.Task, *unit.Unit){
		"dependencies": func(t *demand.Task, u *unit.Unit) { u.Dependencies(t, nil) },
		"generate":     func(t *demand.Task, u *unit.Unit) { u.Generate(t) },
		"remote_state": func(t *demand.Task, u *unit.Unit) { u.RemoteState(t) },
		"terraform":    func(t *demand.Task, u *unit.Unit) { u.Terraform(t) },
	}
	for name, c := range map[string]struct {
		change map[string]string
		differ []string // the parts that may differ
		inputs []string // the inputs that may differ, if it is known which
	}{
		"nothing":                   {map[string]string{}, nil, nil},
		"a local value of the root": {map[string]string{"root.hcl": root("prod")}, []string{"dependencies", "generate"}, []string{"env"}},
		"a comment":                 {map[string]string{"root.hcl": "# c\n" + root("dev")}, nil, nil},
		"a block is added":          {map[string]string{"root.hcl": root("dev") + "exclude {\n  if = false\n  actions = [\"all\"]\n}\n"}, []string{"dependencies", "generate", "remote_state", "terraform"}, nil},
		"a value in the unit":       {map[string]string{"u/terragrunt.hcl": strings.Replace(unitFile, `"x"`, `"y"`, 1)}, []string{"dependencies"}, []string{"own"}},
		"a source":                  {map[string]string{"u/terragrunt.hcl": strings.Replace(unitFile, `"../m"`, `"../n"`, 1)}, []string{"dependencies", "terraform"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := compared(c.change)
			task, u := load(t, l, "u", "")
			for part, compute := range parts {
				in, tracking := u.Tracked()
				compute(task, in)
				if got := tracking.Same(); got == slices.Contains(c.differ, part) {
					t.Errorf("%s: the same is %v", part, got)
				}
			}
			in, tracking := u.Tracked()
			all, ds := in.Inputs(task, nil)
			if ds.HasErrors() || len(all) != 3 {
				t.Fatalf("inputs %v: %v", all, ds)
			}
			for _, s := range all {
				if tracking.Same() && s.Same == slices.Contains(c.inputs, s.Name) {
					t.Errorf("input %s: the same is %v", s.Name, s.Same)
				}
			}
			if len(c.inputs) > 0 && !tracking.Same() {
				t.Error("it is not known which inputs are the same")
			}
		})
	}
}
