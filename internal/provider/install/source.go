package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// A source is a source of provider packages.
type source interface {
	// versions returns the versions of a provider for any platform, with warnings of the
	// source. It returns errUnknown if the source does not have the provider.
	versions(ctx context.Context, p addr.Provider) ([]versions.Version, []string, error)
	// find returns one package. It returns errPlatform if the version has no package for
	// the platform.
	find(ctx context.Context, p addr.Provider, v versions.Version, pl platform) (found, error)
	// where returns the name of the source for messages.
	where(p addr.Provider) string
}

// A found is a package in a source.
type found interface {
	// vouches returns the hashes of the package that the source has, and those for the lock
	// file, if they are available without downloading the package. complete reports whether
	// trusted covers all platforms.
	vouches(ctx context.Context) (known, trusted []lock.Hash, complete bool, err error)
	// fetch downloads the package and checks it with the checksums of the source. tmp is an
	// empty directory for downloads.
	fetch(ctx context.Context, tmp string, progress func(done, total int64)) (local, error)
}

// A local is a package on this machine: a directory or a zip archive.
type local struct {
	path    string
	folder  bool
	auth    Auth
	trusted []lock.Hash // hashes that the source has, possibly of other platforms too

	complete bool     // whether trusted covers all platforms
	warnings []string // for the user
}

var (
	errUnknown  = errors.New("the provider is not known there")
	errPlatform = errors.New("there is no package for the platform")
)

// A method is a source with the providers that it is used for.
type method struct {
	source
	allows func(addr.Provider) bool
}

// methods returns the sources in the options, in order.
func (in *installer) methods() []method {
	o := in.o
	all := func(addr.Provider) bool { return true }
	if len(o.PluginDirs) > 0 {
		var out []method
		for _, d := range o.PluginDirs {
			out = append(out, method{&mirror{dir: o.path(d), shown: d}, all})
		}
		return out
	}
	conf := o.config().Installation
	if conf == nil {
		return in.implied()
	}
	var out []method
	for _, m := range conf.Methods {
		allows := m.Allows
		switch m.Kind {
		case cliconfig.FilesystemMirror:
			out = append(out, method{&mirror{dir: o.path(m.Location), shown: m.Location}, allows})
		default:
			out = append(out, method{in.network(m), allows})
		}
	}
	return out
}

// implied returns the methods without a provider_installation block: the existing plugin
// directories, and the registry for every provider that is in none of them.
func (in *installer) implied() []method {
	var out []method
	for _, dir := range in.o.impliedDirs() {
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			out = append(out, method{&mirror{dir: dir, shown: dir}, func(addr.Provider) bool { return true }})
		}
	}
	locals := slices.Clone(out)
	direct := in.network(cliconfig.Method{Kind: cliconfig.Direct, Retries: -1})
	return append(out, method{direct, func(p addr.Provider) bool {
		for _, m := range locals {
			if m.source.(*mirror).has(p) {
				return false
			}
		}
		return true
	}})
}

// impliedDirs returns the existing directories that are searched without a
// provider_installation block.
func (o *Options) impliedDirs() []string {
	dirs := []string{filepath.Join(o.WorkDir, "terraform.d", "plugins")}
	if o.config().Dir != "" {
		dirs = append(dirs, filepath.Join(o.config().Dir, "plugins"))
	} else if o.Home != "" {
		dirs = append(dirs, filepath.Join(o.Home, ".terraform.d", "plugins"))
	}
	var data []string
	switch runtime.GOOS {
	case "windows":
		if d := o.Env.Get("APPDATA"); d != "" {
			data = append(data, filepath.Join(d, "HashiCorp", "Terraform"))
		}
	case "darwin":
		if o.Home != "" {
			data = append(data, filepath.Join(o.Home, "Library", "Application Support", "io.terraform"))
		}
		data = append(data, "/Library/Application Support/io.terraform")
	default:
		if d := o.Env.Get("XDG_DATA_HOME"); d != "" {
			data = append(data, filepath.Join(d, "opentofu"), filepath.Join(d, "terraform"))
		} else if o.Home != "" {
			data = append(data, filepath.Join(o.Home, ".local", "share", "opentofu"), filepath.Join(o.Home, ".local", "share", "terraform"))
		}
		shared := o.Env.Get("XDG_DATA_DIRS")
		if shared == "" {
			shared = "/usr/local/share:/usr/share"
		}
		for _, d := range filepath.SplitList(shared) {
			data = append(data, filepath.Join(d, "opentofu"), filepath.Join(d, "terraform"))
		}
	}
	for _, d := range data {
		dirs = append(dirs, filepath.Join(d, "plugins"))
	}
	return dirs
}

// mirror is a directory with packages in the packed and the unpacked layout.
type mirror struct {
	dir   string // absolute
	shown string // the path as the user wrote it
}

func (m *mirror) where(addr.Provider) string { return m.shown }

func (m *mirror) base(p addr.Provider) string {
	return filepath.Join(m.dir, p.Host, p.Namespace, p.Type)
}

func (m *mirror) has(p addr.Provider) bool {
	vs, err := m.list(p)
	return err == nil && len(vs) > 0
}

func (m *mirror) versions(_ context.Context, p addr.Provider) ([]versions.Version, []string, error) {
	vs, err := m.list(p)
	return vs, nil, err
}

// list returns the versions of a provider that the directory contains.
func (m *mirror) list(p addr.Provider) ([]versions.Version, error) {
	if _, err := os.Stat(m.dir); err != nil {
		return nil, fmt.Errorf("cannot search %s: %w", m.shown, err)
	}
	entries, err := os.ReadDir(m.base(p))
	if errors.Is(err, os.ErrNotExist) {
		return nil, errUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("cannot search %s: %w", m.shown, err)
	}
	var out []versions.Version
	for _, e := range entries {
		if v, _, ok := packedName(p, e.Name()); ok {
			out = append(out, v)
			continue
		}
		v, err := versions.ParseVersion(e.Name())
		if err != nil || v.String() != e.Name() {
			continue
		}
		if inside, err := os.ReadDir(filepath.Join(m.base(p), e.Name())); err == nil && slices.ContainsFunc(inside, isPlatform) {
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		return nil, errUnknown
	}
	return out, nil
}

func isPlatform(e os.DirEntry) bool {
	os, arch, ok := strings.Cut(e.Name(), "_")
	return ok && os != "" && arch != "" && !strings.ContainsAny(arch, "._")
}

// packedName parses terraform-provider-TYPE_VERSION_OS_ARCH.zip.
func packedName(p addr.Provider, name string) (v versions.Version, pl platform, ok bool) {
	rest, ok := strings.CutPrefix(name, "terraform-provider-"+p.Type+"_")
	if !ok {
		return v, pl, false
	}
	if rest, ok = strings.CutSuffix(rest, ".zip"); !ok {
		return v, pl, false
	}
	parts := strings.Split(rest, "_")
	if len(parts) != 3 {
		return v, pl, false
	}
	v, err := versions.ParseVersion(strings.TrimPrefix(parts[0], "v"))
	return v, platform{parts[1], parts[2]}, err == nil
}

func (m *mirror) find(_ context.Context, p addr.Provider, v versions.Version, pl platform) (found, error) {
	dir := packageDir(m.dir, p, v, pl)
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		return local{path: dir, folder: true}, nil
	}
	entries, err := os.ReadDir(m.base(p))
	if err != nil {
		return nil, fmt.Errorf("cannot search %s: %w", m.shown, err)
	}
	for _, e := range entries {
		if ev, epl, ok := packedName(p, e.Name()); ok && epl == pl && ev.Same(v) {
			return local{path: filepath.Join(m.base(p), e.Name())}, nil
		}
	}
	return nil, errPlatform
}

func (l local) vouches(context.Context) (known, trusted []lock.Hash, complete bool, err error) {
	return nil, nil, false, nil
}

// fetch returns the package itself.
func (l local) fetch(context.Context, string, func(done, total int64)) (local, error) { return l, nil }
