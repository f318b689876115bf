// Package migrate copies states from one backend to another.
//
// Main types: Migration and Side. The one rule: a copy has the same lineage and serial as the
// original. Nothing is removed from the old backend before the new one contains everything, so
// that an interrupted migration can be repeated.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/journal"
	"github.com/terrace-iac/terrace/internal/state/statemgr"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
)

// A Side is one of the two backends.
type Side struct {
	Type    string // name of the kind, for questions
	Backend backend.Backend
	Options backend.StoreOptions
	Records sealing.Sealer // encrypts journals; nil means no encryption
}

// sole returns the name of the only workspace of a side; "" if there can be several.
func (s Side) sole() string {
	if one, ok := s.Backend.(backend.Named); ok {
		return one.Sole()
	}
	return ""
}

// A Question is a yes-or-no question for the user.
type Question struct{ Title, Text string }

// A Migration describes what to copy. Dir, From, To and Current are required.
type Migration struct {
	From, To Side
	Current  string       // the selected workspace
	Dir      string       // the working directory, which contains the journals of remote states
	User     journal.User // the user whose journals are used
	Temp     string       // directory for two states that the user may compare

	Force bool // answer yes to every question
	// Ask asks the user; nil means that the user is not asked.
	Ask func(context.Context, Question) (bool, error)
	// Choose asks the user for a text: a name, or a pattern of names. nil means that the user
	// is not asked.
	Choose func(context.Context, Question) (string, error)

	Lock    *store.LockInfo // nil means that nothing is locked
	Timeout time.Duration
}

// A Result is the result of a migration.
type Result struct {
	// Select is the workspace that must be selected; "" means no change.
	Select string
	// Copied contains the copied workspaces of the old backend.
	Copied []string
}

// A job is the copy of one state.
type job struct {
	from, to store.Store
	source   string // name of the workspace
	target   string
}

// Run copies the states. It does not change the old backend; see Clear.
func Run(ctx context.Context, m Migration) (res Result, ds diag.List) {
	source, ds := backend.Workspaces{Backend: m.From.Backend, Options: m.From.Options}.List(ctx)
	if ds.HasErrors() {
		return res, ds
	}
	answered := backend.Watch(m.To.Backend, m.To.Options)
	_, err := m.To.Backend.List(ctx)
	answered()
	single := errors.Is(err, backend.ErrNoWorkspaces)
	if err != nil && !single {
		return res, append(ds, m.To.Options.Located(backend.Message(diag.CodeBackendReadFailed, "Failed to list workspaces", "", err))...)
	}
	into := store.Default
	if sole := m.To.sole(); sole != "" {
		single, into = true, sole
	}
	if len(source) == 0 {
		return res, ds
	}
	names, target := source, func(name string) string { return name }
	many := len(source) > 1
	unnamed := !many && (source[0] == store.Default || m.From.sole() != "")
	switch {
	case !many && (single || unnamed && backend.HasDefault(m.To.Backend)):
		target = func(string) string { return into }
	case many && single:
		current := m.Current
		if !slices.Contains(source, current) {
			current = source[0]
		}
		names, target = []string{current}, func(string) string { return into }
	case !backend.HasDefault(m.To.Backend):
		renamed, more := m.rename(ctx, source, unnamed)
		if ds = append(ds, more...); more.HasErrors() {
			return res, ds
		}
		names = slices.DeleteFunc(slices.Clone(source), func(name string) bool { return renamed[name] == "" })
		target = func(name string) string { return renamed[name] }
		if slices.Contains(names, m.Current) && renamed[m.Current] != m.Current {
			defer func() {
				if !ds.HasErrors() {
					res.Select = renamed[m.Current]
				}
			}()
		}
	}
	names = slices.Clone(names)
	slices.Sort(names)
	jobs, more := m.jobs(ctx, names, target)
	if ds = append(ds, more...); more.HasErrors() || len(jobs) == 0 {
		return res, ds
	}
	asked := false
	switch {
	case many && single:
		ok, more := m.ask(ctx, m.intoOne(names[0]))
		if ds = append(ds, more...); more.HasErrors() || !ok {
			return res, append(ds, aborted(more)...)
		}
		asked, res.Select = true, into
	case many:
		ok, more := m.ask(ctx, m.allOf())
		if ds = append(ds, more...); more.HasErrors() || !ok {
			return res, append(ds, aborted(more)...)
		}
		asked = true
	}
	for _, j := range jobs {
		copied, more := m.copy(ctx, j, asked)
		if ds = append(ds, more...); more.HasErrors() {
			return res, ds
		}
		if copied {
			res.Copied = append(res.Copied, j.source)
		}
	}
	return res, ds
}

// rename returns the new names of workspaces, for backends without a default workspace.
// Workspaces without state are omitted.
func (m *Migration) rename(ctx context.Context, source []string, unnamed bool) (map[string]string, diag.List) {
	out := map[string]string{}
	var full []string
	for _, name := range source {
		from, err := m.From.Backend.Store(name, m.From.Options)
		if err != nil {
			return nil, backend.Message(diag.CodeBackendReadFailed, "Failed to open a state", "", err)
		}
		st, ds := statemgr.Read(ctx, m.held(m.From, from, name, ""))
		if ds.HasErrors() {
			return nil, ds
		}
		if !st.Empty() {
			full = append(full, name)
		}
	}
	if len(full) == 0 {
		return out, nil
	}
	if unnamed {
		name, ds := m.name(ctx, full[0])
		out[full[0]] = name
		return out, ds
	}
	pattern := "*"
	if m.Choose != nil && !m.Force {
		answer, err := m.Choose(ctx, m.pattern(full))
		if err != nil {
			return nil, diag.Errorf(diag.CodeCLINotApproved, nil, "State migration was not approved", "The workspaces were not named: %s. Run the command in a terminal.", err)
		}
		if answer != "" {
			pattern = answer
		}
	}
	if strings.Count(pattern, "*") != 1 {
		return nil, diag.Errorf(diag.CodeCloudWorkspace, nil, "Invalid pattern for workspaces", "A pattern has exactly one asterisk, which stands for the present name. Nothing was changed.")
	}
	for _, name := range full {
		out[name] = strings.Replace(pattern, "*", name, 1)
		if out[name] == store.Default {
			var ds diag.List
			if out[name], ds = m.name(ctx, name); ds.HasErrors() {
				return nil, ds
			}
		}
		if !store.ValidWorkspace(out[name]) {
			return nil, diag.Errorf(diag.CodeStateWorkspace, nil, "Invalid workspace name", "The name %q is not allowed for a workspace. Nothing was changed.", out[name])
		}
	}
	return out, nil
}

// name asks for the new name of the default workspace.
func (m *Migration) name(ctx context.Context, old string) (string, diag.List) {
	if m.Choose == nil {
		return "", diag.Errorf(diag.CodeCloudWorkspace, nil, "The workspace needs a name", "The state of the workspace %q is to be copied to the %q backend, in which every workspace has a name of its own, and nobody can be asked for one. Run the command in a terminal, or set the name of one workspace in the configuration.", old, m.To.Type)
	}
	answer, err := m.Choose(ctx, Question{
		Title: "Workspace name",
		Text:  fmt.Sprintf("The %q backend has no default workspace. Enter the name of the workspace\nthat the state of %q is copied to.", m.To.Type, old),
	})
	switch {
	case err != nil:
		return "", diag.Errorf(diag.CodeCLINotApproved, nil, "State migration was not approved", "The workspace was not named: %s. Run the command in a terminal.", err)
	case !store.ValidWorkspace(answer) || answer == store.Default:
		return "", diag.Errorf(diag.CodeStateWorkspace, nil, "Invalid workspace name", "The name %q is not allowed for this workspace. Nothing was changed.", answer)
	}
	return answer, nil
}

func (m *Migration) pattern(names []string) Question {
	return Question{
		Title: "How should the workspaces be called?",
		Text:  fmt.Sprintf("These workspaces are copied to the %q backend:\n  %s\n\nEnter a pattern with an asterisk, which stands for the present name, e.g.\n\"app-*\". An empty answer keeps the names.", m.To.Type, strings.Join(names, "\n  ")),
	}
}

// aborted returns the error that several workspaces were not copied.
func aborted(ds diag.List) diag.List {
	if ds.HasErrors() {
		return nil
	}
	return diag.Errorf(diag.CodeBackendMigrationAborted, nil, "Migration aborted", "Migration aborted by user. Nothing was changed.")
}

// jobs returns the states to copy. They are read again under the locks before they are copied.
func (m *Migration) jobs(ctx context.Context, names []string, target func(string) string) ([]job, diag.List) {
	var out []job
	var ds diag.List
	for _, name := range names {
		j := job{source: name, target: target(name)}
		var err error
		if j.from, err = m.From.Backend.Store(j.source, m.From.Options); err == nil {
			j.to, err = m.To.Backend.Store(j.target, m.To.Options)
		}
		if err != nil {
			return nil, append(ds, backend.Message(diag.CodeBackendReadFailed, "Failed to open a state", "", err)...)
		}
		if samePlace(j.from, j.to) && m.From.Type == m.To.Type {
			continue
		}
		st, more := statemgr.Read(ctx, m.held(m.From, j.from, j.source, ""))
		if ds = append(ds, more...); more.HasErrors() {
			return nil, ds
		}
		if st.Empty() {
			continue
		}
		there, more := j.to.Read(ctx)
		if ds = append(ds, more...); more.HasErrors() {
			return nil, ds
		}
		if !same(st, there) {
			out = append(out, j)
		}
	}
	return out, ds
}

func samePlace(a, b store.Store) bool {
	x, ok := a.(backend.Placer)
	y, also := b.(backend.Placer)
	return ok && also && x.Place() == y.Place()
}

// same reports whether the new backend has the state already.
func same(st, there *state.State) bool {
	return there != nil && there.Lineage == st.Lineage && there.Serial >= st.Serial && there.Equal(st)
}

// lacks reports whether a state does not contain all objects of the one that it replaces. With
// another lineage the objects must be equal.
func lacks(st, there *state.State) bool {
	if there == nil {
		return false
	}
	for a, o := range there.Objects() {
		if mine, _, ok := st.Object(a); a.Instance.Resource.Mode == addr.Managed && (!ok || st.Lineage != there.Lineage && !mine.Equal(o)) {
			return true
		}
	}
	return false
}

func (m *Migration) held(side Side, st store.Store, workspace, operation string) statemgr.Options {
	o := statemgr.Options{Store: st, Journal: backend.JournalPath(st, m.Dir, workspace), Segments: backend.BlobsOf(st), Records: side.Records, Sealer: side.Options.Sealer, Dir: m.Dir, User: m.User, StateID: backend.StateID(st, workspace)}
	if m.Lock != nil && operation != "" {
		info := *m.Lock
		info.Operation = operation
		if info.Info == "" {
			info.Info = lockText
		}
		o.Lock, o.Timeout = &info, m.Timeout
	}
	return o
}

// lockText is the text in the lock that other processes show. A migration has no journal and
// can be repeated.
const lockText = "If this run is killed, release its lock with force-unlock and run init -migrate-state again: the state is still in its old place."

// copy copies one state under both locks. The journal of a killed run counts as part of the
// state.
func (m *Migration) copy(ctx context.Context, j job, asked bool) (copied bool, ds diag.List) {
	from, ds := statemgr.Take(ctx, m.held(m.From, j.from, j.source, "migration source state"))
	if ds.HasErrors() {
		return false, backend.OfWorkspace(j.from, j.source, ds)
	}
	defer func() { ds = append(ds, from.Release()...) }()
	to, more := statemgr.Take(ctx, m.held(m.To, j.to, j.target, "migration destination state"))
	if ds = append(ds, backend.OfWorkspace(j.to, j.target, more)...); more.HasErrors() {
		return false, ds
	}
	defer func() { ds = append(ds, to.Release()...) }()
	for _, st := range []*statemgr.State{from, to} { // no other run may be working on either
		if more := st.Settle(ctx); more.HasErrors() {
			return false, append(ds, more...)
		}
	}
	there := to.Current()
	st := from.Current()
	if st.Empty() || same(st, there) {
		return false, ds
	}
	if !asked {
		q := m.intoEmpty()
		if !there.Empty() {
			var done func()
			if q, done, more = m.overwrite(st, there); more.HasErrors() {
				return false, append(ds, more...)
			}
			defer done()
		}
		ok, more := m.ask(ctx, q)
		if ds = append(ds, more...); more.HasErrors() || !ok {
			return false, ds
		}
	}
	if lacks(st, there) { // perhaps from the journal of a killed run
		more := statemgr.KeepReplaced(m.held(m.To, j.to, j.target, ""), there)
		if ds = append(ds, more...); more.HasErrors() {
			return false, ds
		}
	}
	if more := j.to.Write(ctx, st); more.HasErrors() {
		return false, append(ds, more...)
	}
	return true, ds
}

func (m *Migration) ask(ctx context.Context, q Question) (bool, diag.List) {
	if m.Force {
		return true, nil
	}
	if m.Ask == nil {
		return false, diag.Errorf(diag.CodeCLINotApproved, nil, "Can't ask approval for state migration when interactive input is disabled.", "If non-interactive operation is desired, consider adding the \"-force-copy\" option. Otherwise, please remove the \"-input=false\" option and try again.")
	}
	ok, err := m.Ask(ctx, q)
	if err != nil {
		return false, diag.Errorf(diag.CodeCLINotApproved, nil, "State migration was not approved", "Not approved: %s. Run the command in a terminal, or with -force-copy.", err)
	}
	return ok, nil
}

func (m *Migration) allOf() Question {
	return Question{
		Title: fmt.Sprintf("Do you want to migrate all workspaces to %q?", m.To.Type),
		Text:  fmt.Sprintf("Both the existing %q backend and the newly configured %q backend\nsupport workspaces. When migrating between backends, all workspaces are\ncopied (with the same names). THIS WILL OVERWRITE any conflicting\nstates in the destination.\n\nIf you answer \"yes\", all states are migrated. If you answer\n\"no\", nothing is changed.", m.From.Type, m.To.Type),
	}
}

func (m *Migration) intoOne(current string) Question {
	return Question{
		Title: "Destination state has no workspaces. Copy only the current workspace?",
		Text:  fmt.Sprintf("The existing %q backend has several workspaces, and the newly configured %q\nbackend has none but the default one. The state of the current workspace, %q,\nis copied into it, over what it holds. The others stay where they are.\n\nEnter \"yes\" to copy the current workspace, and \"no\" to change nothing.", m.From.Type, m.To.Type, current),
	}
}

func (m *Migration) intoEmpty() Question {
	return Question{
		Title: "Do you want to copy existing state to the new backend?",
		Text:  fmt.Sprintf("Pre-existing state was found while migrating the previous %q backend to the\nnewly configured %q backend. No existing state was found in the newly\nconfigured %[2]q backend. Do you want to copy this state to the new %[2]q\nbackend? Enter \"yes\" to copy and \"no\" to start with an empty state.", m.From.Type, m.To.Type),
	}
}

// overwrite returns the question for the case that both backends have a state. Both states are
// written to files until done is called.
func (m *Migration) overwrite(st, there *state.State) (q Question, done func(), ds diag.List) {
	fail := func(err error) (Question, func(), diag.List) {
		return Question{}, nil, diag.Errorf(diag.CodeBackendMigrationFailed, nil, "Migration failed", "The two states cannot be put into files for comparison: %s.", err)
	}
	dir, err := os.MkdirTemp(m.Temp, "terraform-migrate-") // mode 0700
	if err != nil {
		return fail(err)
	}
	done = func() { _ = os.RemoveAll(dir) }
	paths := []string{filepath.Join(dir, "1-"+m.From.Type+".tfstate"), filepath.Join(dir, "2-"+m.To.Type+".tfstate")}
	for i, s := range []*state.State{st, there} {
		if err := keep(paths[i], m.To.Options.Sealer, s); err != nil {
			done()
			return fail(err)
		}
	}
	return Question{
		Title: "Do you want to copy existing state to the new backend?",
		Text:  fmt.Sprintf("Pre-existing state was found while migrating the previous %q backend to the\nnewly configured %q backend, which holds another state already. Both were saved\nfor you to compare, as long as this question waits for an answer:\n\n  Previous (type %[1]q): %[3]s\n  New      (type %[2]q): %[4]s\n\nEnter \"yes\" to overwrite the state in the new backend with the previous one, and\n\"no\" to keep the state of the new backend.", m.From.Type, m.To.Type, paths[0], paths[1]),
	}, done, nil
}

// keep writes a state to a file that is readable by its owner only.
func keep(path string, sealer sealing.Sealer, s *state.State) error {
	text, err := store.FileText(sealer, s)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(text(f), f.Close())
}

// Clear empties the copied states in the old backend, if that backend requires it. It must be
// called after nothing refers to the old backend any more.
func Clear(ctx context.Context, m Migration, r Result) diag.List {
	v, ok := m.From.Backend.(backend.Clearer)
	if !ok {
		return nil
	}
	var ds diag.List
	for _, name := range r.Copied {
		if err := v.Clear(ctx, name, m.From.Options); err != nil {
			ds = append(ds, diag.Warnf(diag.CodeBackendLeftBehind, nil, "State left behind", "The state of the workspace %q was copied, but its old place could not be emptied: %s. Remove it by hand, so that it is not taken for the present state.", name, err)...)
		}
	}
	return ds
}
