package cli

import (
	"context"
	"os"
	"path/filepath"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cliconfig"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/fetch"
	"github.com/terrace-iac/terrace/internal/sys"
)

// signIn takes over the flags that say how units come by credentials.
func signIn(c *command.Call, f *signingIn, o *estate.Options) diag.List {
	o.Credentials = estate.SignIn{Role: estate.Role{ARN: f.role, Session: f.roleSession, Seconds: f.roleSeconds, Token: f.webToken}, Later: f.noDiscoveryAuth}
	if f.authCommand == "" {
		return nil
	}
	words, err := command.Words(f.authCommand)
	if err != nil || len(words) == 0 {
		return diag.Errorf(nil, "Failed to parse command-line flags", "Invalid value %q for flag --auth-provider-cmd: it must be a program with its arguments.", f.authCommand)
	}
	o.Credentials.Command = words
	return nil
}

// assumeRole gets the credentials of a role for a unit.
func assumeRole(c *command.Call, cfg *cliconfig.Config) func(context.Context, sys.Env, estate.Role) ([]string, error) {
	return func(ctx context.Context, env sys.Env, r estate.Role) ([]string, error) {
		f := fetcher(c, cfg)
		f.Env = env
		return f.AssumeRole(ctx, fetch.Role{ARN: r.ARN, Session: r.Session, Seconds: r.Seconds, Token: r.Token})
	}
}

// usePluginCache lets units share downloads of providers: in the folder of
// --provider-cache-dir, or in Terragrunt's, unless the user has a cache of their own
// or wants none.
func usePluginCache(c *command.Call, f *sourcing) diag.List {
	dir := f.providerCacheDir
	if dir == "" {
		cfg, ds := settings(c)
		cache := c.Env.Get("XDG_CACHE_HOME")
		if home := c.Home(); cache == "" && home != "" {
			cache = filepath.Join(home, ".cache")
		}
		if ds.HasErrors() || cfg.PluginCacheDir != "" || cache == "" || f.noPluginCache && !f.providerCache {
			return nil
		}
		dir = filepath.Join(cache, "terragrunt", "providers")
	}
	dir = c.Path(dir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		if f.providerCacheDir == "" {
			return nil // nobody asked for it
		}
		return diag.Errorf(nil, "Provider cache cannot be used", "The folder %s cannot be made: %s.", dir, err)
	}
	c.Env = c.Env.With("TF_PLUGIN_CACHE_DIR=" + dir)
	return nil
}
