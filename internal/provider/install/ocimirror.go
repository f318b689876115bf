package install

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/net/oci"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"github.com/terrace-iac/terrace/internal/settings/cliconfig"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// The artifact types of providers in OCI registries.
const (
	ociProvider = "application/vnd.opentofu.provider"
	ociTarget   = "application/vnd.opentofu.provider-target"
	ociLayer    = "archive/zip"
)

// ociMirror is a source with a repository of an OCI registry for each provider.
type ociMirror struct {
	in *installer
	m  cliconfig.Method
}

func (o *ociMirror) where(p addr.Provider) string {
	host, path, err := o.m.Template.Repository(p)
	if err != nil {
		return "OCI mirror"
	}
	return host + "/" + path
}

func (o *ociMirror) client(p addr.Provider) (*oci.Client, error) {
	host, path, err := o.m.Template.Repository(p)
	if err != nil {
		return nil, err
	}
	n := o.in.shared()
	return &oci.Client{Host: host, Repository: path, HTTP: o.in.downloads(o.m), Credentials: n.oci.Find}, nil
}

func (o *ociMirror) versions(ctx context.Context, p addr.Provider) ([]versions.Version, []string, error) {
	c, err := o.client(p)
	if err != nil {
		return nil, nil, err
	}
	tags, err := c.Tags(ctx)
	var se *transfer.StatusError
	if errors.As(err, &se) && se.Code == http.StatusNotFound {
		return nil, nil, errUnknown
	}
	if err != nil {
		return nil, nil, fmt.Errorf("failed to list the versions of %s in %s: %w", p, o.where(p), err)
	}
	var out []versions.Version
	for _, t := range tags {
		if v, err := versions.ParseVersion(strings.ReplaceAll(t, "_", "+")); err == nil {
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		return nil, nil, errUnknown
	}
	return out, nil, nil
}

func (o *ociMirror) find(ctx context.Context, p addr.Provider, v versions.Version, pl platform) (found, error) {
	c, err := o.client(p)
	if err != nil {
		return nil, err
	}
	index, err := c.Manifest(ctx, strings.ReplaceAll(v.String(), "+", "_"))
	if err != nil {
		return nil, err
	}
	if index.MediaType != oci.IndexType || index.ArtifactType != ociProvider {
		return nil, fmt.Errorf("version %s in %s is not an index of artifact type %q", v, o.where(p), ociProvider)
	}
	for _, d := range index.Manifests {
		if d.Platform == nil || d.Platform.OS != pl.os || d.Platform.Architecture != pl.arch {
			continue
		}
		m, err := c.Manifest(ctx, d.Digest)
		if err != nil {
			return nil, err
		}
		if m.MediaType != oci.ManifestType || m.ArtifactType != ociTarget {
			return nil, fmt.Errorf("the package for %s in %s is not an image manifest of artifact type %q", pl, o.where(p), ociTarget)
		}
		var layers []oci.Descriptor
		for _, l := range m.Layers {
			if l.MediaType == ociLayer {
				layers = append(layers, l)
			}
		}
		if len(layers) != 1 {
			return nil, fmt.Errorf("the package for %s in %s must have exactly one layer of media type %q", pl, o.where(p), ociLayer)
		}
		if layers[0].Size > maxPackage {
			return nil, fmt.Errorf("the package for %s in %s is larger than allowed", pl, o.where(p))
		}
		return &ociPackage{c: c, layer: layers[0]}, nil
	}
	return nil, errPlatform
}

// ociPackage is a package in an OCI registry.
type ociPackage struct {
	c     *oci.Client
	layer oci.Descriptor
}

func (k *ociPackage) hashes() []lock.Hash {
	if sum, ok := strings.CutPrefix(k.layer.Digest, "sha256:"); ok {
		return []lock.Hash{lock.ZipHash(sum)}
	}
	return nil
}

func (k *ociPackage) vouches(context.Context) (known, trusted []lock.Hash, complete bool, err error) {
	return k.hashes(), k.hashes(), false, nil
}

func (k *ociPackage) fetch(ctx context.Context, tmp string, progress func(done, total int64)) (local, error) {
	file := filepath.Join(tmp, "package.zip")
	if err := k.c.Blob(ctx, k.layer, file, progress); err != nil {
		return local{}, err
	}
	return local{path: file, trusted: k.hashes(), auth: Auth{How: VerifiedChecksum}}, nil
}
