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

// Requirements are the providers that a configuration and its state need, each
// with every constraint on its version. A provider without constraints may be
// of any version. The built-in provider and those of TF_REATTACH_PROVIDERS do
// not belong in it.
type Requirements map[addr.Provider][]config.Constraint

// Options say where packages come from and go to.
type Options struct {
	Config  *cliconfig.Config // the user's settings; nil means the defaults
	WorkDir string            // what relative paths count from; absolute
	DataDir string            // .terraform, absolute or relative to WorkDir; "" means .terraform
	Home    string            // the user's home folder, "" if there is none
	Env     sys.Env

	PluginDirs []string // from -plugin-dir: nothing but these folders is searched
	Platform   string   // OS_ARCH, which to install for; "" means ours

	Hashes *Hashes // what packages on disk hash to; nil: each is read for itself

	Upgrade bool // select anew instead of keeping to the lock file

	Client  *http.Client     // for registries and mirrors; nil means one of our own
	Program string           // path of the running program, beside which credentials helpers may be; "" if unknown
	Now     func() time.Time // tells whether a signing key has expired; nil: keys do not expire
	// Run starts credentials helpers; nil: helpers are not asked.
	Run      func(context.Context, sys.Command) error
	Workers  int         // packages handled at once; below 1 means 8
	Progress func(Event) // called from several goroutines, one call at a time; may be nil
}

// platform is what is installed for.
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

// providersDir is the folder of the packages of this working folder.
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

// packageDir is the folder of one package below a folder in the unpacked layout.
func packageDir(base string, p addr.Provider, v versions.Version, pl platform) string {
	return filepath.Join(base, p.Host, p.Namespace, p.Type, v.String(), pl.String())
}

// parsed are requirements with their constraints understood.
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
