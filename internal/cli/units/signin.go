package units

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/terrace-iac/terrace/internal/cli/unitflags"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/net/aws"
	"github.com/terrace-iac/terrace/internal/net/transfer"
)

// signIn sets how units get credentials, as the flags specify.
func signIn(c *command.Call, f *unitflags.SigningIn, o *estate.Options) diag.List {
	o.Credentials = estate.SignIn{Role: estate.Role{ARN: f.Role, Session: f.RoleSession, Seconds: f.RoleSeconds, Token: f.WebToken}, Later: f.NoDiscoveryAuth}
	if f.AuthCommand == "" {
		return nil
	}
	words, err := sys.Words(f.AuthCommand)
	if err != nil || len(words) == 0 {
		return diag.Errorf(diag.CodeCLIFlags, nil, "Failed to parse command-line flags", "Invalid value %q for flag --auth-provider-cmd: it must be a program with its arguments.", f.AuthCommand)
	}
	o.Credentials.Command = words
	return nil
}

// assumeRole returns a function that requests the credentials of an AWS role for a unit.
func assumeRole(c *command.Call) func(context.Context, sys.Env, estate.Role) ([]string, error) {
	return func(ctx context.Context, env sys.Env, r estate.Role) ([]string, error) {
		role := aws.Role{ARN: r.ARN, SessionName: r.Session, Duration: time.Duration(r.Seconds) * time.Second}
		return aws.Assume(ctx, role, r.Token, aws.Options{}, aws.Services{
			Env: env, Dir: c.Launch, Home: c.Home(), Now: c.Now, Run: c.Run, Transport: transfer.Transport(c.Env),
		})
	}
}

// usePluginCache makes units share a cache of provider packages: the directory of
// --provider-cache-dir, or Terragrunt's. It does nothing if the user has configured another
// cache or has disabled this one.
func usePluginCache(c *command.Call, f *unitflags.Sourcing) diag.List {
	dir := f.ProviderCacheDir
	if dir == "" {
		cfg, ds := c.Directory.Settings()
		cache := c.Env.Get("XDG_CACHE_HOME")
		if home := c.Home(); cache == "" && home != "" {
			cache = filepath.Join(home, ".cache")
		}
		if ds.HasErrors() || cfg.PluginCacheDir != "" || cache == "" || f.NoPluginCache && !f.ProviderCache {
			return nil
		}
		dir = filepath.Join(cache, "terragrunt", "providers")
	}
	dir = c.Path(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		if f.ProviderCacheDir == "" {
			return nil // the cache is optional unless the user has requested it
		}
		return diag.Errorf(diag.CodeCLIProviderCache, nil, "Provider cache cannot be used", "The directory %s cannot be made: %s.", dir, err)
	}
	c.Env = c.Env.With("TF_PLUGIN_CACHE_DIR=" + dir)
	return nil
}
