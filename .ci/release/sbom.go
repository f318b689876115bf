package main

import (
	"debug/buildinfo"
	"io"
	"path/filepath"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// listModules writes, for each program of a target, the list of the modules that are linked
// into it, as the program itself states them (CycloneDX).
func (r *release) listModules(t target) error {
	for _, program := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(r.programs(t), t.file(program)))
		if err != nil {
			return err
		}
		bom := cdx.NewBOM()
		bom.Metadata = &cdx.Metadata{
			Timestamp: r.source.time.Format(time.RFC3339),
			Component: &cdx.Component{BOMRef: info.Path, Type: cdx.ComponentTypeApplication, Name: info.Path, Version: r.source.version},
		}
		components := []cdx.Component{{BOMRef: "go", Type: cdx.ComponentTypePlatform, Name: "go", Version: strings.TrimPrefix(info.GoVersion, "go")}}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			ref := "pkg:golang/" + m.Path + "@" + m.Version
			components = append(components, cdx.Component{BOMRef: ref, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: ref})
		}
		bom.Components = &components
		name := strings.Replace(r.base(t), "terrace", program, 1) + ".cdx.json"
		if err := createFile(filepath.Join(r.out, name), func(w io.Writer) error {
			return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
		}); err != nil {
			return err
		}
	}
	return nil
}
