package fetch

import (
	"fmt"
	"path"
	"strings"

	"github.com/opentofu/svchost"
	"github.com/terrace-iac/terrace/addr"
)

// Kind is the kind of a source address. It decides how the address is resolved.
type Kind uint8

// The kinds of source addresses.
const (
	Local    Kind = iota // a directory relative to the calling module, in the same package
	Registry             // a module of a registry, selected by version
	Remote               // a package at the URL that the address contains
)

// An Address is a module source address. The zero Address is not valid.
type Address struct {
	Kind Kind

	Path string // of Local: relative, with slashes, begins with ./ or ../

	Host, Namespace, Name, System string // of Registry

	Getter string // of Remote: file, git, hg, http, https, s3, gcs or oci
	Forced bool   // of Remote: the address names the getter before ::, although the scheme implies it
	URL    string // of Remote: the URL for the getter, without the subdirectory

	Subdir string // of Registry and Remote: the directory inside the package, "" for its root
}

// String returns the address in canonical form, as in modules.json.
func (a Address) String() string {
	switch a.Kind {
	case Local:
		return a.Path
	case Registry:
		return a.withSubdir(a.Package())
	}
	return a.withSubdir(a.Package())
}

func (a Address) withSubdir(pkg string) string {
	if a.Subdir == "" {
		return pkg
	}
	main, query, ok := strings.Cut(pkg, "?")
	main += "//" + a.Subdir
	if ok {
		main += "?" + query
	}
	return main
}

// Package returns the address of the whole package, without the subdirectory.
func (a Address) Package() string {
	switch a.Kind {
	case Local:
		return a.Path
	case Registry:
		return a.Host + "/" + a.Namespace + "/" + a.Name + "/" + a.System
	}
	if scheme, _, ok := strings.Cut(a.URL, "://"); ok && scheme == a.Getter && !a.Forced {
		return a.URL
	}
	return a.Getter + "::" + a.URL
}

// parseLocal parses a path that begins with ./ or ../, also with backslashes.
func parseLocal(src string) (Address, bool) {
	local := false
	for _, p := range []string{"./", "../", `.\`, `..\`} {
		local = local || strings.HasPrefix(src, p)
	}
	if !local {
		return Address{}, false
	}
	clean := path.Clean(strings.ReplaceAll(src, `\`, "/"))
	if !strings.HasPrefix(clean, "../") {
		clean = "./" + clean // also before "..", as in OpenTofu
	}
	return Address{Kind: Local, Path: clean}, true
}

// parseRegistry parses [host/]namespace/name/system[//subdir].
func parseRegistry(src string) (Address, error) {
	main, sub, err := splitSubdir(src)
	if err != nil {
		return Address{}, err
	}
	parts := strings.Split(main, "/")
	a := Address{Kind: Registry, Host: addr.DefaultHost, Subdir: sub}
	switch len(parts) {
	case 3:
	case 4:
		if a.Host, err = registryHost(parts[0]); err != nil {
			return Address{}, err
		}
		parts = parts[1:]
	default:
		return Address{}, fmt.Errorf("a module registry source address must have either three or four slash-separated components")
	}
	a.Namespace, a.Name, a.System = parts[0], parts[1], parts[2]
	for _, p := range []struct{ what, text string }{{"namespace", a.Namespace}, {"module name", a.Name}} {
		if !registryName(p.text) {
			return Address{}, fmt.Errorf("invalid %s %q: must be between one and 64 characters, including ASCII letters, digits, dashes, and underscores, where dashes and underscores may not be the prefix or suffix", p.what, p.text)
		}
	}
	if !targetSystem(a.System) {
		return Address{}, fmt.Errorf("invalid target system %q: must be between one and 64 ASCII lowercase letters or digits", a.System)
	}
	return a, nil
}

func registryHost(given string) (string, error) {
	if !strings.Contains(given, ".") {
		return "", fmt.Errorf("invalid module registry hostname %q: it must contain at least one dot", given)
	}
	if strings.Contains(strings.ToLower(given), "xn--") {
		return "", fmt.Errorf("invalid module registry hostname %q: internationalized domain names must be given as direct unicode characters, not in punycode", given)
	}
	host, err := svchost.ForComparison(given)
	if err != nil {
		return "", fmt.Errorf("invalid module registry hostname %q: %w", given, err)
	}
	shown := svchost.ForDisplay(given)
	if again, err := svchost.ForComparison(shown); err != nil || again != host {
		return "", fmt.Errorf("invalid module registry hostname %q", given)
	}
	switch shown {
	case "github.com", "bitbucket.org":
		return "", fmt.Errorf("can't use %q as a module registry host, because it's reserved for installing directly from version control repositories", shown)
	default:
		return shown, nil
	}
}

func registryName(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		alnum := '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !alnum && (c != '-' && c != '_' || i == 0 || i == len(s)-1) {
			return false
		}
	}
	return true
}

func targetSystem(s string) bool {
	if len(s) == 0 || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !('0' <= c && c <= '9' || 'a' <= c && c <= 'z') {
			return false
		}
	}
	return true
}

// splitSubdir removes the //subdir from an address and keeps the query.
func splitSubdir(src string) (main, sub string, err error) {
	main, query, hasQuery := strings.Cut(src, "?")
	from := 0
	if i := strings.Index(main, "://"); i >= 0 {
		from = i + len("://")
	}
	if i := strings.Index(main[from:], "//"); i >= 0 {
		sub = main[from+i+len("//"):]
		main = main[:from+i]
		if sub, err = cleanSubdir(sub); err != nil {
			return "", "", err
		}
	}
	if hasQuery {
		main += "?" + query
	}
	return main, sub, nil
}

func cleanSubdir(sub string) (string, error) {
	if sub == "" {
		return "", nil
	}
	clean := path.Clean(strings.ReplaceAll(sub, `\`, "/"))
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("subdirectory path %q leads outside of the module package", sub)
	}
	return clean, nil // may be "." or begin with a slash, as in OpenTofu
}
