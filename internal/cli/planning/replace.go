package planning

import (
	"context"
	"fmt"
	"strings"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/cli/command"
)

// mostListed is the largest number of instances that a message lists.
const mostListed = 50

// wholeModule returns the explanation why -replace does not accept a module. It lists the
// module's instances in the state as options to use instead.
func (o *Flags) wholeModule(ctx context.Context, c *command.Call, t addr.Target) string {
	const why = "A resource instance address is required here. The module path must be followed by a resource instance specification."
	st, ds := c.CurrentState(ctx, o.Vars, o.State.Path)
	if ds.HasErrors() || st == nil {
		return why
	}
	var list []string
	for a := range st.Instances() {
		if a.Resource.Mode == addr.Managed && t.Contains(a) {
			list = append(list, fmt.Sprintf("  -replace=%q", a.String()))
		}
	}
	switch n := len(list) - mostListed; {
	case len(list) == 0:
		return why + "\n\nThe state has no resource instances in " + t.String() + "."
	case n > 0:
		list = append(list[:mostListed], fmt.Sprintf("  and %d more", n))
	}
	return why + "\n\nReplacing is disruptive, so instances are selected one by one. " + t.String() + " holds these:\n" + strings.Join(list, "\n")
}
