package eval

import (
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/lang/module"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// Early is what expressions are evaluated with that must be known before anything
// else: the for_each of moved and removed blocks.
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

// ModuleOptions is what expressions of the tree are evaluated with before anything else.
func (ev *Evaluator) ModuleOptions() module.Options { return ev.o.Early() }
