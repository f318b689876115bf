// Command terrace-worker executes tasks of a Temporal server and connects terrace to it. It
// is a separate program, because the Temporal client would slow down every start of
// terrace.
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
