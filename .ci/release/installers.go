package main

import (
	"embed"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

const (
	summary     = "Plans and applies Terraform and OpenTofu configuration"
	description = "Terrace plans and applies Terraform and OpenTofu configuration: one directory, or a whole estate of Terragrunt units in one process."
)

//go:embed templates
var templates embed.FS

// An installer is a file with which a package manager or a shell installs a release.
type installer struct {
	name    string   // of the file and of its template
	systems []string // the systems that the installer supports; without an archive for one of them, the file is not written
}

var installers = []installer{
	{"install.sh", []string{"linux", "darwin"}},
	{"terrace.rb", []string{"linux", "darwin"}},
	{"terrace.nix", []string{"linux", "darwin"}},
	{"TerraceIaC.Terrace.yaml", []string{"windows"}},
	{"TerraceIaC.Terrace.installer.yaml", []string{"windows"}},
	{"TerraceIaC.Terrace.locale.en-US.yaml", []string{"windows"}},
}

// An installerView is the data of the templates.
type installerView struct {
	Version, Tag, Date, Address, Repository, Summary, Description string

	archives []archive
}

// Archives returns the archives for a system.
func (v installerView) Archives(system string) []archive {
	var out []archive
	for _, a := range v.archives {
		if a.System == system {
			out = append(out, a)
		}
	}
	return out
}

// Systems returns those of the given systems that have an archive.
func (v installerView) Systems(systems ...string) []string {
	return slices.DeleteFunc(systems, func(s string) bool { return len(v.Archives(s)) == 0 })
}

// Unix returns the archives for Linux and macOS.
func (v installerView) Unix() []archive { return append(v.Archives("linux"), v.Archives("darwin")...) }

// installers writes the files of all installers that have an archive to install.
func (r *release) installers(archives []archive) error {
	t, err := template.New("").Funcs(template.FuncMap{"name": platformName, "sh": shellQuote}).ParseFS(templates, "templates/*")
	if err != nil {
		return err
	}
	view := installerView{
		Version: r.source.version, Tag: r.source.tag, Date: r.source.time.Format("2006-01-02"),
		Address: r.address, Repository: r.source.repository,
		Summary: summary, Description: description, archives: archives,
	}
	for _, i := range installers {
		if len(view.Systems(slices.Clone(i.systems)...)) == 0 {
			continue
		}
		if err := createFile(filepath.Join(r.out, i.name), func(w io.Writer) error { return t.ExecuteTemplate(w, i.name, view) }); err != nil {
			return err
		}
	}
	return nil
}

// platformNames are the names of systems and processors that package managers use.
var platformNames = map[string]map[string]string{
	"homebrew": {"linux": "on_linux", "darwin": "on_macos", "amd64": "on_intel", "arm64": "on_arm"},
	"nix":      {"linux": "linux", "darwin": "darwin", "amd64": "x86_64", "arm64": "aarch64", "arm": "armv7l"},
	"winget":   {"amd64": "x64", "arm64": "arm64"},
}

// platformName returns the name that a package manager uses for a system or a processor, or ""
// if the package manager does not support it.
func platformName(manager, name string) (string, error) {
	names, ok := platformNames[manager]
	if !ok {
		return "", fmt.Errorf("no names of %s", manager)
	}
	return names[name], nil
}

// shellQuote returns a word of a shell script whose value is text.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
