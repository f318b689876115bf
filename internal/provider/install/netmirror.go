package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// netMirror is a network mirror.
type netMirror struct {
	in *installer
	m  cliconfig.Method
}

func (n *netMirror) where(addr.Provider) string { return n.m.Location }

// get reads one of the mirror's JSON documents. The request contains the credentials for
// the mirror's host.
func (n *netMirror) get(ctx context.Context, p addr.Provider, name string, out any) (*url.URL, error) {
	base, err := url.Parse(n.m.Location)
	if err != nil {
		return nil, err
	}
	u := base.JoinPath(p.Host, p.Namespace, p.Type, name)
	h := http.Header{"Accept": {"application/json"}}
	token, err := n.in.shared().registry.Token(ctx, base.Host)
	if err != nil {
		return nil, err
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	body, resp, err := n.in.shared().http.Get(ctx, u.String(), h, maxSums)
	var se *transfer.StatusError
	if errors.As(err, &se) && se.Code == http.StatusNotFound {
		return nil, errUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("failed to query provider mirror %s for %s: %w", n.m.Location, p, err)
	}
	if err := json.Unmarshal(body, out); err != nil {
		return nil, fmt.Errorf("the answer of provider mirror %s for %s is not valid JSON of the expected form: %w", n.m.Location, p, err)
	}
	return resp.Request.URL, nil
}

func (n *netMirror) versions(ctx context.Context, p addr.Provider) ([]versions.Version, []string, error) {
	var doc struct{ Versions map[string]any }
	if _, err := n.get(ctx, p, "index.json", &doc); err != nil {
		return nil, nil, err
	}
	var out []versions.Version
	for text := range doc.Versions {
		if v, err := versions.ParseVersion(text); err == nil {
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		return nil, nil, errUnknown
	}
	return out, nil, nil
}

func (n *netMirror) find(ctx context.Context, p addr.Provider, v versions.Version, pl platform) (found, error) {
	var doc struct {
		Archives map[string]struct {
			URL    string
			Hashes []lock.Hash
		}
	}
	base, err := n.get(ctx, p, v.String()+".json", &doc)
	if errors.Is(err, errUnknown) {
		return nil, fmt.Errorf("provider mirror %s lists version %s of %s but does not have it", n.m.Location, v, p)
	}
	if err != nil {
		return nil, err
	}
	a, ok := doc.Archives[pl.String()]
	if !ok {
		return nil, errPlatform
	}
	u, err := base.Parse(a.URL)
	if err != nil || a.URL == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("provider mirror %s has %q for the URL of a package", n.m.Location, a.URL)
	}
	k := &mirrorPackage{n: n, url: u, hashes: knownHashes(a.Hashes)}
	if n.m.TrustAllHashes {
		for _, o := range doc.Archives {
			k.all = append(k.all, knownHashes(o.Hashes)...)
		}
	}
	return k, nil
}

// mirrorPackage is a package of a network mirror.
type mirrorPackage struct {
	n      *netMirror
	url    *url.URL
	hashes []lock.Hash // hashes of this package
	all    []lock.Hash // hashes of the packages for all platforms, if they can be trusted
}

func (k *mirrorPackage) vouches(context.Context) (known, trusted []lock.Hash, complete bool, err error) {
	return k.hashes, append(k.all, k.hashes...), len(k.all) > 0, nil
}

func (k *mirrorPackage) fetch(ctx context.Context, tmp string, progress func(done, total int64)) (local, error) {
	file := filepath.Join(tmp, "package.zip")
	err := k.n.in.downloads(k.n.m).Save(ctx, transfer.Download{URL: k.url.String(), Max: maxPackage, Progress: progress}, file)
	if err != nil {
		return local{}, err
	}
	l := local{path: file, trusted: k.all, complete: len(k.all) > 0}
	if len(k.hashes) > 0 {
		ok, err := verified(ctx, file, k.hashes)
		if err != nil {
			return local{}, err
		}
		l.trusted, l.auth = append(l.trusted, ok...), Auth{How: VerifiedChecksum}
	}
	return l, nil
}
