// Command release builds all files of a release: archives and packages with the programs,
// files for package managers, an install script, checksums, provenance and signatures.
//
//	cd .ci/release && go run . -out DIR [-key cosign.key]
//
// It needs Go, npm and a git checkout without changes. The version of Go on the toolchain line of
// go.mod builds the programs; the installed one builds them if that version cannot be downloaded.
// Two builds of one commit with the same options and the same version of Go write the same files,
// except for the signatures.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

func main() {
	r := &release{compileFlags: []string{"-trimpath"}}
	flag.StringVar(&r.out, "out", "", "the directory for the files of the release; required")
	flag.StringVar(&r.address, "address", "", "the URL under which users download the files of the release; by default the GitHub release of the tag")
	flag.StringVar(&r.builder, "builder", localBuilder, "the URI of the system that runs the build, for the provenance")
	platforms := flag.String("targets", allTargets, "the platforms, as SYSTEM/PROCESSOR, separated by commas")
	version := flag.String("version", "", "the version, such as v0.2.0; by default the tag of the commit, or v0.0.0-gCOMMIT without a tag")
	keyFile := flag.String("key", "", "a private key as written by cosign generate-key-pair, whose password is in COSIGN_PASSWORD; without a key, nothing is signed")
	flag.BoolVar(&r.noExtension, "no-extension", false, "leave out the extension for VS Code, which is built with npm")
	flag.Parse()
	if err := r.run(*platforms, *version, *keyFile); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run completes r with the values of flags and builds the release of the checkout that this
// program is in.
func (r *release) run(platforms, version, keyFile string) error {
	if r.out == "" {
		return errors.New("-out is required")
	}
	var err error
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if r.root, err = filepath.Abs("../.."); err != nil {
		return err
	}
	if r.targets, err = parseTargets(platforms); err != nil {
		return err
	}
	if r.source, err = readSource(r.root, version); err != nil {
		return err
	}
	if keyFile != "" {
		if r.key, err = readKey(keyFile, os.Getenv("COSIGN_PASSWORD")); err != nil {
			return err
		}
	}
	return r.build()
}

// A release is one build of the files that are published for a version.
type release struct {
	root    string // the checkout
	out     string // the directory of the files to publish
	source  source
	targets []target
	address string // the URL of the directory of the published files; "" means the GitHub release of the tag
	builder string // the URI of the build system

	toolchain string      // the value of GOTOOLCHAIN of the builds; "" means that of the environment
	key       *signingKey // nil if nothing is signed

	noExtension  bool     // leaves out the extension for VS Code
	compileFlags []string // for go build, besides those of every build
}

// build writes all files to r.out. The programs themselves are in its subdirectory
// programs, one directory per target, from which the container image is built.
func (r *release) build() error {
	if r.address == "" {
		r.address = r.source.repository + "/releases/download/" + r.source.tag
	}
	if err := os.MkdirAll(r.out, 0o777); err != nil {
		return err
	}
	if old, err := os.ReadDir(r.out); err != nil {
		return err
	} else if len(old) > 0 {
		return fmt.Errorf("%s is not empty; files of another build would become part of the release", r.out)
	}
	work, err := os.MkdirTemp("", "terrace-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if r.toolchain, err = findToolchain(r.root); err != nil {
		return err
	}
	for _, t := range r.targets {
		if err := r.compile(t, r.programs(t)); err != nil {
			return err
		}
	}
	guides, err := r.guides(work)
	if err != nil {
		return err
	}
	var archives []archive
	for _, t := range r.targets {
		if err := r.listModules(t); err != nil {
			return err
		}
		a, err := r.pack(t, guides)
		if err != nil {
			return err
		}
		archives = append(archives, a)
		if t.system == "linux" {
			if err := r.packages(t, guides); err != nil {
				return err
			}
		}
		fmt.Println(a.Name)
	}
	if !r.noExtension {
		if err := r.extension(work); err != nil {
			return err
		}
	}
	if err := r.installers(archives); err != nil {
		return err
	}
	if err := r.provenance(); err != nil {
		return err
	}
	if err := r.checksums(); err != nil {
		return err
	}
	if r.key == nil {
		fmt.Println("Without -key, the release is not signed.")
		return nil
	}
	return r.sign()
}

// programs returns the directory of the programs of a target.
func (r *release) programs(t target) string {
	return filepath.Join(r.out, "programs", t.system+"_"+t.processor)
}

// host returns the target of this machine.
func host() target { return target{system: runtime.GOOS, processor: runtime.GOARCH} }
