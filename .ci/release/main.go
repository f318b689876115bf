// Command release builds what a release has: the programs for the common systems as
// archives, their checksums, and lists of what is linked into them (CycloneDX).
//
//	cd .ci/release && go run . -out DIR [-targets linux/amd64,...]
//
// It needs Go and a git checkout without changes: version and commit come from there.
package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const root = "../.."

// programs are what an archive has; the second one is for runs on other machines.
var programs = []string{"terrace", "terrace-worker"}

func main() {
	out := flag.String("out", "", "the folder for what is made")
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64", "systems and processors")
	version := flag.String("version", "", "the version, e.g. v0.2.0; the tag of the commit by default")
	flag.Parse()
	if *out == "" {
		fmt.Fprintln(os.Stderr, "-out is required")
		os.Exit(2)
	}
	if err := release(*out, *version, strings.Split(*targets, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func release(out, version string, targets []string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	if version == "" {
		b, err := command("git", "describe", "--tags", "--always")
		if err != nil {
			return err
		}
		version = strings.TrimSpace(b)
	}
	when, err := command("git", "log", "-1", "--format=%cI")
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(when))
	if err != nil {
		return err
	}
	flags := "-s -w"
	if number, ok := strings.CutPrefix(version, "v"); ok { // else there is no tag: the name of a commit
		flags += " -X github.com/terrace-iac/terrace/internal/workdir.Version=" + number
	}
	var sums strings.Builder
	add := func(path string) error {
		b, err := os.ReadFile(path)
		if err == nil {
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(b), filepath.Base(path))
		}
		return err
	}
	for _, target := range targets {
		system, processor, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("%q is not SYSTEM/PROCESSOR", target)
		}
		base := filepath.Join(out, fmt.Sprintf("terrace_%s_%s_%s", version, system, processor))
		var files, made []string
		for _, program := range programs {
			binary := filepath.Join(out, system+"_"+processor, program)
			list := base + strings.TrimPrefix(program, "terrace") + ".cdx.json"
			if system == "windows" {
				binary += ".exe"
			}
			c := exec.Command("go", "build", "-trimpath", "-buildvcs=true", "-ldflags="+flags, "-o", binary, "./cmd/"+program)
			c.Dir, c.Stdout, c.Stderr = root, os.Stdout, os.Stderr
			c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
			if err := c.Run(); err != nil {
				return fmt.Errorf("%s: %s: %w", target, program, err)
			}
			if err := sbom(binary, list, version, at); err != nil {
				return err
			}
			files, made = append(files, binary), append(made, list)
		}
		archive := base + ".tar.gz"
		pack := packTar
		if system == "windows" {
			archive, pack = base+".zip", packZip
		}
		if err := pack(archive, at, append(files, filepath.Join(root, "LICENSE"), filepath.Join(root, "README.md"))...); err != nil {
			return err
		}
		for _, path := range append(made, archive) {
			if err := add(path); err != nil {
				return err
			}
		}
		fmt.Println(archive)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o666)
}

func command(name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Stderr = root, os.Stderr
	b, err := c.Output()
	return string(b), err
}

// sbom lists the modules that are linked into a binary, as the binary itself has them.
func sbom(binary, path, version string, at time.Time) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: at.UTC().Format(time.RFC3339),
		Component: &cdx.Component{BOMRef: info.Main.Path, Type: cdx.ComponentTypeApplication, Name: info.Main.Path, Version: version},
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
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

func packTar(path string, at time.Time, files ...string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if slices.Contains(programs, filepath.Base(name)) {
			mode = 0o755
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.Base(name), Mode: mode, Size: int64(len(b)), ModTime: at}); err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return closeAll(w, z, f)
}

func packZip(path string, at time.Time, files ...string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := zip.NewWriter(f)
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		part, err := w.CreateHeader(&zip.FileHeader{Name: filepath.Base(name), Method: zip.Deflate, Modified: at})
		if err != nil {
			return err
		}
		if _, err := part.Write(b); err != nil {
			return err
		}
	}
	return closeAll(w, f)
}

func closeAll(cs ...io.Closer) error {
	for _, c := range cs {
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}
