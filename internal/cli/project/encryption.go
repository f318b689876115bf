package project

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/encryption"
	"github.com/terrace-iac/terrace/internal/planfile"
	"github.com/terrace-iac/terrace/internal/project"
	"github.com/terrace-iac/terrace/internal/readfile"
	"github.com/terrace-iac/terrace/internal/sealing"
	"github.com/terrace-iac/terrace/internal/vars"
)

// EncryptionOf is the encryption of the working folder, for commands that have not loaded
// its configuration.
func EncryptionOf(ctx context.Context, c *command.Call, given []vars.Flag) (*encryption.Config, diag.List) {
	return project.EncryptionOf(ctx, ContextOf(c), given)
}

// A SavedPlan is a plan file that was read.
type SavedPlan struct {
	*planfile.File
	plain bool // the file was not encrypted
}

// ReadPlanFile reads a saved plan, with the encryption of the working folder if it is
// encrypted.
func ReadPlanFile(ctx context.Context, c *command.Call, given []vars.Flag, name string) (*SavedPlan, diag.List) {
	out := &SavedPlan{}
	var ds diag.List
	f, err := ReadFile(c.Path(name), func(r io.ReaderAt, size int64) (*planfile.File, error) {
		ContextOf(c).ExpectPlan(size)
		head := make([]byte, 1)
		if n, _ := r.ReadAt(head, 0); n == 0 || head[0] != '{' { // an archive
			out.plain = true
			return planfile.Read(r, size, Version)
		}
		body, err := io.ReadAll(io.NewSectionReader(r, 0, size))
		if err != nil {
			return nil, err
		}
		if !encryption.SealedPlan(body) {
			return nil, planfile.ErrNotPlan
		}
		enc, more := EncryptionOf(ctx, c, given)
		if ds = append(ds, more...); more.HasErrors() {
			return nil, errNoEncryption
		}
		target := enc.Plan(ctx)
		if target == nil {
			return nil, errors.New("it is encrypted; to read it, the configuration needs an encryption block with the key provider and the method that it was written with, and a plan block in it")
		}
		if body, err = sealing.Open(target.Plans(), body); err != nil {
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
	out.File = f
	return out, ds
}

// IsSealedPlan reports whether a file is a saved plan that is encrypted.
func IsSealedPlan(c *command.Call, name string) bool {
	body, err := readfile.Large(c.Path(name))
	return err == nil && encryption.SealedPlan(body)
}

// errNoEncryption says that messages tell what is wrong.
var errNoEncryption = errors.New("the encryption is not configured")

// CheckSaved holds a saved plan to the encryption of its configuration: where plans are to
// be encrypted, one that is not may be anybody's.
func (p *Project) CheckSaved(ctx context.Context, name string, f *SavedPlan) diag.List {
	enc, ds := p.Encryption(ctx)
	if target := enc.Plan(ctx); !ds.HasErrors() && f.plain && target != nil {
		if _, err := sealing.Open(target.Plans(), nil); err != nil {
			return append(ds, PlanFileError(name, err)...)
		}
	}
	return ds
}

// SealPlan encrypts a plan file, if the configuration wants that.
func SealPlan(ctx context.Context, enc *encryption.Config, body []byte) ([]byte, error) {
	target := enc.Plan(ctx)
	if target == nil {
		return body, nil
	}
	return sealing.Append(target.Plans(), nil, body)
}
