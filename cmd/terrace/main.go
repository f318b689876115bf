// Command terrace plans and applies infrastructure configuration.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
)

func main() {
	system, err := sys.Real()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	os.Exit(cli.Main(context.Background(), system))
}
