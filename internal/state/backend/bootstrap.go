package backend

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// A Bootstrapper is a Backend that can create its store: a bucket, or a table of locks.
type Bootstrapper interface {
	// Site identifies the store, which many configurations may share.
	Site() string
	// Bootstrap creates missing parts of the store and changes existing ones according to the
	// arguments. It is idempotent.
	Bootstrap(ctx context.Context, b Bootstrapping) error
	// Versioned reports whether the store keeps deleted and overwritten objects.
	Versioned(ctx context.Context) (bool, error)
}

// Bootstrapping configures Bootstrap.
type Bootstrapping struct {
	Args    *Args             // the arguments in Kind.Bootstrap
	Require bool              // a missing store is an error and is not created
	Keep    bool              // an existing store is not changed
	Did     func(what string) // called for everything that was created or changed
}

// Bootstrap creates the store of a configuration, unless this process has created it with the
// same arguments before. args are those in Kind.Bootstrap; NilVal means none. can is false if
// stores of this kind cannot be created.
func (s *Set) Bootstrap(ctx context.Context, c Config, args cty.Value, b Bootstrapping) (can bool, ds diag.List) {
	opened, ds := s.Open(ctx, c)
	if ds.HasErrors() {
		return false, ds
	}
	maker, ok := opened.(Bootstrapper)
	if !ok {
		return false, ds
	}
	k, _ := s.Kind(c.Type)
	v, err := bootstrapValue(k, args)
	if err != nil {
		return true, append(ds, diag.Errorf(diag.CodeBackendRemoteState, nil, "Invalid backend configuration", "The arguments about making the store of the backend %q are not valid: %s.", c.Type, err)...)
	}
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return true, append(ds, Message(diag.CodeBackendFailed, "Failed to make the store", "", err)...)
	}
	key := fmt.Sprintf("%s\x00%s\x00%x\x00%v%v", c.Type, maker.Site(), sha256.Sum256(text), b.Require, b.Keep)
	s.making.Lock() // one at a time, because two units may share parts of a store
	defer s.making.Unlock()
	if s.made[key] {
		return true, ds
	}
	b.Args = NewArgs(v, s.Services(c.Dir, c.Env).Env)
	if err = maker.Bootstrap(ctx, b); err != nil {
		return true, append(ds, Message(diag.CodeBackendFailed, "Failed to make the store", "", err)...)
	}
	if s.made == nil {
		s.made = map[string]bool{}
	}
	s.made[key] = true
	return true, ds
}

// bootstrapValue converts the arguments about creating a store to their types.
func bootstrapValue(k Kind, args cty.Value) (cty.Value, error) {
	b := &schema.Block{Attributes: Optional(k.Bootstrap)}
	all := map[string]cty.Value{}
	for name, t := range k.Bootstrap {
		all[name] = cty.NullVal(t)
	}
	if args != cty.NilVal && !args.IsNull() && args.CanIterateElements() {
		for name, v := range args.AsValueMap() {
			if _, ok := k.Bootstrap[name]; ok {
				all[name], _ = v.UnmarkDeep()
			}
		}
	}
	return b.Coerce(cty.ObjectVal(all))
}
