package cli

import (
	"context"

	"github.com/terrace-iac/terrace/internal/cli/view"
)

// destroyCommand is apply -destroy with another name in its texts.
func destroyCommand(ctx context.Context, s *session, args []string) int {
	return applyOrDestroy(ctx, s, "destroy", args)
}

func destroyUsage() string {
	return "Usage: " + view.Program + " [global options] destroy [options]\n\n" +
		"  Destroy " + view.Product + "-managed infrastructure.\n\n" +
		"  This command is a convenience alias for:\n      " + view.Program + " apply -destroy\n\n" +
		"  This command also accepts many of the plan-customization options accepted by\n  the \"" + view.Program + " plan\" command. For more information on those options, run:\n      " + view.Program + " plan -help"
}
