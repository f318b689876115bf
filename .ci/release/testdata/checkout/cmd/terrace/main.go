// Command terrace is a small program with the commands that a release build runs. Tests build
// it for all platforms, which takes minutes with the real program.
package main

import (
	"os"
	"path/filepath"

	"github.com/terrace-iac/terrace/internal/base/release"
)

func main() {
	switch os.Args[1] {
	case "version":
		os.Stdout.WriteString("Terrace v" + release.Version + " (test)\n")
	case "completion":
		os.Stdout.WriteString("completion for " + os.Args[2] + "\n")
	case "man":
		if err := os.MkdirAll(os.Args[2], 0o777); err != nil {
			os.Exit(1)
		}
		for _, name := range []string{"terrace", "terrace-plan"} {
			if err := os.WriteFile(filepath.Join(os.Args[2], name+".1"), []byte(".TH "+name+"\n"), 0o666); err != nil {
				os.Exit(1)
			}
		}
	default:
		os.Exit(2)
	}
}
