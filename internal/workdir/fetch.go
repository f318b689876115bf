package workdir

import (
	"cmp"
	"path/filepath"

	"github.com/terrace-iac/terrace/internal/base/archive"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/net/fetch"
	"github.com/terrace-iac/terrace/internal/net/fetch/credentials"
	"github.com/terrace-iac/terrace/internal/net/oci"
	"github.com/terrace-iac/terrace/internal/net/registry"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/state/backend"
)

// Fetcher returns the downloader of module packages. Its cache is shared by all directories of the
// user.
func (f *Directory) Fetcher(cfg *cliconfig.Config) *fetch.Fetcher {
	cache := f.DataPath("cache")
	if base := f.CacheDir(); base != "" {
		cache = filepath.Join(base, "modules")
	}
	cache = cmp.Or(f.Env.Get("TERRACE_MODULE_CACHE_DIR"), cache)
	clouds := &credentials.Clouds{Env: f.Env, Dir: f.Dir, Home: f.Home(), Now: f.Now, Run: f.Run, Transport: transfer.Transport(f.Env)}
	tokens := &oci.Store{Config: cfg, Env: f.Env, Home: f.Home(), WorkDir: f.Dir, Run: f.Run}
	return &fetch.Fetcher{
		Dir: sys.Join(f.Dir, cache), WorkDir: f.Dir, Home: f.Home(), Env: f.Env, Run: f.Run,
		Client: transfer.New(f.Env), Now: f.Now, Limits: archive.Limits{}, OCI: tokens.Find,
		S3: clouds.S3, GCS: clouds.GCS,
	}
}

// Registry returns a client of registries, with the user's credentials.
func (f *Directory) Registry(cfg *cliconfig.Config) *registry.Client {
	program := ""
	if exe, err := f.Executable(); err == nil {
		program = filepath.Dir(exe)
	}
	return &registry.Client{
		HTTP: transfer.New(f.Env), Config: cfg, Run: f.Run, Env: f.Env, WorkDir: f.Dir,
		HelperDirs: registry.HelperDirs(cfg.Dir, program),
		Here:       f.stateHost,
	}
}

// stateHost returns the host name of the service that stores the state of the directory. It returns
// "" if the backend is not such a service, or if its configuration cannot be read.
func (f *Directory) stateHost() string {
	if f.Backends == nil {
		return ""
	}
	d := f.Backend()
	r, ds := d.Recorded()
	if ds.HasErrors() || r == nil {
		return ""
	}
	k, ds := d.Backends.Kind(r.Type)
	if ds.HasErrors() || !k.Runs {
		return ""
	}
	v, err := r.Value(k)
	if err != nil {
		return ""
	}
	return backend.NewArgs(v, f.Env).String("hostname", "", "TF_CLOUD_HOSTNAME")
}
