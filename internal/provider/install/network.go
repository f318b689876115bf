package install

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/net/oci"
	"github.com/terrace-iac/terrace/internal/net/registry"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

const (
	maxPackage   = 4 << 30
	maxSums      = 4 << 20
	maxSignature = 1 << 20
)

// network contains the clients that network sources share. It is created on first use.
type network struct {
	once     sync.Once
	http     *transfer.Client
	registry *registry.Client
	oci      *oci.Store
}

func (in *installer) shared() *network {
	in.net.once.Do(func() {
		o := in.o
		in.net.http = transfer.New(o.Env)
		if o.Client != nil {
			in.net.http.HTTP = o.Client
		}
		program := ""
		if o.Program != "" {
			program = filepath.Dir(o.Program)
		}
		in.net.registry = &registry.Client{
			HTTP: in.net.http, Config: o.config(), Run: o.Run, Env: o.Env, WorkDir: o.WorkDir,
			HelperDirs: registry.HelperDirs(o.config().Dir, program),
		}
		in.net.oci = &oci.Store{Config: o.config(), Env: o.Env, Home: o.Home, WorkDir: o.WorkDir, Run: o.Run}
	})
	return &in.net
}

// downloads returns the client for downloading packages from a source.
func (in *installer) downloads(m cliconfig.Method) *transfer.Client {
	retries := m.Retries
	if retries < 0 {
		retries = 2
		if in.o.Config != nil {
			retries = in.o.Config.Registry.DownloadRetries
		}
	}
	return in.shared().http.With(retries, 0)
}

func (in *installer) network(m cliconfig.Method) source {
	switch m.Kind {
	case cliconfig.NetworkMirror:
		return &netMirror{in: in, m: m}
	case cliconfig.OCIMirror:
		return &ociMirror{in: in, m: m}
	default:
		return &direct{in: in, m: m}
	}
}

// direct is the source that uses the registry of each provider's own host.
type direct struct {
	in *installer
	m  cliconfig.Method

	mu    sync.Mutex
	known map[addr.Provider][]registry.ProviderVersion
}

func (d *direct) where(p addr.Provider) string { return p.Host }

func (d *direct) versions(ctx context.Context, p addr.Provider) ([]versions.Version, []string, error) {
	list, warnings, err := d.in.shared().registry.ProviderVersions(ctx, p)
	switch {
	case errors.Is(err, registry.ErrNotFound):
		return nil, nil, errUnknown
	case err != nil:
		return nil, nil, err
	}
	var out []versions.Version
	for _, v := range list {
		if parsed, err := versions.ParseVersion(v.Version); err == nil {
			out = append(out, parsed)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known == nil {
		d.known = make(map[addr.Provider][]registry.ProviderVersion)
	}
	d.known[p] = list
	return out, warnings, nil
}

func (d *direct) find(ctx context.Context, p addr.Provider, v versions.Version, pl platform) (found, error) {
	d.mu.Lock()
	list := d.known[p]
	d.mu.Unlock()
	listed := v.String()
	for _, have := range list {
		parsed, err := versions.ParseVersion(have.Version)
		if err != nil || !parsed.Same(v) {
			continue
		}
		listed = have.Version
		if err := protocols(p, v, have.Protocols, list); err != nil {
			return nil, err
		}
		if len(have.Platforms) > 0 && !hasPlatform(have, pl) {
			return nil, errPlatform
		}
	}
	meta, err := d.in.shared().registry.ProviderPackage(ctx, p, listed, pl.os, pl.arch)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, errPlatform
	}
	if err != nil {
		return nil, err
	}
	if err := protocols(p, v, meta.Protocols, list); err != nil {
		return nil, err
	}
	return &directPackage{d: d, p: p, v: v, pl: pl, meta: meta}, nil
}

func hasPlatform(v registry.ProviderVersion, pl platform) bool {
	for _, have := range v.Platforms {
		if have.OS == pl.os && have.Arch == pl.arch {
			return true
		}
	}
	return false
}

// protocols returns an error if a version supports no plugin protocol from 5 up to, but not
// including, 7.
func protocols(p addr.Provider, v versions.Version, have []string, list []registry.ProviderVersion) error {
	if len(have) == 0 || speaks(have) {
		return nil
	}
	best := versions.Unspecified
	for _, o := range list {
		if ov, err := versions.ParseVersion(o.Version); err == nil && speaks(o.Protocols) && ov.Prerelease == "" && (best == versions.Unspecified || best.LessThan(ov)) {
			best = ov
		}
	}
	hint := "no version of it does"
	if best != versions.Unspecified {
		hint = fmt.Sprintf("the newest version that does is %s", best)
	}
	return fmt.Errorf("provider %s %s speaks plugin protocol %v, but one from 5 up to below 7 is needed; %s", p, v, have, hint)
}

func speaks(protocols []string) bool {
	for _, text := range protocols {
		if v, err := versions.ParseVersion(text + ".0"); err == nil && v.Major >= 5 && v.Major < 7 {
			return true
		}
		if v, err := versions.ParseVersion(text + ".0.0"); err == nil && v.Major >= 5 && v.Major < 7 {
			return true
		}
	}
	return false
}

// verified compares a downloaded archive with the hashes of the source, and returns those
// that match. It fails if none does.
func verified(ctx context.Context, file string, want []lock.Hash) ([]lock.Hash, error) {
	var have []lock.Hash
	zh, err := lock.HashZip(ctx, file)
	if err != nil {
		return nil, err
	}
	have = append(have, zh)
	if lock.HasScheme(want, "h1") {
		h1, err := lock.HashArchive(ctx, file, unpackLimit)
		if err != nil {
			return nil, fmt.Errorf("the package is not a zip archive: %w", err)
		}
		have = append(have, h1)
	}
	var out []lock.Hash
	for _, h := range have {
		for _, w := range want {
			if h == w {
				out = append(out, h)
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the checksum of the downloaded package is %s, but the source says %s", zh, want)
	}
	return out, nil
}
