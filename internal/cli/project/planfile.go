package project

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/flags"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/plan/planfile"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/zclconf/go-cty/cty"
)

// ReadFile has a file read whose size must be known first.
func ReadFile[T any](path string, read func(io.ReaderAt, int64) (T, error)) (T, error) {
	var none T
	f, err := readfile.Open(path)
	if err != nil {
		return none, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return none, err
	}
	return read(f, info.Size())
}

func PlanFileError(name string, err error) diag.List {
	detail := diag.Reason(err, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		detail = "There is no such file."
	case errors.Is(err, planfile.ErrBundle):
		detail = "The file is the plan of an estate. Apply it with \"" + view.Program + " run --all apply FILE\" in the folder that it was made in."
	case errors.Is(err, planfile.ErrFolder):
		detail = "The file is the plan of one folder. Apply it with \"" + view.Program + " apply FILE\" in the folder that it was made in."
	case errors.Is(err, planfile.ErrNotPlan):
		detail = "The file cannot be read as a plan: " + diag.Reason(err, name) + ". Plans of other tools can be applied by those tools only."
	}
	return diag.List{{Code: diag.CodePlanRead, At: store.PlaceOf(err), Summary: "Failed to load \"" + name + "\" as a plan file", Detail: detail}}
}

// Open opens the backend of the working directory, to apply the plan there. It comes before
// the configuration of the plan is loaded, whose files have the names of those on disk. A plan
// for another place is refused: the directory's locks, its encryption and a migration that
// happened since would not hold there. Where the directory has no configuration, the plan alone
// names the backend.
func (f *SavedPlan) Open(ctx context.Context, c *command.Call, given []workdir.VarFlag) (*Place, diag.List) {
	enc, planned := f.Encryption, f.Backend
	dir := c.Directory.Backend()
	was, ds := dir.Of(planned.Type, planned.Config)
	if ds.HasErrors() {
		return nil, ds
	}
	root, more := c.Directory.SettingsRoot()
	if more.HasErrors() {
		return nil, append(ds, more...)
	}
	is, initialized, more := dir.Settled()
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	switch {
	case initialized:
	case root.Backend != nil: // init has yet to run, and the plan may be used without it
		fits, more := fits(ctx, c, was, root.Backend, given, planned.Workspace)
		if ds = append(ds, more...); more.HasErrors() {
			return nil, ds
		}
		if !fits {
			return nil, append(ds, anotherBackend(was)...)
		}
		is = was
	case !config.IsConfigDir(c.Dir, config.Options{}):
		is = was
	}
	place, more := OpenBackend(ctx, c, is, root.Backend, enc)
	if ds = append(ds, more...); more.HasErrors() || is.Type == was.Type && is.Value.RawEquals(was.Value) {
		return place, ds
	}
	same := is.Type == was.Type
	if same {
		before, more := OpenBackend(ctx, c, was, nil, enc)
		if ds = append(ds, more...); more.HasErrors() {
			return nil, ds
		}
		if same, more = sameStore(c, place, before, planned.Workspace); more.HasErrors() {
			return nil, append(ds, more...)
		}
	}
	if !same {
		return nil, append(ds, anotherBackend(was)...)
	}
	return place, ds
}

// fits reports whether a backend has the arguments of the block on disk. Others may have been
// given to init.
func fits(ctx context.Context, c *command.Call, b backend.Config, block *config.Backend, given []workdir.VarFlag, workspace string) (bool, diag.List) {
	if b.Type != block.Type {
		return false, nil
	}
	k, ds := c.Directory.Backends().Kind(block.Type)
	if ds.HasErrors() {
		return false, ds
	}
	here, ds := Load(ctx, c, Options{Vars: given, Workspace: workspace, Partial: true, RootOnly: true})
	if here == nil {
		return false, ds
	}
	defer here.Close()
	written, more := configure.Block(k.Schema, block.Body, here.Static(ctx))
	if more.HasErrors() {
		return false, more
	}
	have := b.Value.AsValueMap()
	for name, v := range written.AsValueMap() {
		if !v.IsNull() && (have[name] == cty.NilVal || !v.RawEquals(have[name])) {
			return false, nil
		}
	}
	return true, nil
}

// sameStore reports whether two backends keep the state of a workspace in one place.
func sameStore(c *command.Call, a, b *Place, workspace string) (bool, diag.List) {
	x, ds := OpenStore(c, a, workspace, flags.State{})
	if ds.HasErrors() {
		return false, ds
	}
	y, more := OpenStore(c, b, workspace, flags.State{})
	if ds = append(ds, more...); more.HasErrors() {
		return false, ds
	}
	p, ok := x.(backend.Placer)
	q, also := y.(backend.Placer)
	return ok && also && p.Place() == q.Place(), ds
}

func anotherBackend(was backend.Config) diag.List {
	return diag.Errorf(diag.CodePlanSaved, nil, "Saved plan is for another backend", "The plan was made for a state in the backend %q at another place than the one where this directory keeps its state, or the backend was changed after the plan was created. Nothing was applied. Plan again.", was.Type)
}

// Version is the version of this program, as saved plans have it. A release is linked with
// the version of its tag (.ci/release).
var Version = "0.1.0"
