// Package selection determines the backend of a working directory from the block in its files,
// the options of init, and the record of init.
//
// Main types: Dir and Outcome. The one rule: commands use the backend that init recorded, and
// return an error if the block differs. Only init changes the record.
package selection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/base/inside"
	"github.com/terrace-iac/terrace/internal/base/readfile"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/configure"
	"github.com/terrace-iac/terrace/internal/state/backend/record"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/source"
	"github.com/zclconf/go-cty/cty"
)

// A Directory is a working directory.
type Directory struct {
	Backends *backend.Set
	Path     string // absolute
	Data     string // the data directory, absolute
	Env      sys.Env
	User     Signer // proves that the user wrote the record of init; nil means that there is no proof
	Default  string // the kind of a directory without a block
	Program  string // for messages
	Product  string
	// Outside adds source ranges to messages about arguments that are configured outside of the
	// directory. nil means that there are none.
	Outside func(diag.List) diag.List
}

// A Signer signs texts for its user; see journal.User.
type Signer interface {
	Sign(purpose string, texts ...string) (code string, ok bool)
	Signed(code, purpose string, texts ...string) bool
}

// codeName is a file next to the record. It proves that the user's own init wrote the record.
const (
	codeName    = "terrace-backend"
	codePurpose = "backend of a directory"
)

// own reports whether the user's own init wrote the record of this directory. A checkout can
// contain a forged record.
func (d Directory) own() bool {
	text, err := readfile.Whole(filepath.Join(d.Data, record.Name))
	if err != nil || d.User == nil {
		return false
	}
	code, err := readfile.Whole(filepath.Join(d.Data, codeName))
	return err == nil && d.User.Signed(strings.TrimSpace(string(code)), codePurpose, d.Data, string(text))
}

// sign records that the user wrote the record.
func (d Directory) sign() error {
	text, err := readfile.Whole(filepath.Join(d.Data, record.Name))
	if errors.Is(err, fs.ErrNotExist) || d.User == nil {
		return nil
	}
	if err != nil {
		return err
	}
	if code, ok := d.User.Sign(codePurpose, d.Data, string(text)); ok {
		return atomicfile.WriteUnlinked(filepath.Join(d.Data, codeName), []byte(code+"\n"), 0o644)
	}
	return nil
}

// overrides returns the arguments that have other values in the record than in the block,
// because of init -backend-config. If the user's own init did not write the record, it returns
// none.
func (d Directory) overrides(k backend.Kind, written, saved cty.Value) []string {
	names := slices.DeleteFunc(configure.Differing(k.Schema, written, saved), func(name string) bool {
		v, _ := written.GetAttr(name).UnmarkDeep()
		return v.IsNull() || !v.IsWhollyKnown() || v.CanIterateElements() && v.LengthInt() == 0
	})
	if len(names) == 0 || d.own() {
		return nil
	}
	slices.Sort(names)
	return names
}

// InitCode is the code of the message that init must run first.
const InitCode = diag.CodeBackendInit

// DataDir returns the program's data directory, absolute or relative to the working directory.
func DataDir(env sys.Env) string {
	if dir := env.Get("TF_DATA_DIR"); dir != "" {
		return dir
	}
	return ".terraform"
}

// Workspace returns the selected workspace: the value of TF_WORKSPACE, otherwise the one
// recorded in the data directory, otherwise the default one. It does not check the name.
func Workspace(env sys.Env, data string) (string, error) {
	if name := env.Get("TF_WORKSPACE"); name != "" {
		return name, nil
	}
	b, err := readfile.Whole(filepath.Join(data, "environment"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return store.Default, err
	}
	return cmp.Or(strings.TrimSpace(string(b)), store.Default), nil
}

// none returns the configuration of a directory without a block.
func (d Directory) none() (backend.Config, diag.List) {
	k, ds := d.Backends.Kind(d.Default)
	if ds.HasErrors() {
		return backend.Config{}, ds
	}
	return backend.Config{Type: d.Default, Value: k.Schema.Empty(), Dir: d.Path, Env: d.Env}, nil
}

// Recorded returns the record of init; nil if there is none.
func (d Directory) Recorded() (*record.Record, diag.List) {
	r, err := record.Read(d.Data)
	if err != nil {
		return nil, diag.Errorf(diag.CodeBackendFailed, nil, "Failed to read the backend configuration", "The file %s in %s, in which init keeps the configuration of the backend, cannot be used: %s. Run \"%s init -reconfigure\" to write it anew.", record.Name, d.Data, err, d.Program)
	}
	return r, nil
}

// recorded returns the configuration in a record.
func (d Directory) recorded(r *record.Record) (backend.Config, diag.List) {
	k, ds := d.Backends.Kind(r.Type)
	if ds.HasErrors() {
		return backend.Config{}, ds
	}
	v, err := r.Value(k)
	if err != nil {
		return backend.Config{}, diag.Errorf(diag.CodeBackendFailed, nil, "Failed to read the backend configuration", "The record of init in %s cannot be used: %s. Run \"%s init -reconfigure\" to write it anew.", d.Data, err, d.Program)
	}
	return backend.Config{Type: r.Type, Value: v, Dir: d.Path, Env: d.Env}, nil
}

// Settled returns the backend that contains the states of the directory, whatever its block
// contains now: the one that init recorded, or without a record the local one. initialized is
// false if there is no record.
func (d Directory) Settled() (c backend.Config, initialized bool, ds diag.List) {
	r, ds := d.Recorded()
	if ds.HasErrors() {
		return backend.Config{}, false, ds
	}
	if r == nil {
		c, ds = d.none()
		return c, false, ds
	}
	c, ds = d.recorded(r)
	return c, true, ds
}

// Of returns the configuration in a saved plan.
func (d Directory) Of(kind string, v cty.Value) (backend.Config, diag.List) {
	k, ds := d.Backends.Kind(kind)
	if ds.HasErrors() {
		return backend.Config{}, ds
	}
	if v == cty.NilVal || !v.IsWhollyKnown() || !v.CanIterateElements() {
		v = cty.EmptyObjectVal
	}
	v, err := configure.Partial(k.Schema, v)
	if err != nil {
		return backend.Config{}, diag.Errorf(diag.CodeBackendRemoteState, nil, "Invalid backend configuration", "The configuration of the backend that the plan was made with cannot be used: %s.", err)
	}
	return backend.Config{Type: kind, Value: v, Dir: d.Path, Env: d.Env}, nil
}

// Current returns the backend that commands use. block is nil if there is none.
func (d Directory) Current(block *config.Backend, eval configure.Eval) (backend.Config, diag.List) {
	r, ds := d.Recorded()
	if ds.HasErrors() {
		return backend.Config{}, ds
	}
	if block == nil {
		if r != nil {
			return backend.Config{}, d.initRequired(fmt.Sprintf("Unsetting the previously set backend %q", r.Type), nil)
		}
		return d.none()
	}
	k, ds := d.kind(block)
	if ds.HasErrors() {
		return backend.Config{}, ds
	}
	written, ds := configure.Block(k.Schema, block.Body, eval)
	switch {
	case ds.HasErrors():
		return backend.Config{}, ds
	case k.Settings && (r == nil || r.Type != block.Type):
		return backend.Config{}, d.settingsRequired("Initial configuration of the cloud backend", &block.At)
	case r == nil:
		return backend.Config{}, d.initRequired(fmt.Sprintf("Initial configuration of the requested backend %q", block.Type), &block.At)
	case r.Type != block.Type:
		return backend.Config{}, d.initRequired(fmt.Sprintf("Backend type changed from %q to %q", r.Type, block.Type), &block.At)
	}
	saved, more := d.recorded(r)
	if ds = append(ds, more...); more.HasErrors() {
		return saved, ds
	}
	saved.Elsewhere = elsewhere(k, written, saved.Value, nil)
	if names := d.overrides(k, written, saved.Value); len(names) > 0 {
		return backend.Config{}, append(ds, d.initRequired(fmt.Sprintf("%s has another value of %s than the block, and was not written by an init of yours in this directory. If you gave the value with -backend-config, run init with it again", record.Name+" in "+d.Data, strings.Join(names, ", ")), &block.At)...)
	}
	if r.Hash != record.Hash(r.Type, written) && !saved.Value.RawEquals(written) {
		if k.Settings {
			return backend.Config{}, append(ds, d.settingsRequired("Cloud backend configuration block has changed", &block.At)...)
		}
		return backend.Config{}, append(ds, d.initRequired("Backend configuration block has changed", &block.At)...)
	}
	return saved, ds
}

// Expected returns the backend for commands that run init automatically: the current one, or if
// commands would be refused, the one that init would configure. If init would be refused, too,
// it returns errors, for example in a directory that was initialized differently. It changes
// nothing.
func (d Directory) Expected(ctx context.Context, in Init) (backend.Config, diag.List) {
	if cfg, ds := d.Current(in.Block, in.Eval); !ds.HasErrors() {
		return cfg, ds
	}
	out, ds := d.Settle(ctx, in)
	if ds.HasErrors() {
		return backend.Config{}, ds
	}
	return out.Config, ds
}

// elsewhere describes the arguments whose value in force differs from that in the block, by the
// options of init that set them, if these are known.
func elsewhere(k backend.Kind, written, inForce cty.Value, by map[string]string) map[string]string {
	out := map[string]string{}
	for _, name := range configure.Differing(k.Schema, written, inForce) {
		out[name] = cmp.Or(by[name], "with -backend-config or in answer to a question")
	}
	return out
}

func (d Directory) kind(block *config.Backend) (backend.Kind, diag.List) {
	k, ds := d.Backends.Kind(block.Type)
	return k, ds.Under(&block.At)
}

func (d Directory) initRequired(reason string, at *source.Range) diag.List {
	return diag.List{{
		Code: InitCode, At: at,
		Summary: fmt.Sprintf("Backend initialization required, please run \"%s init\"", d.Program),
		Detail: fmt.Sprintf("Reason: %s\n\nThe \"backend\" is the interface that %[2]s uses to store state, perform operations, etc. If this message is showing up, it means that the %[2]s configuration you're using is using a custom configuration for the %[2]s backend.\n\n"+
			"Changes to backend configurations require reinitialization. This allows %[2]s to set up the new configuration, copy existing state, etc. Please run \"%[3]s init\" with either the \"-reconfigure\" or \"-migrate-state\" flags to use the current configuration.\n\n"+
			"If the change reason above is incorrect, please verify your configuration hasn't changed and try again. At this point, no changes to your existing configuration or state have been made.", reason, d.Product, d.Program),
	}}
}

// settingsRequired is initRequired for a block that is not a backend block.
func (d Directory) settingsRequired(reason string, at *source.Range) diag.List {
	return diag.List{{
		Code: InitCode, At: at,
		Summary: fmt.Sprintf("Cloud backend initialization required: please run \"%s init\"", d.Program),
		Detail:  fmt.Sprintf("Reason: %s.\n\nChanges to the cloud backend configuration block require reinitialization, to discover any changes to the available workspaces.\n\nTo re-initialize, run:\n  %s init\n\n%s has not yet made changes to your existing configuration or state.", reason, d.Program, d.Product),
	}}
}

// An Init contains the options of init about the backend.
type Init struct {
	Block       *config.Backend // nil means none
	Eval        configure.Eval
	Options     []string // values of -backend-config, in order
	Read        func(name string) (*source.File, error)
	Reconfigure bool
	Migrate     bool
	Force       bool // answer yes to every question about copying
	Pending     bool // only report the steps that init would take, whatever options they require
	// Ask asks the user for an argument; nil means that the user is not asked.
	Ask func(ctx context.Context, argument, description string) (string, error)
}

// An Outcome is the result of settling the backend in init.
type Outcome struct {
	Config backend.Config // in force from now on
	// From is the backend whose states belong in Config; nil means none.
	From *backend.Config
	// Unset means that there was a backend and is none now.
	Unset bool
	// Changed means that the directory was initialized with another configuration.
	Changed bool
	// Record must be written after states were moved, if Write is set.
	Record *record.Record
	Write  bool
}

// Settle determines what init must do. It changes nothing.
func (d Directory) Settle(ctx context.Context, in Init) (*Outcome, diag.List) {
	r, ds := d.Recorded()
	if ds.HasErrors() {
		if !in.Reconfigure {
			return nil, ds
		}
		r, ds = nil, nil
	}
	in.Migrate = in.Migrate || in.Pending
	if in.Block == nil {
		out, more := d.settleNone(in, r)
		return out, append(ds, more...)
	}
	k, more := d.kind(in.Block)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	if k.Settings {
		if more := in.noOptions(); more.HasErrors() {
			return nil, append(ds, more...)
		}
		in.Migrate = true
	}
	written, more := configure.Block(k.Schema, in.Block.Body, in.Eval)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	overlay, more := configure.Options(k.Schema, written, in.Options, d.Outside != nil, in.Read)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	merged := overlay.Value
	hash := record.Hash(in.Block.Type, written)
	old := r
	if in.Reconfigure {
		r = nil
	}
	if r != nil && r.Type == in.Block.Type {
		saved, more := d.recorded(r)
		if more.HasErrors() {
			return nil, append(ds, more...)
		}
		saved.Elsewhere = elsewhere(k, written, saved.Value, overlay.By)
		if r.Hash == hash && !overlay.Overridden && len(d.overrides(k, written, saved.Value)) == 0 {
			return &Outcome{Config: saved}, ds
		}
		if saved.Value.RawEquals(merged) {
			r.Hash = hash
			return &Outcome{Config: saved, Record: r, Write: true}, ds
		}
	}
	if r != nil && !in.Migrate {
		return nil, append(ds, d.changed().Under(&in.Block.At)...)
	}
	merged, more = d.complete(ctx, k, merged, in)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	out := &Outcome{Config: backend.Config{Type: in.Block.Type, Value: merged, Dir: d.Path, Env: d.Env, Elsewhere: elsewhere(k, written, merged, overlay.By)}, Changed: r != nil, Write: true}
	var err error
	if out.Record, err = record.Of(out.Config, written); err != nil {
		return nil, append(ds, backend.Message(diag.CodeBackendFailed, "Failed to save the backend configuration", "", err)...)
	}
	from, more := d.none()
	if r != nil {
		from, more = d.recorded(r)
	}
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	if k.Settings && r != nil && r.Type == in.Block.Type { // other settings of the same service; the states are not moved
		return out, ds
	}
	if same := old != nil && in.Reconfigure && old.Type == out.Config.Type && string(old.Config) == string(out.Record.Config); !same {
		out.From = &from
	}
	return out, ds
}

// noOptions returns an error if init has options about backends.
func (in Init) noOptions() diag.List {
	const summary = "Invalid command-line option"
	switch {
	case len(in.Options) > 0:
		return diag.Errorf(diag.CodeCLIInitOption, nil, summary, "The -backend-config option is for the configuration of state backends, and is not applicable when using cloud backend.\n\nSet the arguments in the cloud block, or by the environment variables TF_CLOUD_HOSTNAME, TF_CLOUD_ORGANIZATION, TF_CLOUD_PROJECT and TF_WORKSPACE.")
	case in.Pending:
	case in.Reconfigure:
		return diag.Errorf(diag.CodeCLIInitOption, nil, summary, "The -reconfigure option is for in-place reconfiguration of state backends only, and is not needed when changing cloud backend settings.\n\nWhen using cloud backend, initialization automatically activates any new Cloud configuration settings.")
	case in.Migrate && !in.Force:
		return diag.Errorf(diag.CodeCLIInitOption, nil, summary, "The -migrate-state option is for migration between state backends only, and is not applicable when using cloud backend.\n\nState storage is handled automatically by cloud backend and so the state storage location is not configurable.")
	case in.Migrate:
		return diag.Errorf(diag.CodeCLIInitOption, nil, summary, "The -force-copy option is for migration between state backends only, and is not applicable when using cloud backend.\n\nState storage is handled automatically by cloud backend and so the state storage location is not configurable.")
	}
	return nil
}

func (d Directory) settleNone(in Init, r *record.Record) (*Outcome, diag.List) {
	var ds diag.List
	if len(in.Options) > 0 {
		ds = diag.Warnf(diag.CodeBackendMissingBlock, nil, "Missing backend configuration", "-backend-config was used without a \"backend\" block in the configuration.\n\nIf you intended to override the default local backend configuration, no action is required, but you may add an explicit backend block to your configuration to clear this warning:\n\nterraform {\n  backend \"%s\" {}\n}\n\nHowever, if you intended to override a defined backend, please verify that the backend configuration is present and valid.", d.Default)
	}
	to, more := d.none()
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	switch {
	case r == nil:
		return &Outcome{Config: to}, ds
	case in.Reconfigure:
		return &Outcome{Config: to, Unset: true, Write: true}, ds
	case !in.Migrate:
		return nil, append(ds, d.changed()...)
	}
	from, more := d.recorded(r)
	if ds = append(ds, more...); more.HasErrors() {
		return nil, ds
	}
	return &Outcome{Config: to, From: &from, Unset: true, Write: true}, ds
}

// CodeChanged is the code of the error that a directory was initialized with another backend.
const CodeChanged = diag.CodeBackendConfigurationChanged

func (d Directory) changed() diag.List {
	return diag.Errorf(CodeChanged, nil, "Backend configuration changed", "A change in the backend configuration has been detected, which may require migrating existing state.\n\nIf you wish to attempt automatic migration of the state, use \"%s init -migrate-state\".\nIf you wish to store the current configuration with no changes to the state, use \"%[1]s init -reconfigure\".", d.Program)
}

// complete asks the user for missing required arguments.
func (d Directory) complete(ctx context.Context, k backend.Kind, v cty.Value, in Init) (cty.Value, diag.List) {
	var ds diag.List
	for _, name := range configure.Missing(k, v, d.Env) {
		if in.Ask == nil {
			missing := diag.Errorf(diag.CodeLangMissingArgument, nil, "Missing required argument", "The argument %q of the backend %q is required, but was not set. Set it in the block, or give it to init with -backend-config=%[1]s=….", name, k.Name)
			ds = append(ds, d.outside(missing).Under(&in.Block.At)...)
			continue
		}
		text, err := in.Ask(ctx, name, k.Schema.Attributes[name].Description)
		if err != nil {
			missing := diag.Errorf(diag.CodeLangMissingArgument, nil, "Missing required argument", "The argument %q of the backend %q is required, and there was no answer to the question for it: %s.", name, k.Name, err)
			return v, append(ds, d.outside(missing).Under(&in.Block.At)...)
		}
		next, err := configure.With(k.Schema, v, name, text)
		if err != nil {
			return v, append(ds, diag.Errorf(diag.CodeBackendConfigArgument, &in.Block.At, "Invalid backend configuration argument", "%s.", err)...)
		}
		v = next
	}
	return v, ds
}

// Save writes the record of an outcome.
func (d Directory) Save(o *Outcome) diag.List {
	if !o.Write {
		return nil
	}
	err := inside.CheckData(d.Data, d.Data)
	if err == nil {
		err = record.Write(d.Data, o.Record)
	}
	if err == nil {
		err = d.sign()
	}
	if err != nil {
		return diag.Errorf(diag.CodeBackendFailed, nil, "Failed to save the backend configuration", "The record of init cannot be written to %s: %s.", d.Data, err)
	}
	return nil
}

// Locate adds source ranges to messages of an opened backend with the configuration c.
func (d Directory) Locate(ds diag.List, c backend.Config, block *config.Backend) diag.List {
	k, unknown := d.Backends.Kind(block.Type)
	if unknown.HasErrors() {
		return ds
	}
	return configure.Locate(d.outside(slices.Clone(ds)), k.Schema, block.Body, &block.At, c.Elsewhere)
}

// outside adds the source ranges of Outside to messages.
func (d Directory) outside(ds diag.List) diag.List {
	if d.Outside == nil {
		return ds
	}
	return d.Outside(ds)
}

// Open opens a configuration of the directory. Messages about an argument have its source range
// in the block.
func (d Directory) Open(ctx context.Context, c backend.Config, block *config.Backend) (backend.Backend, diag.List) {
	b, ds := d.Backends.Open(ctx, c)
	if block != nil && len(ds) > 0 {
		ds = d.Locate(ds, c, block)
	}
	return b, ds
}
