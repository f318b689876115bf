package unit

import (
	"crypto/sha1"
	"encoding/base64"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/terrace-iac/terrace/internal/unit/functions"
)

// WorkingDir returns the directory in which the module of a unit runs: below the download
// directory, named by hashes of the unit's directory and of the module's source (section
// 4.9 of the unit language's reference). It is the directory of Terragrunt 1.1.3, so that
// Terrace finds existing state and caches. download may be "" for the default.
func WorkingDir(dir, src, download string) string {
	if download == "" {
		download = ".terragrunt-cache"
	}
	hash := func(s string) string {
		sum := sha1.Sum([]byte(s))
		return base64.RawURLEncoding.EncodeToString(sum[:])
	}
	root, sub := "file://"+dir, ""
	if src != "" {
		root, sub = SplitSource(Getter(src))
		root, _, _ = strings.Cut(root, "?")
		if LocalSource(root) {
			root = "file://" + functions.AbsPath(dir, root)
		}
	}
	return filepath.Join(functions.AbsPath(dir, download), hash(dir), hash(asURL(root)), filepath.FromSlash(sub))
}

// asURL returns an address as Terragrunt hashes it: with blanks and non-ASCII characters
// escaped as in a URL. An address that is not a URL, or would change its meaning (a local
// directory with # or ? in its name), is returned unchanged.
func asURL(address string) string {
	way, rest := "", address
	if i := strings.Index(address, "::"); i >= 0 && !strings.Contains(address[:i], "/") {
		way, rest = address[:i+2], address[i+2:]
	}
	u, err := url.Parse(rest)
	if err != nil || u.Scheme == "" || u.Fragment != "" || u.RawQuery != "" || u.ForceQuery {
		return address
	}
	return way + u.String()
}

// RunsIn returns the directory in which the unit's module runs: WorkingDir for an ordinary
// unit, and a directory below .terrace for a module of an environment file.
func (u *Unit) RunsIn(src, download string) string { return u.e.runsIn(src, download) }

func (e *evaluation) runsIn(src, download string) string {
	if e.of.mod == nil {
		return WorkingDir(e.dir, src, download)
	}
	_, sub := SplitSource(Getter(src))
	return filepath.Join(e.dir, ".terrace", "work", url.PathEscape(e.below()), filepath.FromSlash(sub))
}

// below returns the suffix that the ID of a module's unit adds to the directory of its
// file.
func (e *evaluation) below() string {
	rel, err := filepath.Rel(e.dir, e.id)
	if err != nil {
		return e.id
	}
	return filepath.ToSlash(rel)
}

// SplitSource splits the source of a module at its //: into the package to fetch, and the
// subdirectory in it. A query stays with the first part.
func SplitSource(src string) (root, sub string) {
	from := 0
	if i := strings.Index(src, "://"); i >= 0 {
		from = i + 3
		if strings.HasPrefix(src[from:], "/") { // tfr:///… has no host
			from++
		}
	}
	i := strings.Index(src[from:], "//")
	if i < 0 {
		return src, ""
	}
	root, sub = src[:from+i], src[from+i+2:]
	if q := strings.IndexByte(sub, '?'); q >= 0 {
		root, sub = root+sub[q:], sub[:q]
	}
	return root, sub
}

// Getter expands the short forms of module sources (github.com/…, git@host:…) and adds the
// prefix of the getter. Other sources are returned unchanged.
func Getter(src string) string {
	rest := strings.TrimPrefix(src, "git::")
	for _, host := range [...]string{"github.com/", "gitlab.com/", "bitbucket.org/"} {
		if path, ok := strings.CutPrefix(rest, host); ok {
			return hosted(host, path)
		}
	}
	if strings.Contains(rest, "://") || strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, "/") {
		return src
	}
	user, path, ok := strings.Cut(rest, "@")
	if !ok || strings.Contains(user, "/") {
		return src
	}
	host, path, ok := strings.Cut(path, ":")
	if !ok || strings.Contains(host, "/") {
		return src
	}
	return "git::ssh://" + user + "@" + host + "/" + path
}

// hosted expands a repository on a known host. The first two parts of the path are the
// repository, and the rest is a subdirectory.
func hosted(host, path string) string {
	path, query, asked := strings.Cut(path, "?")
	parts := strings.SplitN(path, "/", 3)
	if len(parts) < 2 {
		return host + path
	}
	name := strings.TrimSuffix(parts[1], ".git")
	out := "git::https://" + host + parts[0] + "/" + name + ".git"
	if len(parts) == 3 && strings.Trim(parts[2], "/") != "" {
		out += "//" + strings.TrimPrefix(parts[2], "/")
	}
	if asked {
		out += "?" + query
	}
	return out
}
