package estate

import (
	"context"
	"slices"

	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// Programs is the environment of the programs that run for a unit: hooks, and what
// its module's provisioners start. Its inputs are in it as TF_VAR_ variables, those
// that the module does not declare too; ones that cannot be computed are left out.
func (e *Estate) Programs(ctx context.Context, u *Unit) sys.Env {
	settings, _ := u.Inputs(e.task(ctx), nil)
	var vars []string
	for _, s := range settings {
		if _, given := e.o.Machine.Environ.Lookup("TF_VAR_" + s.Name); given || s.Name == "" {
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
	return e.environ(u).With(vars...)
}

// folder is where a unit runs.
func (e *Estate) folder(u *Unit) Folder {
	return Folder{Dir: u.place.dir, Env: e.environ(u), Programs: func() sys.Env { return e.Programs(context.Background(), u) }}
}
