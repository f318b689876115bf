package workdir

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/plan/planfile"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

// A SavedPlan is the content of a plan file, with the encryption settings of the working directory.
type SavedPlan struct {
	*planfile.File
	// Encryption contains the settings of the working directory for the workspace of the plan. nil
	// means none.
	Encryption *encryption.Config
}

// Options returns the options that load the configuration of the plan, with the encryption settings of
// the working directory.
func (f *SavedPlan) Options(given []VarFlag) LoadOptions {
	return LoadOptions{
		Vars: given, Workspace: f.Backend.Workspace, Partial: true,
		Saved: &Saved{Files: f.Config, Encryption: f.Encryption},
	}
}

// ReadPlanFile reads a saved plan. It uses the encryption settings of the working directory to decide
// whether the file must be encrypted, and to decrypt it. Settings in the file are not trusted.
func (c *Directory) ReadPlanFile(ctx context.Context, given []VarFlag, name string) (*SavedPlan, diag.List) {
	out := &SavedPlan{}
	var ds diag.List
	var err error
	out.File, err = ReadFile(c.Path(name), func(r io.ReaderAt, size int64) (*planfile.File, error) {
		c.ExpectPlan(size)
		head := make([]byte, 1)
		n, _ := r.ReadAt(head, 0)
		sealed := n > 0 && head[0] == '{' // else an archive
		var body []byte
		if sealed {
			var err error
			if body, err = io.ReadAll(io.NewSectionReader(r, 0, size)); err != nil {
				return nil, err
			}
			if !encryption.SealedPlan(body) {
				return nil, planfile.ErrNotPlan
			}
		}
		if out.Encryption, ds = EncryptionOf(ctx, c, given, ""); ds.HasErrors() {
			return nil, errNoEncryption
		}
		target := out.Encryption.Plan(ctx)
		switch {
		case !sealed && target != nil:
			if _, err := sealing.Open(target.Plans(), nil); err != nil {
				return nil, err
			}
			fallthrough
		case !sealed:
			return planfile.Read(r, size, release.Version)
		case target == nil:
			return nil, errors.New("it is encrypted; to read it, the configuration needs an encryption block with the key provider and the method that it was written with, and a plan block in it")
		}
		body, err := sealing.Open(target.Plans(), body)
		if err != nil {
			return nil, err
		}
		return planfile.Read(bytes.NewReader(body), int64(len(body)), release.Version)
	})
	switch {
	case errors.Is(err, errNoEncryption):
		return nil, ds
	case err != nil:
		return nil, append(ds, PlanFileError(name, err)...)
	}
	selected, more := c.Workspace()
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	if w := out.Backend.Workspace; out.Encryption != nil && w != selected {
		if out.Encryption, more = EncryptionOf(ctx, c, given, w); more.HasErrors() {
			return nil, append(ds, more.Errors()...)
		}
	}
	return out, ds
}

// IsSealedPlan reports whether a file is an encrypted plan.
func (c *Directory) IsSealedPlan(name string) bool {
	body, err := readfile.Large(c.Path(name))
	return err == nil && encryption.SealedPlan(body)
}

// errNoEncryption is returned if the encryption settings have errors, which the caller reports.
var errNoEncryption = errors.New("the encryption is not configured")

// SealPlan encrypts the bytes of a plan file if the settings require it. Otherwise it returns body.
func SealPlan(ctx context.Context, enc *encryption.Config, body []byte) ([]byte, error) {
	target := enc.Plan(ctx)
	if target == nil {
		return body, nil
	}
	return sealing.Append(target.Plans(), nil, body)
}

// ReadFile opens a file and calls read with its content and its size in bytes.
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

// PlanFileError returns the error for a plan file that cannot be read. name is its path, and err the
// reason.
func PlanFileError(name string, err error) diag.List {
	detail := diag.Reason(err, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		detail = "There is no such file."
	case errors.Is(err, planfile.ErrBundle):
		detail = "The file is the plan of an estate. Apply it with \"" + "terrace" + " run --all apply FILE\" in the directory that it was made in."
	case errors.Is(err, planfile.ErrFolder):
		detail = "The file is the plan of one directory. Apply it with \"" + "terrace" + " apply FILE\" in the directory that it was made in."
	case errors.Is(err, planfile.ErrNotPlan):
		detail = "The file cannot be read as a plan: " + diag.Reason(err, name) + ". Plans of other tools can be applied by those tools only."
	}
	return diag.List{{Code: diag.CodePlanRead, At: store.PlaceOf(err), Summary: "Failed to load \"" + name + "\" as a plan file", Detail: detail}}
}

// Open opens the backend of the working directory, to apply the plan there. Call it before the
// configuration of the plan is loaded, because both configurations use the same file names in the
// Set. Open returns an error if the plan was made for another state: the locks, the encryption and
// later migrations of the directory do not apply to that state. If the directory contains no
// configuration, Open uses the backend of the plan.
func (f *SavedPlan) Open(ctx context.Context, c *Directory, given []VarFlag) (*OpenedBackend, diag.List) {
	enc, planned := f.Encryption, f.Backend
	dir := c.Backend()
	was, ds := dir.Of(planned.Type, planned.Config)
	if ds.HasErrors() {
		return nil, ds
	}
	root, more := c.SettingsRoot()
	if more.HasErrors() {
		return nil, append(ds, more...)
	}
	is, initialized, more := dir.Settled()
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	switch {
	case initialized:
	case root.Backend != nil: // the directory is not initialized, and the plan can be applied without init
		fits, more := c.fits(ctx, was, root.Backend, given, planned.Workspace)
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
		if same, more = c.sameStore(ctx, place, before, planned.Workspace); more.HasErrors() {
			return nil, append(ds, more...)
		}
	}
	if !same {
		return nil, append(ds, anotherBackend(was)...)
	}
	return place, ds
}

// fits reports whether a backend configuration contains all arguments of the block on disk. It may
// contain others, which were passed to init.
func (c *Directory) fits(ctx context.Context, b backend.Config, block *config.Backend, given []VarFlag, workspace string) (bool, diag.List) {
	if b.Type != block.Type {
		return false, nil
	}
	k, ds := c.Backends().Kind(block.Type)
	if ds.HasErrors() {
		return false, ds
	}
	here, ds := Load(ctx, c, LoadOptions{Vars: given, Workspace: workspace, Partial: true, RootOnly: true})
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

// sameStore reports whether two backends store the state of a workspace in the same place.
func (c *Directory) sameStore(ctx context.Context, a, b *OpenedBackend, workspace string) (bool, diag.List) {
	x, ds := c.OpenStore(ctx, a, workspace, StateFiles{})
	if ds.HasErrors() {
		return false, ds
	}
	y, more := c.OpenStore(ctx, b, workspace, StateFiles{})
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
