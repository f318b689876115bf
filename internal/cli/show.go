package cli

import (
	"context"

	"github.com/terrace-iac/terrace/internal/cli/view"
)

func showCommand(ctx context.Context, s *session, args []string) int { return 1 }

func showUsage() string { return view.Program }
