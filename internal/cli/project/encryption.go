package project

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/plan/planfile"
	"github.com/terrace-iac/terrace/internal/state/encryption"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// EncryptionOf returns the encryption settings of the working directory, for commands that
// have not loaded its configuration.
func EncryptionOf(ctx context.Context, c *command.Call, given []workdir.VarFlag) (*encryption.Config, diag.List) {
	return workdir.EncryptionOf(ctx, c.Directory, given, "")
}

// A SavedPlan is a plan file that was read.
type SavedPlan struct {
	*planfile.File
	// Encryption is that of the working directory, in the workspace of the plan. nil means none.
	Encryption *encryption.Config
}

// Options loads the configuration of the plan, with the encryption of the working directory.
func (f *SavedPlan) Options(given []workdir.VarFlag) Options {
	return Options{
		Vars: given, Workspace: f.Backend.Workspace, Partial: true,
		Saved: &workdir.Saved{Files: f.Config, Encryption: f.Encryption},
	}
}

// ReadPlanFile reads a saved plan. The encryption settings of the working directory decide
// whether the file must be encrypted, and decrypt it: settings in the file prove nothing
// about it.
func ReadPlanFile(ctx context.Context, c *command.Call, given []workdir.VarFlag, name string) (*SavedPlan, diag.List) {
	out := &SavedPlan{}
	var ds diag.List
	var err error
	out.File, err = ReadFile(c.Path(name), func(r io.ReaderAt, size int64) (*planfile.File, error) {
		c.Directory.ExpectPlan(size)
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
		if out.Encryption, ds = EncryptionOf(ctx, c, given); ds.HasErrors() {
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
			return planfile.Read(r, size, Version)
		case target == nil:
			return nil, errors.New("it is encrypted; to read it, the configuration needs an encryption block with the key provider and the method that it was written with, and a plan block in it")
		}
		body, err := sealing.Open(target.Plans(), body)
		if err != nil {
			return nil, err
		}
		return planfile.Read(bytes.NewReader(body), int64(len(body)), Version)
	})
	switch {
	case errors.Is(err, errNoEncryption):
		return nil, ds
	case err != nil:
		return nil, append(ds, PlanFileError(name, err)...)
	}
	selected, more := c.Directory.Workspace()
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	if w := out.Backend.Workspace; out.Encryption != nil && w != selected {
		if out.Encryption, more = workdir.EncryptionOf(ctx, c.Directory, given, w); more.HasErrors() {
			return nil, append(ds, more.Errors()...)
		}
	}
	return out, ds
}

// IsSealedPlan reports whether a file is a saved plan that is encrypted.
func IsSealedPlan(c *command.Call, name string) bool {
	body, err := readfile.Large(c.Path(name))
	return err == nil && encryption.SealedPlan(body)
}

// errNoEncryption says that messages tell what is wrong.
var errNoEncryption = errors.New("the encryption is not configured")

// SealPlan encrypts a plan file, if the configuration wants that.
func SealPlan(ctx context.Context, enc *encryption.Config, body []byte) ([]byte, error) {
	target := enc.Plan(ctx)
	if target == nil {
		return body, nil
	}
	return sealing.Append(target.Plans(), nil, body)
}
