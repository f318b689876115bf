package workdir

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/internal/state/encryption"
)

// Encryption returns the encryption settings of the encryption block and TF_ENCRYPTION, or nil if
// both are missing. Only the first call returns warnings.
func (p *Loaded) Encryption(ctx context.Context) (*encryption.Config, diag.List) {
	return p.encryptionBy(ctx, p.Static(ctx))
}

// EncryptionAsking is like Encryption, for a configuration that was loaded although variables have no
// value. It asks the user for the variables that the block refers to if input is true.
func (p *Loaded) EncryptionAsking(ctx context.Context, input bool) (*encryption.Config, diag.List) {
	return p.encryptionBy(ctx, p.StaticAsking(ctx, input, "encryption"))
}

func (p *Loaded) encryptionBy(ctx context.Context, eval configure.Eval) (*encryption.Config, diag.List) {
	var ds diag.List // set only if this call computes the settings
	e, err := p.encrypts.Do(ctx, struct{}{}, func() (encrypts, bool) {
		var cfg *encryption.Config
		if block := p.Engine.Root().Encryption; block == nil {
			cfg, ds = p.c.EnvironmentEncryption()
		} else {
			cfg, ds = encryption.Parse(block.Body, p.c.Env.Get(encryption.Variable), eval, p.c.Backends().Services(p.c.Dir, p.c.Env))
		}
		return encrypts{cfg, ds.Errors()}, !ds.HasErrors()
	})
	switch {
	case err != nil:
		return nil, diag.Errorf(diag.CodeCLIInterrupted, nil, "Interrupted", "The encryption settings were not read: %s.", err)
	case ds != nil:
		return e.config, ds
	}
	return e.config, e.ds
}

// encrypts contains the encryption settings, or the errors in them.
type encrypts struct {
	config *encryption.Config
	ds     diag.List
}

// EncryptionOf returns the encryption settings of the working directory, for commands that
// have not loaded its configuration or that work with the configuration of a saved plan.
// workspace is the value of terraform.workspace; "" means the selected workspace.
func EncryptionOf(ctx context.Context, c *Directory, given []VarFlag, workspace string) (*encryption.Config, diag.List) {
	root, ds := c.SettingsRoot()
	if ds.HasErrors() {
		return nil, ds
	}
	if root.Encryption == nil {
		return c.EnvironmentEncryption()
	}
	p, ds := Load(ctx, c, LoadOptions{Vars: given, Workspace: workspace, Partial: true, RootOnly: true})
	if p == nil {
		return nil, ds
	}
	defer p.Close()
	return p.Encryption(ctx)
}
