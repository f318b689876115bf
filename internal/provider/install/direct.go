package install

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/apparentlymart/go-versions/versions"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/net/registry"
	"github.com/terrace-iac/terrace/internal/net/transfer"
	"github.com/terrace-iac/terrace/internal/settings/lock"
)

// directPackage is a package in a provider registry.
type directPackage struct {
	d    *direct
	p    addr.Provider
	v    versions.Version
	pl   platform
	meta registry.ProviderPackage

	read parallel.Cache[struct{}, checksums]
}

// checksums are the authenticated checksums of a version.
type checksums struct {
	sums map[string]string // by file name
	auth Auth
	warn []string
	err  error
}

// vouches authenticates the checksums, so that a cached package can be compared with them
// before anything large is downloaded.
func (k *directPackage) vouches(ctx context.Context) (known, trusted []lock.Hash, complete bool, err error) {
	sums, err := k.authenticate(ctx)
	if err != nil {
		return nil, nil, false, err
	}
	known = append(known, lock.ZipHash(strings.ToLower(k.meta.Shasum)))
	if k.tellsHashes() {
		for _, h := range k.meta.Packages[k.pl.String()].Hashes {
			known = append(known, lock.Hash(h))
		}
	}
	return known, k.trusted(sums), true, nil
}

// tellsHashes reports whether the registry's hashes for all platforms are added to the lock
// file. Like OpenTofu, Terrace does this for the default registry only.
func (k *directPackage) tellsHashes() bool { return k.p.Host == addr.DefaultHost }

// trusted returns the hashes for the lock file: those of every package of the version.
func (k *directPackage) trusted(c checksums) []lock.Hash {
	var out []lock.Hash
	for _, sum := range c.sums {
		out = append(out, lock.ZipHash(sum))
	}
	if k.tellsHashes() {
		for _, p := range k.meta.Packages {
			for _, h := range p.Hashes {
				out = append(out, lock.Hash(h))
			}
		}
	}
	return knownHashes(out)
}

func (k *directPackage) fetch(ctx context.Context, tmp string, progress func(done, total int64)) (local, error) {
	sums, err := k.authenticate(ctx)
	if err != nil {
		return local{}, err
	}
	file := filepath.Join(tmp, "package.zip")
	err = k.d.in.downloads(k.d.m).Save(ctx, transfer.Download{URL: k.meta.DownloadURL.String(), Max: maxPackage, Progress: progress}, file)
	if err != nil {
		return local{}, err
	}
	if _, err := verified(ctx, file, []lock.Hash{lock.ZipHash(strings.ToLower(k.meta.Shasum))}); err != nil {
		return local{}, err
	}
	return local{path: file, auth: sums.auth, trusted: k.trusted(sums), complete: true, warnings: sums.warn}, nil
}

// authenticate returns the checksums of the version, and reads them once.
func (k *directPackage) authenticate(ctx context.Context) (checksums, error) {
	c, err := k.read.Do(ctx, struct{}{}, func() (checksums, bool) {
		c, err := k.readSums(ctx)
		c.err = err
		return c, err == nil
	})
	if err != nil {
		return checksums{}, err
	}
	return c, c.err
}

// readSums reads the checksums of the version. It compares them with the registry's
// checksum of the file, and checks their signature.
func (k *directPackage) readSums(ctx context.Context) (c checksums, err error) {
	http := k.d.in.shared().http
	doc, _, err := http.Get(ctx, k.meta.ShasumsURL.String(), nil, maxSums)
	if err != nil {
		return c, fmt.Errorf("failed to retrieve authentication checksums for provider: %w", err)
	}
	if c.sums, err = parseSums(string(doc)); err != nil {
		return c, err
	}
	name := k.meta.Filename
	if name == "" {
		name = baseName(k.meta.DownloadURL)
	}
	switch sum, ok := c.sums[name]; {
	case !ok:
		return c, fmt.Errorf("checksum list has no SHA-256 hash for %q", name)
	case !strings.EqualFold(sum, k.meta.Shasum):
		return c, fmt.Errorf("checksum list has the SHA-256 hash %s for %q, but the registry says %s", sum, name, k.meta.Shasum)
	}
	if len(k.meta.Keys) == 0 && k.p.Host == addr.DefaultHost && !k.d.in.o.enabled("OPENTOFU_ENFORCE_GPG_VALIDATION") {
		c.auth = Auth{How: SigningSkipped}
		return c, nil
	}
	if len(k.meta.Keys) == 0 || k.meta.SignatureURL == nil {
		return c, errors.New("the provider is not signed with a valid signing key; please contact the provider author (the registry names no signing key or no signature for it)")
	}
	sig, _, err := http.Get(ctx, k.meta.SignatureURL.String(), nil, maxSignature)
	if err != nil {
		return c, fmt.Errorf("failed to retrieve cryptographic signature for provider: %w", err)
	}
	id, expired, err := checkSignature(doc, sig, k.meta.Keys, k.d.in.o.Now)
	if err != nil {
		return c, err
	}
	if expired {
		if k.d.in.o.enabled("OPENTOFU_ENFORCE_GPG_EXPIRATION") {
			return c, fmt.Errorf("the provider is signed with the key %s, which has expired; please contact the provider author", id)
		}
		c.warn = append(c.warn, fmt.Sprintf("The package of %s %s is signed with the key %s, which has expired. Future versions of the provider should be signed with another key.", k.p.Display(), k.v, id))
	}
	c.auth = Auth{How: Signed, KeyID: id}
	return c, nil
}

// enabled reports whether an environment variable is set to a true value.
func (o *Options) enabled(name string) bool {
	v := strings.ToLower(o.Env.Get(name))
	return v == "true" || v == "1"
}

func baseName(u *url.URL) string {
	_, name, _ := cutLast(u.Path, "/")
	return name
}

func cutLast(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+len(sep):], true
}

// parseSums parses lines of the form "HEX  NAME".
func parseSums(doc string) (map[string]string, error) {
	out := make(map[string]string)
	for _, line := range strings.Split(doc, "\n") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) != 2 || len(f[0]) != 64 || strings.Trim(strings.ToLower(f[0]), "0123456789abcdef") != "" {
			return nil, errors.New("the list of checksums has a line that is not a SHA-256 hash and a file name")
		}
		out[strings.TrimPrefix(f[1], "*")] = strings.ToLower(f[0])
	}
	return out, nil
}
