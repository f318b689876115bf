package estate

import (
	"context"

	"github.com/terrace-iac/terrace/diag"
)

// filter leaves out the units that the command is not about.
func (e *Estate) filter(ctx context.Context) diag.List { return nil }
