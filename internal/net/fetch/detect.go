package fetch

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/diag"
)

// AddressError is the reason why a source address is invalid.
type AddressError struct {
	Code    string // of diag's table of codes
	Summary string
	Detail  string
}

func (e *AddressError) Error() string { return e.Detail }

// Detect parses a module's source address. With hasVersion, only a registry address
// is valid. The error is always an *AddressError.
func Detect(src string, hasVersion bool) (Address, error) {
	if hasVersion {
		a, err := Address{}, error(nil)
		if _, ok := parseLocal(src); ok {
			err = fmt.Errorf("can't use local directory %q as a module registry address", src)
		} else {
			a, err = parseRegistry(src)
		}
		if err != nil {
			return Address{}, &AddressError{diag.CodeModuleRegistrySource, "Invalid registry module source address", fmt.Sprintf("Failed to parse module registry address: %s. A module registry source address is assumed because the argument \"version\" is set, which applies only to registry modules.", err)}
		}
		return a, nil
	}
	if a, ok := parseLocal(src); ok {
		return a, nil
	}
	if a, err := parseRegistry(src); err == nil {
		return a, nil
	}
	a, err := detectRemote(src)
	if errors.Is(err, errUndetected) {
		return Address{}, &AddressError{diag.CodeModuleSource, "Invalid module source address", fmt.Sprintf("The intended installation method for remote module package %q could not be determined.\n\nIf you intended this as a path relative to the current module, use %q instead. The \"./\" prefix indicates that the address is a relative filesystem path.", src, "./"+src)}
	}
	if err != nil {
		return Address{}, &AddressError{diag.CodeModuleSource, "Invalid module source address", fmt.Sprintf("Failed to parse module source address: %s.", err)}
	}
	return a, nil
}

// Canonical returns a source address in the form of modules.json, for
// module.Options.Canonical. It returns an invalid address unchanged.
func Canonical(src string, versioned bool) string {
	a, err := Detect(src, versioned)
	if err != nil {
		return src
	}
	return a.String()
}

var errUndetected = errors.New("the kind of the address is not known")

// detectRemote parses the addresses that go-getter's detectors accept, in the same
// order. Unlike go-getter, it never uses the network.
func detectRemote(src string) (Address, error) {
	forced, rest := cutForced(src)
	written := forced != ""
	main, sub, err := splitSubdir(rest)
	if err != nil {
		return Address{}, err
	}
	full, err := expand(main)
	if err != nil {
		return Address{}, err
	}
	force2, full := cutForced(full)
	if forced == "" {
		forced = force2
	}
	full, inner, err := splitSubdir(full)
	if err != nil {
		return Address{}, err
	}
	switch {
	case sub == "":
		sub = inner
	case inner != "":
		sub = path.Join(inner, sub)
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme == "" || strings.HasPrefix(u.Opaque, "//") {
		return Address{}, fmt.Errorf("invalid source string: %s", src)
	}
	if forced == "" {
		forced = u.Scheme
	}
	a := Address{Kind: Remote, Getter: forced, Forced: written && strings.HasPrefix(full, forced+"://"), URL: full, Subdir: sub}
	switch forced {
	case "file", "git", "hg", "http", "https", "s3", "gcs":
	case "oci":
		if u.Scheme != "oci" {
			return Address{}, fmt.Errorf("an OCI module address must have the form oci://HOST/REPOSITORY")
		}
	default:
		return Address{}, fmt.Errorf("there is no way to fetch modules with scheme %q; use one of file, git, hg, http, https, s3, gcs and oci", forced)
	}
	return a, nil
}

// cutForced removes a leading getter name and :: from an address.
func cutForced(src string) (forced, rest string) {
	name, rest, ok := strings.Cut(src, "::")
	if !ok || name == "" || rest == "" {
		return "", src
	}
	for _, c := range name {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z') {
			return "", src
		}
	}
	return name, rest
}

// expand converts a short form to an address with a scheme.
func expand(src string) (string, error) {
	if hasScheme(src) {
		return src, nil
	}
	switch {
	case strings.HasPrefix(src, "github.com/"):
		return expandHosted(src, "GitHub URLs should be github.com/username/repo")
	case strings.HasPrefix(src, "bitbucket.org/"):
		return expandHosted(src, "Bitbucket URLs should be bitbucket.org/username/repo")
	}
	if out, ok := expandSCP(src); ok {
		return out, nil
	}
	main, _, _ := strings.Cut(src, "?")
	switch {
	case strings.Contains(main, ".googleapis.com/"):
		return expandGCS(src)
	case strings.Contains(main, ".amazonaws.com/"):
		return expandS3(src)
	case filepath.IsAbs(src):
		p := filepath.ToSlash(src)
		if !strings.HasPrefix(p, "/") {
			p = "/" + p
		}
		return "file://" + p, nil
	}
	return "", errUndetected
}

func hasScheme(src string) bool {
	scheme, _, ok := strings.Cut(src, ":")
	if !ok || len(scheme) < 2 { // a single letter is a Windows drive
		return false
	}
	for i, c := range scheme {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || !('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.')) {
			return false
		}
	}
	// With a dot, the address has the form host:path, unless // follows the colon.
	return strings.HasPrefix(src[len(scheme):], "://") || !strings.Contains(scheme, ".")
}

func expandHosted(src, help string) (string, error) {
	main, query, hasQuery := strings.Cut(src, "?")
	parts := strings.Split(strings.TrimSuffix(main, "/"), "/")
	if len(parts) < 3 || parts[1] == "" || parts[2] == "" {
		return "", errors.New(help)
	}
	out := "git::https://" + strings.Join(parts[:3], "/")
	if !strings.HasSuffix(out, ".git") {
		out += ".git"
	}
	if len(parts) > 3 {
		out += "//" + strings.Join(parts[3:], "/")
	}
	if hasQuery {
		out += "?" + query
	}
	return out, nil
}

// expandSCP converts git@host:path to an address with the scheme ssh.
func expandSCP(src string) (string, bool) {
	rest, ok := strings.CutPrefix(src, "git@")
	if !ok {
		return "", false
	}
	host, p, ok := strings.Cut(rest, ":")
	if !ok || host == "" || strings.ContainsAny(host, "/?") || p == "" {
		return "", false
	}
	return "git::ssh://git@" + host + "/" + strings.TrimPrefix(p, "/"), true
}

func expandGCS(src string) (string, error) {
	main, _, _ := strings.Cut(src, "?")
	if parts := strings.Split(main, "/"); len(parts) < 5 || parts[0] != "www.googleapis.com" {
		return "", errors.New("GCS URLs should be www.googleapis.com/storage/v1/BUCKET/PATH")
	}
	return "gcs::https://" + src, nil
}

func expandS3(src string) (string, error) {
	main, query, hasQuery := strings.Cut(src, "?")
	parts := strings.Split(main, "/")
	host := strings.Split(strings.TrimSuffix(parts[0], ".amazonaws.com"), ".")
	var out string
	s3 := -1 // index of the label that names the service
	for i, h := range host {
		if h == "s3" || strings.HasPrefix(h, "s3-") {
			s3 = i
			break
		}
	}
	if s3 < 0 || len(parts) < 2 {
		return "", errors.New("S3 URLs should be s3.REGION.amazonaws.com/BUCKET/KEY or BUCKET.s3.REGION.amazonaws.com/KEY")
	}
	service := strings.Join(host[s3:], ".") + ".amazonaws.com"
	if s3 == 0 {
		if len(parts) < 3 {
			return "", errors.New("S3 URLs should be s3.REGION.amazonaws.com/BUCKET/KEY or BUCKET.s3.REGION.amazonaws.com/KEY")
		}
		out = service + "/" + strings.Join(parts[1:], "/")
	} else {
		out = service + "/" + strings.Join(host[:s3], ".") + "/" + strings.Join(parts[1:], "/")
	}
	if hasQuery {
		out += "?" + query
	}
	return "s3::https://" + out, nil
}
