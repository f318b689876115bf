package registry

import (
	"context"
	"fmt"
	"net/url"

	"github.com/terrace-iac/terrace/addr"
)

const providerService = "providers.v1"

// A ProviderVersion is a version of a provider in a registry.
type ProviderVersion struct {
	Version   string
	Protocols []string
	Platforms []struct{ OS, Arch string }
}

// A ProviderPackage is a package of a provider in a registry.
type ProviderPackage struct {
	Protocols    []string
	OS, Arch     string
	Filename     string
	DownloadURL  *url.URL
	ShasumsURL   *url.URL
	SignatureURL *url.URL
	Shasum       string
	Keys         []SigningKey
	// Packages contains the hashes of the packages for all platforms, if the registry provides
	// them.
	Packages map[string]PlatformPackage
}

// A SigningKey is a public key for the signatures of a provider's releases.
type SigningKey struct {
	KeyID string `json:"key_id"`
	Armor string `json:"ascii_armor"`
}

// A PlatformPackage is the registry's data about the package for one platform.
type PlatformPackage struct {
	Hashes []string `json:"hashes"`
	Size   int64    `json:"package_size"`
}

// ProviderVersions returns the versions of a provider, and the registry's warnings. If the
// provider does not exist, the error is ErrNotFound.
func (c *Client) ProviderVersions(ctx context.Context, p addr.Provider) ([]ProviderVersion, []string, error) {
	base, err := c.Service(ctx, p.Host, providerService, "a provider registry")
	if err != nil {
		return nil, nil, err
	}
	var out struct {
		Versions []ProviderVersion
		Warnings []string
	}
	_, err = c.get(ctx, p.Host, join(base, p.Namespace, p.Type, "versions"), &out)
	return out.Versions, out.Warnings, err
}

// ProviderPackage returns a package of a provider. If it does not exist, the error is
// ErrNotFound.
func (c *Client) ProviderPackage(ctx context.Context, p addr.Provider, version, os, arch string) (ProviderPackage, error) {
	base, err := c.Service(ctx, p.Host, providerService, "a provider registry")
	if err != nil {
		return ProviderPackage{}, err
	}
	var doc struct {
		Protocols    []string
		OS, Arch     string
		Filename     string
		DownloadURL  string `json:"download_url"`
		ShasumsURL   string `json:"shasums_url"`
		SignatureURL string `json:"shasums_signature_url"`
		Shasum       string
		SigningKeys  struct {
			GPG []SigningKey `json:"gpg_public_keys"`
		} `json:"signing_keys"`
		Packages map[string]PlatformPackage
	}
	resp, err := c.get(ctx, p.Host, join(base, p.Namespace, p.Type, version, "download", os, arch), &doc)
	if err != nil {
		return ProviderPackage{}, err
	}
	out := ProviderPackage{Protocols: doc.Protocols, OS: doc.OS, Arch: doc.Arch, Filename: doc.Filename, Shasum: doc.Shasum, Keys: doc.SigningKeys.GPG, Packages: doc.Packages}
	if doc.OS != os || doc.Arch != arch {
		return out, fmt.Errorf("the registry answered a request for the platform %s_%s with one for %s_%s", os, arch, doc.OS, doc.Arch)
	}
	for _, f := range []struct {
		name, text string
		to         **url.URL
		optional   bool
	}{
		{"download_url", doc.DownloadURL, &out.DownloadURL, false},
		{"shasums_url", doc.ShasumsURL, &out.ShasumsURL, false},
		{"shasums_signature_url", doc.SignatureURL, &out.SignatureURL, true},
	} {
		u, err := resp.Request.URL.Parse(f.text)
		if f.text == "" && f.optional {
			continue
		}
		if err != nil || f.text == "" || u.Scheme != "https" && u.Scheme != "http" {
			return out, fmt.Errorf("the registry's answer has %q for %s, which is not an http or https URL", f.text, f.name)
		}
		*f.to = u
	}
	return out, nil
}
