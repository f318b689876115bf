package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// programs are the names of the programs, which are packages below cmd. terrace-worker runs
// units on other machines.
var programs = []string{"terrace", "terrace-worker"}

// allTargets are the platforms that a release supports.
const allTargets = "linux/amd64,linux/arm64,linux/arm,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// buildTags leave out gRPC's debug pages. The README names the same tags.
const buildTags = "grpcnotrace"

// A target is a platform by Go's names.
type target struct{ system, processor string }

func parseTargets(list string) ([]target, error) {
	var out []target
	for _, name := range strings.Split(list, ",") {
		system, processor, ok := strings.Cut(name, "/")
		if !ok {
			return nil, fmt.Errorf("%q is not of the form SYSTEM/PROCESSOR", name)
		}
		out = append(out, target{system, processor})
	}
	return out, nil
}

// file returns the file name of a program.
func (t target) file(program string) string {
	if t.system == "windows" {
		return program + ".exe"
	}
	return program
}

// compile builds the programs for a target in dir. For linux/arm, it requires the
// instructions of ARMv7, as the ports of Debian, Fedora and Alpine do.
func (r *release) compile(t target, dir string) error {
	flags := "-s -w -X " + r.source.module + "/internal/base/release.Version=" + r.source.version
	for _, program := range programs {
		args := append([]string{"build", "-buildvcs=true", "-tags=" + buildTags, "-ldflags=" + flags}, r.compileFlags...)
		c := exec.Command("go", append(args, "-o", filepath.Join(dir, t.file(program)), "./cmd/"+program)...)
		c.Dir, c.Stdout, c.Stderr = r.root, os.Stdout, os.Stderr
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.system, "GOARCH="+t.processor, "GOARM=7")
		if r.toolchain != "" {
			c.Env = append(c.Env, "GOTOOLCHAIN="+r.toolchain)
		}
		if err := c.Run(); err != nil {
			return fmt.Errorf("go build of %s for %s/%s: %w", program, t.system, t.processor, err)
		}
	}
	return nil
}

// findToolchain returns the version of Go on the toolchain line of go.mod in root, such as
// "go1.27.4". The go command downloads this version if another one is installed, whatever
// GOTOOLCHAIN of the user allows: what base64gzip returns depends on the version of Go. "" means
// the installed version, if go.mod has no such line or the version cannot be downloaded.
func findToolchain(root string) (string, error) {
	path := filepath.Join(root, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	mod, err := modfile.ParseLax(path, text, nil)
	if err != nil {
		return "", err
	}
	if mod.Toolchain == nil {
		return "", nil
	}
	c := exec.Command("go", "version")
	c.Env = append(os.Environ(), "GOTOOLCHAIN="+mod.Toolchain.Name)
	if b, err := c.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "release: warning: %s is not available, so the installed version of Go builds the programs:\n%s", mod.Toolchain.Name, b)
		return "", nil
	}
	return mod.Toolchain.Name, nil
}
