package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/terrace-iac/terrace/internal/net/fetch"
)

const moduleService = "modules.v1"

// PackageKey returns the key of a module version's package in the cache. It contains the host
// that is actually used, because a host in Standins is a different one in each directory.
func (c *Client) PackageKey(a fetch.Address, version string) string {
	if slices.Contains(Standins, a.Host) {
		if h, err := c.host(a.Host); err == nil {
			a.Host = h
		}
	}
	return a.Package() + "@" + version
}

// ModuleVersions returns the versions of a module in the registry's order.
func (c *Client) ModuleVersions(ctx context.Context, a fetch.Address) ([]string, error) {
	base, err := c.Service(ctx, a.Host, moduleService, "a module registry")
	if err != nil {
		return nil, err
	}
	var out struct {
		Modules []struct {
			Versions []struct{ Version string }
		}
	}
	if _, err := c.get(ctx, a.Host, join(base, a.Namespace, a.Name, a.System, "versions"), &out); err != nil {
		if errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("the module %s cannot be found in the module registry at %s: %w", a.Package(), a.Host, ErrNotFound)
		}
		return nil, err
	}
	if len(out.Modules) == 0 {
		return nil, fmt.Errorf("the registry's answer about %s names no module", a.Package())
	}
	var versions []string
	for _, v := range out.Modules[0].Versions {
		versions = append(versions, v.Version)
	}
	return versions, nil
}

// ModuleLocation returns the location of the package of a version.
func (c *Client) ModuleLocation(ctx context.Context, a fetch.Address, version string) (fetch.Location, error) {
	base, err := c.Service(ctx, a.Host, moduleService, "a module registry")
	if err != nil {
		return fetch.Location{}, err
	}
	u := join(base, a.Namespace, a.Name, a.System, version, "download")
	var out struct {
		Location       string
		UseCredentials *bool `json:"use_registry_credentials"`
	}
	resp, err := c.get(ctx, a.Host, u, &out)
	if err != nil {
		return fetch.Location{}, err
	}
	loc := fetch.Location{Where: out.Location, Base: resp.Request.URL}
	if loc.Where == "" {
		loc.Where = resp.Header.Get("X-Terraform-Get")
	} else if out.UseCredentials != nil {
		loc.Direct = true
		if *out.UseCredentials {
			loc.Header = http.Header{}
			if err := c.authorize(ctx, a.Host, loc.Header); err != nil {
				return loc, err
			}
		}
	}
	if loc.Where == "" {
		return loc, fmt.Errorf("the registry's answer about %s %s names no location", a.Package(), version)
	}
	return loc, nil
}
