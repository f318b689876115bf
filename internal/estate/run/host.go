package run

import (
	"context"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/engine"
	"github.com/terrace-iac/terrace/internal/backend"
	"github.com/terrace-iac/terrace/internal/encryption"
	"github.com/terrace-iac/terrace/internal/estate/arguments"
	"github.com/terrace-iac/terrace/internal/estate/states"
	"github.com/terrace-iac/terrace/internal/operation"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/sys"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/source"
)

// A Host is what the program around an estate does for its units. Every field may be nil.
type Host struct {
	// Values are the values that users give to the variables of a module besides
	// inputs: from the environment, flags, and variable files in the folder, whose
	// path is "" where there are none. more are flags that count before the user's.
	Values func(f Folder, more []arguments.VarFlag, declared map[string]*config.Variable) (map[string]engine.InputValue, diag.List)
	// Init installs modules and providers into the working folder of a unit, and the
	// hooks of init run around it. nil: neither is done, unless it is the command.
	Init func(ctx context.Context, in Installing) diag.List
	// Services are those of engines in a folder, whose configuration says how states are
	// encrypted; without encrypted there is no terraform_remote_state.
	Services func(f Folder, encrypted func(context.Context) (*encryption.Config, diag.List)) engine.Services
	// Providers are those of the unit in a folder; nil: the built-in provider alone.
	Providers func(Folder) Providers
	// Backends are the kinds of backends, opened once each for all units.
	Backends *backend.Set
	// Waiting is told that the lock of a unit's state is waited for; nil: nobody is.
	Waiting func(unit string, holder *store.LockInfo)
	// Tenure is how long the turn of a unit may work on its state; nil: to its end.
	Tenure func(unit string) *statemgr.Tenure
	// CopiedTo is the folder with the files of the estate where they are copies of those of
	// another machine; "" for the files themselves.
	CopiedTo string
	// KeepSegments says whether journals of applies are kept in the stores of the states, too.
	KeepSegments operation.KeepSegments
	// Journals is where the journal of a state is kept whose store has no room; nil: nowhere.
	Journals func(state string) statemgr.Segments
	// Bootstrap says whether the stores of states are made before they are used.
	Bootstrap states.Bootstrapping
	// Decorate is the Decorate of the units' engines.
	Decorate func(addr.Provider, provider.Factory) provider.Factory
	// Program is the path of the program, for hooks that call it; "" for its name.
	Program string
}

// A Folder is where a unit runs, and with what environment.
type Folder struct {
	Dir   string
	Env   sys.Env
	Files config.FS // what the folder holds where it is not on disk yet; nil: what lies there
	// Programs is the environment of programs that the module starts; nil: Env.
	Programs func() sys.Env
}

// Installing is what init is run with in the working folder of a unit.
type Installing struct {
	Folder
	// Backend are arguments of the backend, as -backend-config has them.
	Backend []string
	// Values are the unit's inputs for the variables that a module declares, and Sources
	// is the text of the unit files that they stand in.
	Values  func(root *config.Module) (map[string]engine.InputValue, diag.List)
	Sources *source.Set
}

// Providers are the providers of one unit.
type Providers interface {
	engine.ProviderSource
	// Choose finds the packages of the providers that are needed.
	Choose(ctx context.Context, needed map[addr.Provider][]config.Constraint) diag.List
}
