package project

import (
	"cmp"
	"errors"
	"path/filepath"

	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/archive"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cliconfig"
	"github.com/terrace-iac/terrace/internal/fetch"
	"github.com/terrace-iac/terrace/internal/fetch/credentials"
	"github.com/terrace-iac/terrace/internal/oci"
	"github.com/terrace-iac/terrace/internal/registry"
	"github.com/terrace-iac/terrace/internal/transfer"
)

// Fetcher brings packages of modules here, through a cache for all folders.
func Fetcher(c *command.Call, cfg *cliconfig.Config) *fetch.Fetcher {
	cache := c.DataPath("cache")
	if base := CacheDir(c); base != "" {
		cache = filepath.Join(base, "modules")
	}
	cache = cmp.Or(c.Env.Get("TERRACE_MODULE_CACHE_DIR"), cache)
	clouds := &credentials.Clouds{Env: c.Env, Dir: c.Dir, Home: c.Home(), Now: c.Now, Run: c.Run, Transport: transfer.Transport(c.Env)}
	tokens := &oci.Store{Config: cfg, Env: c.Env, Home: c.Home(), WorkDir: c.Dir, Run: c.Run}
	return &fetch.Fetcher{
		Dir: c.Path(cache), WorkDir: c.Dir, Home: c.Home(), Env: c.Env, Run: c.Run,
		Client: transfer.New(c.Env), Now: c.Now, Limits: archive.Limits{}, OCI: tokens.Find,
		S3: clouds.S3, GCS: clouds.GCS,
	}
}

// CacheDir is the folder for what all folders of a user share and what can be made again;
// "" if the environment names none.
func CacheDir(c *command.Call) string {
	if base := c.Env.Get("XDG_CACHE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "terrace")
	}
	if home := c.Home(); home != "" {
		return filepath.Join(home, ".cache", "terrace")
	}
	return ""
}

// registry asks registries, with the user's credentials.
func RegistryClient(c *command.Call, cfg *cliconfig.Config) *registry.Client {
	program := ""
	if exe, err := c.Executable(); err == nil {
		program = filepath.Dir(exe)
	}
	return &registry.Client{
		HTTP: transfer.New(c.Env), Config: cfg, Run: c.Run, Env: c.Env, WorkDir: c.Dir,
		HelperDirs: registry.HelperDirs(cfg.Dir, program),
	}
}

// Files are the configuration files of the working folder as they are now, for
// steps that share what is loaded from them.
func Files(c *command.Call) *engine.Sources { return &engine.Sources{FS: Folder{c}} }

// HomeOrError is the home folder of the user.
func HomeOrError(c *command.Call) (string, error) {
	if h := c.Home(); h != "" {
		return h, nil
	}
	return "", errors.New("the environment names no home folder")
}
