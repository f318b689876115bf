package project

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/planfile"
	"github.com/terrace-iac/terrace/internal/readfile"
	"github.com/terrace-iac/terrace/internal/state/store"
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
	return diag.List{{Code: "plan/read", At: store.PlaceOf(err), Summary: "Failed to load \"" + name + "\" as a plan file", Detail: detail}}
}

// BackendOf opens the backend that a plan was made with.
func (p *Project) BackendOf(ctx context.Context, b planfile.Backend) (*Place, diag.List) {
	enc, ds := p.Encryption(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	c, more := p.Folder().Backend().Of(b.Type, b.Config)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	place, more := OpenBackend(ctx, p.Call, c, p.Engine.Root().Backend, enc)
	return place, append(ds, more...)
}

// Version is the version of this program, as saved plans have it. A release is linked with
// the version of its tag (.ci/release).
var Version = "0.1.0"
