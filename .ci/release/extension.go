package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

//go:embed vsix/extension.vsixmanifest vsix/content-types.xml
var extensionTemplates embed.FS

// A packageJSON is the part of an extension's package.json that its manifest repeats.
type packageJSON struct {
	Name        string   `json:"name"`
	DisplayName string   `json:"displayName"`
	Description string   `json:"description"`
	Publisher   string   `json:"publisher"`
	Version     string   `json:"version"`
	Keywords    []string `json:"keywords"`
	Categories  []string `json:"categories"`
	Repository  struct {
		URL string `json:"url"`
	} `json:"repository"`
	Engines struct {
		VSCode string `json:"vscode"`
	} `json:"engines"`
}

// extensionName returns the file name of the extension for VS Code.
func (r *release) extensionName() string { return "terrace-vscode_" + r.source.version + ".vsix" }

// extensionFiles are the files of the extension besides those that build writes, relative to
// editors/vscode.
var extensionFiles = []string{"README.md", "language-configuration.json", "syntaxes"}

// extension builds the extension for VS Code with npm and writes it as an archive. The version of an
// extension is three numbers, so that a suffix of the release's version is left out.
func (r *release) extension(work string) error {
	from, dir := filepath.Join(r.root, "editors", "vscode"), filepath.Join(work, "vscode")
	if err := copyTree(from, dir); err != nil {
		return err
	}
	for _, args := range [][]string{{"ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"}, {"run", "--silent", "build"}} {
		c := exec.Command("npm", args...)
		c.Dir = dir
		if b, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("npm %s in editors/vscode: %w\n%s", args[0], err, b)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return err
	}
	var p packageJSON
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf("package.json of the extension: %w", err)
	}
	written := []byte(`"version": "` + p.Version + `"`)
	p.Version, _, _ = strings.Cut(r.source.version, "-")
	if bytes.Count(raw, written) != 1 {
		return fmt.Errorf("package.json of the extension does not contain %s once", written)
	}
	raw = bytes.Replace(raw, written, []byte(`"version": "`+p.Version+`"`), 1)
	if err := os.WriteFile(filepath.Join(dir, "package.json"), raw, 0o666); err != nil {
		return err
	}
	notices, err := extensionNotices(dir)
	if err != nil {
		return err
	}
	var manifest bytes.Buffer
	t := template.New("extension.vsixmanifest").Funcs(template.FuncMap{"xml": escapeXML, "join": func(words []string) string { return strings.Join(words, ",") }})
	if t, err = t.ParseFS(extensionTemplates, "vsix/extension.vsixmanifest"); err != nil {
		return err
	}
	if err := t.Execute(&manifest, p); err != nil {
		return err
	}
	types, err := extensionTemplates.ReadFile("vsix/content-types.xml")
	if err != nil {
		return err
	}
	entries := []entry{{"extension/package.json", filepath.Join(dir, "package.json"), 0o644}, {"extension/LICENSE.txt", filepath.Join(r.root, "LICENSE"), 0o644}}
	for name, text := range map[string][]byte{"extension.vsixmanifest": manifest.Bytes(), "[Content_Types].xml": types, "extension/THIRD-PARTY-NOTICES.txt": notices} {
		path := filepath.Join(work, filepath.Base(name))
		if err := os.WriteFile(path, text, 0o666); err != nil {
			return err
		}
		entries = append(entries, entry{name, path, 0o644})
	}
	for _, name := range append([]string{"dist"}, extensionFiles...) {
		err := filepath.WalkDir(filepath.Join(dir, name), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				rel, _ := filepath.Rel(dir, path) // path is below dir
				entries = append(entries, entry{"extension/" + filepath.ToSlash(rel), path, 0o644})
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	fmt.Println(r.extensionName())
	return createFile(filepath.Join(r.out, r.extensionName()), func(w io.Writer) error { return writeZip(w, r.source.time, entries) })
}

// copyTree copies the files of a directory, without what npm writes there.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path) // path is below from
		switch {
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == "dist"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o777)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o666)
	})
}

// extensionNotices returns the licenses of the packages whose code is in the extension.
func extensionNotices(dir string) ([]byte, error) {
	c := exec.Command("npm", "ls", "--omit=dev", "--all", "--parseable")
	c.Dir = dir
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("npm ls in editors/vscode: %w", err)
	}
	paths := strings.Fields(string(out))
	slices.Sort(paths)
	text := []byte("The extension contains code of these packages.\n")
	for _, path := range slices.Compact(paths) {
		_, name, ok := strings.Cut(filepath.ToSlash(path), "/node_modules/")
		if !ok {
			continue // the extension itself
		}
		files, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(files, func(f fs.DirEntry) bool { return strings.HasPrefix(strings.ToLower(f.Name()), "license") })
		if i < 0 {
			return nil, fmt.Errorf("the package %s, whose code is in the extension, has no license file", name)
		}
		b, err := os.ReadFile(filepath.Join(path, files[i].Name()))
		if err != nil {
			return nil, err
		}
		text = append(append(text, "\n"+name+"\n\n"...), bytes.TrimSpace(b)...)
		text = append(text, '\n')
	}
	return text, nil
}

func escapeXML(s string) (string, error) {
	var b strings.Builder
	err := xml.EscapeText(&b, []byte(s))
	return b.String(), err
}
