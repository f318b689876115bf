package main

import (
	"encoding/json"
	"encoding/xml"
	"slices"
	"strings"
	"testing"
)

func TestExtension(t *testing.T) {
	if built.noExtension {
		t.Skip("npm is not installed")
	}
	files := readZip(t, read(t, built.out, "terrace-vscode_1.2.3.vsix"))
	want := []string{
		"[Content_Types].xml", "extension.vsixmanifest", "extension/LICENSE.txt", "extension/README.md", "extension/THIRD-PARTY-NOTICES.txt",
		"extension/dist/extension.js", "extension/language-configuration.json", "extension/package.json", "extension/syntaxes/hcl.tmLanguage.json",
	}
	var got []string
	for name := range files {
		got = append(got, name)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("files: %q, want %q", got, want)
	}
	if text := string(files["extension/dist/extension.js"].text); text != "exports.activate = () => 42;\n" {
		t.Errorf("the program is %q", text)
	}
	if text := string(files["extension/THIRD-PARTY-NOTICES.txt"].text); !strings.Contains(text, "dependency\n\nA license of a dependency.\n") {
		t.Errorf("the notices are %q", text)
	}
	var p packageJSON
	if err := json.Unmarshal(files["extension/package.json"].text, &p); err != nil || p.Version != "1.2.3" {
		t.Errorf("package.json has the version %q: %v", p.Version, err)
	}
	var m struct {
		Metadata struct {
			Identity struct {
				ID        string `xml:"Id,attr"`
				Version   string `xml:",attr"`
				Publisher string `xml:",attr"`
			}
			DisplayName, Tags, Categories, License string
		}
		Assets struct {
			Asset []struct {
				Path string `xml:",attr"`
			}
		}
	}
	if err := xml.Unmarshal(files["extension.vsixmanifest"].text, &m); err != nil {
		t.Fatal(err)
	}
	if d := m.Metadata; d.Identity.ID != "terrace" || d.Identity.Version != "1.2.3" || d.Identity.Publisher != "terrace-iac" || d.DisplayName != "Terrace & more" || d.Tags != "a,b" || d.Categories != "Linters" {
		t.Errorf("the manifest is %+v", d)
	}
	for _, a := range m.Assets.Asset {
		if _, ok := files[a.Path]; !ok {
			t.Errorf("the manifest names %s, which is not in the archive", a.Path)
		}
	}
	if _, ok := files[m.Metadata.License]; !ok || len(m.Assets.Asset) != 3 {
		t.Errorf("license %q, %d assets", m.Metadata.License, len(m.Assets.Asset))
	}
	for name := range files { // each type of file has a content type
		if ext := name[strings.LastIndexByte(name, '.'):]; !strings.Contains(string(files["[Content_Types].xml"].text), `"`+ext+`"`) && ext != ".xml" {
			t.Errorf("%s has no content type", name)
		}
	}
}
