// Package oci reads tags, manifests and blobs from OCI registries.
//
// Main type: Client. The one rule: content is checked against its digest before it is used.
//
// The package implements the OCI distribution specification 1.1 and the token authentication of
// Docker registries, https://distribution.github.io/distribution/spec/auth/.
package oci

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/net/transfer"
)

// MaxManifest is the maximum size, in bytes, of a manifest.
const MaxManifest = 4 << 20

// Media types of manifests.
const (
	ManifestType = "application/vnd.oci.image.manifest.v1+json"
	IndexType    = "application/vnd.oci.image.index.v1+json"
)

// Credentials authenticate a client to a registry. The zero value means none.
type Credentials struct {
	Username, Password string
	AccessToken        string // sent unchanged
	RefreshToken       string // exchanged for an access token
}

// A Client reads one repository. Its methods may be called concurrently.
type Client struct {
	Host, Repository string
	HTTP             *transfer.Client
	// Credentials returns the credentials for a repository. It is called once, when the registry
	// requires authentication. It may be nil.
	Credentials func(ctx context.Context, host, repository string) (Credentials, error)

	mu    sync.Mutex
	token string // value of the Authorization header
	plain bool   // http instead of https
}

// A Descriptor identifies content by its digest.
type Descriptor struct {
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Digest       string            `json:"digest"`
	Size         int64             `json:"size"`
	Platform     *Platform         `json:"platform"`
	Annotations  map[string]string `json:"annotations"`
}

// A Platform is the platform of an entry of an index.
type Platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// A Manifest is an image manifest or an index, depending on MediaType.
type Manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType"`
	ArtifactType  string            `json:"artifactType"`
	Config        Descriptor        `json:"config"`
	Layers        []Descriptor      `json:"layers"`
	Manifests     []Descriptor      `json:"manifests"`
	Annotations   map[string]string `json:"annotations"`
	Digest        string            `json:"-"` // digest of the manifest itself
}

func (c *Client) url(rest string) string {
	scheme := "https"
	if c.isPlain() {
		scheme = "http"
	}
	return scheme + "://" + c.Host + "/v2/" + c.Repository + "/" + rest
}

func (c *Client) isPlain() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plain
}

// goPlain reports whether a request failed because a registry on this machine only supports HTTP
// without TLS, as is usual. Later requests then use HTTP.
func (c *Client) goPlain(err error) bool {
	if err == nil || c.isPlain() || !strings.Contains(err.Error(), "server gave HTTP response to HTTPS client") {
		return false
	}
	host := c.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plain = true
	return true
}

// Manifest reads the manifest with a tag or a digest.
func (c *Client) Manifest(ctx context.Context, ref string) (*Manifest, error) {
	h := http.Header{"Accept": {ManifestType + ", " + IndexType}}
	body, resp, err := c.get(ctx, "manifests/"+url.PathEscape(ref), h, MaxManifest)
	if err != nil {
		return nil, err
	}
	digest := ref
	if !strings.Contains(ref, ":") {
		sum := sha256.Sum256(body)
		digest = "sha256:" + hex.EncodeToString(sum[:])
	}
	if err := check(digest, func(h hash.Hash) { h.Write(body) }); err != nil {
		return nil, err
	}
	m := &Manifest{Digest: digest}
	if err := json.Unmarshal(body, m); err != nil {
		return nil, fmt.Errorf("the manifest of %s is not valid JSON: %w", ref, err)
	}
	if m.MediaType == "" {
		m.MediaType, _, _ = strings.Cut(resp.Header.Get("Content-Type"), ";")
	}
	if m.SchemaVersion != 2 {
		return nil, fmt.Errorf("the manifest of %s is not of schema version 2", ref)
	}
	return m, nil
}

// Tags returns the tags of the repository. If the repository does not exist, the error is a
// *transfer.StatusError with code 404.
func (c *Client) Tags(ctx context.Context) ([]string, error) {
	var out []string
	next := "tags/list"
	for pages := 0; next != ""; pages++ {
		if pages > 1000 {
			return nil, errors.New("the list of tags does not end")
		}
		body, resp, err := c.get(ctx, next, nil, MaxManifest)
		if err != nil {
			return nil, err
		}
		var page struct{ Tags []string }
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, fmt.Errorf("the list of tags is not valid JSON: %w", err)
		}
		out = append(out, page.Tags...)
		if next, err = nextPage(resp); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// nextPage returns the URL in the Link header, or "". The next page must be on the same host.
func nextPage(resp *http.Response) (string, error) {
	for _, l := range resp.Header.Values("Link") {
		where, params, ok := strings.Cut(l, ">")
		if !ok || !strings.Contains(params, `rel="next"`) && !strings.Contains(params, "rel=next") {
			continue
		}
		u, err := resp.Request.URL.Parse(strings.TrimPrefix(strings.TrimSpace(where), "<"))
		if err != nil {
			return "", err
		}
		if u.Host != resp.Request.URL.Host || u.Scheme != resp.Request.URL.Scheme {
			return "", fmt.Errorf("the list of tags continues on another host, %s", u.Host)
		}
		return u.String(), nil
	}
	return "", nil
}

// Blob saves the content of a descriptor to a file. progress may be nil.
func (c *Client) Blob(ctx context.Context, d Descriptor, file string, progress func(done, total int64)) error {
	for again := true; ; again = false {
		h := http.Header{}
		c.authorize(h)
		err := c.HTTP.Save(ctx, transfer.Download{URL: c.url("blobs/" + url.PathEscape(d.Digest)), Header: h, Max: d.Size, Progress: progress}, file)
		var se *transfer.StatusError
		if again && errors.As(err, &se) && se.Code == http.StatusUnauthorized {
			// Save does not return the challenge, so another request gets it.
			if _, _, err := c.get(ctx, "manifests/"+url.PathEscape(d.Digest), nil, MaxManifest); err != nil && c.token == "" {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		break
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	var n int64
	var rerr error
	if err := check(d.Digest, func(h hash.Hash) { n, rerr = io.Copy(h, f) }); err != nil || rerr != nil {
		return errors.Join(err, rerr)
	}
	if n != d.Size {
		return fmt.Errorf("the content of %s has %d bytes instead of %d", d.Digest, n, d.Size)
	}
	return nil
}

// check compares a digest with the hash of the data that feed writes.
func check(digest string, feed func(hash.Hash)) error {
	kind, want, _ := strings.Cut(digest, ":")
	var h hash.Hash
	switch kind {
	case "sha256":
		h = sha256.New()
	case "sha512":
		h = sha512.New()
	default:
		return fmt.Errorf("%q is not a digest of kind sha256 or sha512", digest)
	}
	feed(h)
	if have := hex.EncodeToString(h.Sum(nil)); have != want {
		return fmt.Errorf("the content does not have the digest %s but %s:%s", digest, kind, have)
	}
	return nil
}
