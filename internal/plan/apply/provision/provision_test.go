package provision_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/demand"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/event"
	"github.com/terrace-iac/terrace/internal/base/value"
	"github.com/terrace-iac/terrace/internal/lang/eval"
	"github.com/terrace-iac/terrace/internal/plan/apply/provision"
	"github.com/terrace-iac/terrace/internal/plan/plantest"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// phase supplies the schemas of plantest's provider.
type phase struct{ plantest.Providers }

func (p phase) Value(*demand.Task, *eval.Desired) (cty.Value, diag.List) { return cty.DynamicVal, nil }
func (p phase) Schema(t *demand.Task, a addr.Provider) (*schema.Provider, diag.List) {
	return p.Providers.Schema(t.Context(), a)
}
func (p phase) Function(*demand.Task, addr.Provider, *eval.ProviderConfig, string) (function.Function, diag.List) {
	return function.Function{}, nil
}

// programs is the type "say" of provisioners, which prints its argument and fails if that is "fail".
// It records the arguments.
type programs struct{ ran []string }

func (p *programs) ConnectionSchema() *schema.Block { return &schema.Block{} }
func (p *programs) Schema(typ string) *schema.Block {
	if typ != "say" {
		return nil
	}
	return &schema.Block{Attributes: map[string]*schema.Attribute{"text": {Type: cty.String, Required: true}}}
}
func (p *programs) Run(_ context.Context, _ string, config, _ cty.Value, output func(string)) diag.List {
	text := config.GetAttr("text").AsString()
	p.ran = append(p.ran, text)
	output(text)
	if text == "fail" {
		return diag.Errorf(diag.CodeApplyProvisioner, nil, "Failed", "D.")
	}
	return nil
}

// run runs the provisioners in the block of x_thing.a, whose attribute name has a value. It returns
// the events as text.
func run(t *testing.T, types provision.Types, blocks string, name cty.Value, destroying bool) (events string, ds diag.List) {
	t.Helper()
	g := &demand.Graph{}
	ev := eval.New(g, eval.Options{Tree: plantest.Tree(t, "resource \"x_thing\" \"a\" {\n"+blocks+"}\n"), Phase: phase{plantest.New()}, Variables: map[string]eval.Input{}, Workspace: "default"})
	var b strings.Builder
	r := provision.New(t.Context(), types, func(e event.Event) { fmt.Fprintf(&b, "%v %s\n", e.Kind, e.Text) }, ev, false)
	task := g.Task(t.Context())
	a := addr.AbsResource{Resource: addr.Resource{Mode: addr.Managed, Type: "x_thing", Name: "a"}}.Instance(addr.Key{})
	self := cty.ObjectVal(map[string]cty.Value{"name": name})
	if destroying {
		ds = r.Destroying(task, a, self)
	} else {
		ds = r.Created(task, ev.Desired(task, a), self)
	}
	return b.String(), append(ds, g.Diags()...)
}

const four = `
  provisioner "say" {
    text = "one ${self.name}"
  }
  provisioner "say" {
    text = "gone ${self.name}"
    when = destroy
  }
  provisioner "say" {
    text       = "fail"
    on_failure = continue
  }
  provisioner "say" {
    text = "fail"
  }
  provisioner "say" {
    text = "never"
  }
`

// Create provisioners run in order until one fails, except with on_failure = continue, whose error
// is a warning. Each error has the position of its block. Destroy provisioners only run before the
// object is destroyed.
func TestOrder(t *testing.T) {
	var p programs
	_, ds := run(t, &p, four, cty.StringVal("x"), false)
	if d := cmp.Diff([]string{"one x", "fail", "fail"}, p.ran); d != "" || len(ds) != 2 || ds[0].Severity != diag.Warning || ds[1].Severity != diag.Error || ds[1].At.Start.Line != 14 {
		t.Error(d, ds)
	}
	p.ran = nil
	_, ds = run(t, &p, four, cty.StringVal("x"), true)
	if d := cmp.Diff([]string{"gone x"}, p.ran); d != "" || ds.HasErrors() {
		t.Error(d, ds.Err())
	}
}

// The output of a provisioner whose configuration contains a secret is not shown. The provisioner
// gets the value itself.
func TestSecret(t *testing.T) {
	for secret, v := range map[bool]cty.Value{false: cty.StringVal("the value"), true: cty.StringVal("the value").Mark(value.Sensitive)} {
		var p programs
		events, ds := run(t, &p, "  provisioner \"say\" {\n    text = self.name\n  }\n", v, false)
		if ds.HasErrors() || strings.Contains(events, "the value") == secret || len(p.ran) != 1 || p.ran[0] != "the value" {
			t.Errorf("secret %v: %s %v", secret, events, ds.Err())
		}
	}
}

// An unknown type, a value that is not known, and a program without provisioners are errors at the
// block, and nothing runs.
func TestErrors(t *testing.T) {
	say := "  provisioner \"say\" {\n    text = self.name\n  }\n"
	for name, tt := range map[string]struct {
		none  bool
		block string
		value cty.Value
	}{
		"no provisioners": {none: true, block: say, value: cty.StringVal("x")},
		"unknown type":    {block: strings.Replace(say, `"say"`, `"shout"`, 1), value: cty.StringVal("x")},
		"unknown value":   {block: say, value: cty.UnknownVal(cty.String)},
	} {
		var p programs
		types := provision.Types(&p)
		if tt.none {
			types = nil
		}
		if _, ds := run(t, types, tt.block, tt.value, false); !ds.HasErrors() || ds[0].At == nil || ds[0].At.Start.Line != 2 || len(p.ran) > 0 {
			t.Errorf("%s: %v %v", name, ds, p.ran)
		}
	}
}
