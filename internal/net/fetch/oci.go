package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/base/archive"
	"github.com/terrace-iac/terrace/internal/net/oci"
)

// OCICredentials are credentials for an OCI registry.
type OCICredentials = oci.Credentials

// The artifact type of module packages, and the media type of their layer.
const (
	moduleArtifact = "application/vnd.opentofu.modulepkg"
	zipLayer       = "archive/zip"
)

// oci downloads oci://HOST/REPOSITORY[?tag=T|digest=D].
func (w *work) oci(ctx context.Context, dir string) (string, error) {
	u, err := url.Parse(w.a.URL)
	if err != nil {
		return "", err
	}
	ref, err := ociReference(u.Query())
	if err != nil {
		return "", err
	}
	c := &oci.Client{Host: u.Host, Repository: strings.Trim(u.Path, "/"), HTTP: w.Client}
	if c.Host == "" || c.Repository == "" {
		return "", errors.New("an OCI module address must have the form oci://HOST/REPOSITORY")
	}
	if repository, tag, ok := strings.Cut(c.Repository, ":"); ok {
		return "", fmt.Errorf("an OCI module address has no suffix with a tag: write oci://%s/%s?tag=%s", c.Host, repository, tag)
	}
	if w.OCI != nil {
		c.Credentials = w.OCI
	}
	m, err := c.Manifest(ctx, ref)
	if err != nil {
		return "", err
	}
	if m.Digest == w.old {
		return m.Digest, nil
	}
	if m.MediaType != oci.ManifestType || m.ArtifactType != moduleArtifact {
		return "", fmt.Errorf("%s holds %q of type %q; a module package is an image manifest of artifact type %q", ref, m.ArtifactType, m.MediaType, moduleArtifact)
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != zipLayer {
		return "", fmt.Errorf("the manifest must have exactly one layer, of media type %q", zipLayer)
	}
	if m.Layers[0].Size > maxArchive {
		return "", errors.New("the package is larger than allowed")
	}
	file := filepath.Join(w.tmp, "archive")
	if err := c.Blob(ctx, m.Layers[0], file, w.arrived); err != nil {
		return "", err
	}
	return m.Digest, w.unpack(ctx, archive.File{Path: file, Kind: archive.Zip}, dir)
}

func ociReference(q url.Values) (string, error) {
	tag, digest := q.Get("tag"), q.Get("digest")
	for k := range q {
		if k != "tag" && k != "digest" {
			return "", fmt.Errorf("an OCI module address cannot have the parameter %q, only tag or digest", k)
		}
	}
	switch {
	case tag != "" && digest != "":
		return "", errors.New("an OCI module address can have either a tag or a digest, not both")
	case digest != "":
		return digest, nil
	case tag != "":
		return tag, nil
	}
	return "latest", nil
}
