// Command terrace-worker takes turns of units from a Temporal server, and speaks with it for
// terrace, whose start is not slowed down by its client.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/temporal/program"
)

func main() {
	system, err := sys.Real()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	os.Exit(program.Main(context.Background(), system))
}
