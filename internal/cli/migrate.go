package cli

import (
	"context"
	"path/filepath"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/local"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// A copying is one state on its way to another place.
type copying struct {
	workspace string
	from, to  *local.Store
	state     *state.State
	there     *state.State // what the new place holds already
}

// migrateState copies the states of one backend to another, if there are any
// and the user agrees.
func (i *initializer) migrateState(ctx context.Context, from, to backend) diag.List {
	list, ds := i.copyings(ctx, from, to)
	if ds.HasErrors() || len(list) == 0 {
		return ds
	}
	yes := i.o.forceCopy
	if !yes {
		if !i.mayAsk(i.o.input) {
			return append(ds, diag.Errorf(nil, "Can't ask approval for state migration when interactive input is disabled.", "If non-interactive operation is desired, consider adding the \"-force-copy\" option. Otherwise, please remove the \"-input=false\" option and try again.")...)
		}
		answer, err := i.ask(ctx, migrationQuestion(list))
		if err != nil {
			return append(ds, diag.Errorf(nil, "State migration was not approved", "There was no answer to the question whether to copy the state: %s.", err)...)
		}
		yes = answer == "yes"
	}
	if !yes {
		if len(list) > 1 || list[0].workspace != store.Default {
			return append(ds, diag.Errorf(nil, "Migration aborted", "Migration aborted by user.")...)
		}
		return ds
	}
	for _, c := range list {
		more := i.copyState(ctx, c)
		if ds = append(ds, more...); more.HasErrors() {
			return ds
		}
	}
	return ds
}

// copyings lists the states that are somewhere else in the new backend.
func (i *initializer) copyings(ctx context.Context, from, to backend) ([]copying, diag.List) {
	names, ds := local.OpenWorkspaces(i.storeOptions(from, "", stateFlags{})).List(ctx)
	if ds.HasErrors() {
		return nil, ds
	}
	var out []copying
	for _, name := range names {
		c := copying{workspace: name, from: local.Open(i.storeOptions(from, name, stateFlags{})), to: local.Open(i.storeOptions(to, name, stateFlags{}))}
		if filepath.Clean(c.from.Path()) == filepath.Clean(c.to.Path()) {
			continue
		}
		var more diag.List
		if c.state, more = i.shown(ctx, c.from); more.HasErrors() {
			return nil, append(ds, more...)
		}
		if c.there, more = i.shown(ctx, c.to); more.HasErrors() {
			return nil, append(ds, more...)
		}
		if c.state.Empty() || c.there != nil && c.there.Lineage == c.state.Lineage && c.there.Equal(c.state) {
			continue
		}
		out = append(out, c)
	}
	return out, ds
}

func migrationQuestion(list []copying) question {
	if len(list) > 1 || list[0].workspace != store.Default {
		return question{
			title: "Do you want to migrate all workspaces to \"local\"?",
			text:  "Both the existing \"local\" backend and the newly configured \"local\" backend\nsupport workspaces. When migrating between backends, all workspaces are\ncopied (with the same names). THIS WILL OVERWRITE any conflicting\nstates in the destination.\n\nIf you answer \"yes\", all states are migrated. If you answer\n\"no\", nothing is changed.",
		}
	}
	if !list[0].there.Empty() {
		return question{
			title: "Do you want to copy existing state to the new backend?",
			text:  "Pre-existing state was found while migrating the previous \"local\" backend to the\nnewly configured \"local\" backend, which holds another state already.\nEnter \"yes\" to overwrite that state, and \"no\" to keep it.",
		}
	}
	return question{
		title: "Do you want to copy existing state to the new backend?",
		text:  "Pre-existing state was found while migrating the previous \"local\" backend to the\nnewly configured \"local\" backend. No existing state was found in the newly\nconfigured \"local\" backend. Do you want to copy this state to the new \"local\"\nbackend? Enter \"yes\" to copy and \"no\" to start with an empty state.",
	}
}

// copyState copies one state under both locks. The old place keeps a backup
// and is left empty, so that nobody works on a state that was left behind.
func (i *initializer) copyState(ctx context.Context, c copying) diag.List {
	var ds diag.List
	if i.o.lock.on {
		for _, st := range []*local.Store{c.from, c.to} {
			unlock, more := st.Lock(ctx, store.LockInfo{Operation: "migration", Who: i.User() + "@" + i.Host(), Version: statefile.Version, Created: i.Now()}, i.o.lock.timeout)
			if ds = append(ds, more...); more.HasErrors() {
				return ds
			}
			defer func() { i.tell(unlock()) }()
		}
	}
	next := c.state
	if c.there != nil && c.there.Serial >= next.Serial {
		next = next.WithMeta(next.Lineage, c.there.Serial+1, next.TerraformVersion)
	}
	if more := c.to.Write(ctx, next); more.HasErrors() {
		return append(ds, more...)
	}
	empty := state.New().WithMeta(c.state.Lineage, c.state.Serial+1, c.state.TerraformVersion)
	return append(ds, c.from.Write(ctx, empty)...)
}
