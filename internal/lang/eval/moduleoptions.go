package eval

import (
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Early returns the options for expressions that must be known before anything else, such as
// for_each of moved and removed blocks.
func (o Options) Early() module.Options {
	return module.Options{
		Functions: func() map[string]function.Function { return o.Functions },
		Variables: func(v *config.Variable) cty.Value {
			if in, ok := o.Variables[v.Name]; ok {
				return in.Value
			}
			return cty.NilVal
		},
		Workspace: o.Workspace,
	}
}

// ModuleOptions returns the options for expressions that must be known before anything else.
func (ev *Evaluator) ModuleOptions() module.Options { return ev.o.Early() }
