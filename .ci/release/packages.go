package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk" // registers the format
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// packageFormats are the formats of the packages for Linux, which are also file name
// extensions. Each has its own directories for the license and for zsh.
var packageFormats = []struct{ name, license, zsh string }{
	{"deb", "/usr/share/doc/terrace/copyright", "/usr/share/zsh/vendor-completions/_terrace"},
	{"rpm", "/usr/share/licenses/terrace/LICENSE", "/usr/share/zsh/site-functions/_terrace"},
	{"apk", "/usr/share/licenses/terrace/LICENSE", "/usr/share/zsh/site-functions/_terrace"},
}

// packages writes the packages of a Linux target.
func (r *release) packages(t target, g guides) error {
	work, err := os.MkdirTemp("", "terrace-packages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	common := files.Contents{
		{Source: g.completions["bash"], Destination: "/usr/share/bash-completion/completions/terrace", FileInfo: &files.ContentFileInfo{Mode: 0o644}},
		{Source: g.completions["fish"], Destination: "/usr/share/fish/vendor_completions.d/terrace.fish", FileInfo: &files.ContentFileInfo{Mode: 0o644}},
	}
	for _, program := range programs {
		common = append(common, &files.Content{Source: filepath.Join(r.programs(t), program), Destination: "/usr/bin/" + program, FileInfo: &files.ContentFileInfo{Mode: 0o755}})
	}
	for _, page := range g.pages {
		small := filepath.Join(work, filepath.Base(page)+".gz")
		if err := compress(page, small); err != nil {
			return err
		}
		common = append(common, &files.Content{Source: small, Destination: "/usr/share/man/man1/" + filepath.Base(small), FileInfo: &files.ContentFileInfo{Mode: 0o644}})
	}
	for _, format := range packageFormats {
		packager, err := nfpm.Get(format.name)
		if err != nil {
			return err
		}
		contents := append(files.Contents{
			{Source: filepath.Join(r.root, "LICENSE"), Destination: format.license, FileInfo: &files.ContentFileInfo{Mode: 0o644}},
			{Source: g.completions["zsh"], Destination: format.zsh, FileInfo: &files.ContentFileInfo{Mode: 0o644}},
		}, common...)
		info := nfpm.WithDefaults(r.describe(t, format.name, contents))
		if err := createFile(filepath.Join(r.out, r.base(t)+"."+format.name), func(w io.Writer) error { return packager.Package(info, w) }); err != nil {
			return err
		}
	}
	return nil
}

// describe returns the metadata of a package. The packages of all formats recommend git,
// which module sources need, except for apk, which has no recommendations.
func (r *release) describe(t target, format string, contents files.Contents) *nfpm.Info {
	info := &nfpm.Info{
		Name: "terrace", Version: r.source.version, Release: "1", Arch: t.processor, Platform: "linux",
		Maintainer: "The Terrace authors", Vendor: "The Terrace authors",
		Homepage: r.source.repository, License: "Apache-2.0", Section: "admin", Priority: "optional",
		Description: summary + "\n" + description,
		MTime:       r.source.time,
	}
	info.Contents = contents
	info.Recommends = []string{"ca-certificates", "git"}
	info.RPM.BuildHost = "localhost" // not the name of this machine, so that builds are equal
	info.RPM.Summary = summary
	if t.processor == "arm" {
		info.Arch = "arm7"
	}
	if format == "apk" {
		info.Version = apkVersion(r.source.version)
		info.VersionSchema = "none" // it is in the form of apk already
		info.Release = "0"
	}
	return info
}

// apkSuffix is a pre-release version that apk can express.
var apkSuffix = regexp.MustCompile(`^(alpha|beta|rc)\.?([0-9]*)$`)

// apkVersion returns a version in the form of apk, which has "_rc1" for "-rc.1" and "_git"
// for a commit without a tag.
func apkVersion(version string) string {
	number, suffix, ok := strings.Cut(version, "-")
	if !ok {
		return number
	}
	if m := apkSuffix.FindStringSubmatch(suffix); m != nil {
		return number + "_" + m[1] + m[2]
	}
	return number + "_git"
}

// compress writes a gzip file without a name and a time, so that builds are equal.
func compress(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o666)
}
