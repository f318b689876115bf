package install

import (
	"context"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// Requirements are the providers that a configuration and its state need, each with all of
// its version constraints. Without constraints, any version is allowed. Requirements must
// not contain the built-in provider or those of TF_REATTACH_PROVIDERS.
type Requirements map[addr.Provider][]config.Constraint

// Options configures the sources and targets of an installation.
type Options struct {
	Config  *cliconfig.Config // the user's settings; nil means the defaults
	WorkDir string            // the absolute directory that relative paths are resolved from
	DataDir string            // .terraform, absolute or relative to WorkDir; "" means .terraform
	Home    string            // the user's home directory; "" if there is none
	Env     sys.Env

	PluginDirs []string // from -plugin-dir: the only directories that are searched
	Platform   string   // the platform to install for, as OS_ARCH; "" means the current one

	Hashes *Hashes // cached hashes of packages on disk; nil: no cache

	Upgrade bool // select new versions instead of the locked ones

	Client  *http.Client     // for registries and mirrors; nil: a default client
	Program string           // path of the running program, whose directory may contain credentials helpers; "" if unknown
	Now     func() time.Time // to check whether a signing key has expired; nil: keys do not expire
	// Run starts credentials helpers. nil means that they are not used.
	Run      func(context.Context, sys.Command) error
	Workers  int         // number of packages handled concurrently; below 1 means 8
	Progress func(Event) // called from several goroutines, one call at a time; may be nil
}

// platform returns the platform to install for.
func (o *Options) platform() platform {
	if os, arch, ok := strings.Cut(o.Platform, "_"); ok {
		return platform{os, arch}
	}
	return platform{runtime.GOOS, runtime.GOARCH}
}

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

func (o *Options) path(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(o.WorkDir, name)
}

// providersDir is the directory of the packages installed in this working directory.
func (o *Options) providersDir() string { return filepath.Join(o.dataDir(), "providers") }

func (o *Options) dataDir() string {
	if o.DataDir == "" {
		return o.path(".terraform")
	}
	return o.path(o.DataDir)
}

func (o *Options) config() *cliconfig.Config {
	if o.Config == nil {
		return &cliconfig.Config{}
	}
	return o.Config
}

// packageDir returns the directory of a package in the unpacked layout below base.
func packageDir(base string, p addr.Provider, v versions.Version, pl platform) string {
	return filepath.Join(base, p.Host, p.Namespace, p.Type, v.String(), pl.String())
}

// parsed are requirements with parsed constraints.
type parsed map[addr.Provider]lock.Constraints

func (r Requirements) parse() (parsed, diag.List) {
	out := make(parsed, len(r))
	var ds diag.List
	for p, texts := range r {
		if p.IsBuiltIn() {
			continue
		}
		var all lock.Constraints
		for _, c := range texts {
			one, err := lock.ParseConstraints(c.Text)
			if err != nil {
				at := c.At
				ds = append(ds, diag.Errorf(diag.CodeConfigVersionConstraint, &at, "Invalid version constraint", "Incorrect version constraint syntax in the requirement of provider %s: %s.", p.Display(), err)...)
				continue
			}
			all = append(all, one...)
		}
		out[p] = all
	}
	return out, ds.Sort()
}
