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

// A Bootstrapper is a Backend whose store can be made: a bucket, a table of locks.
type Bootstrapper interface {
	// Site names the store that is made, which many configurations may share.
	Site() string
	// Bootstrap makes what is missing of the store and changes what exists to what the
	// arguments say. Doing it again changes nothing.
	Bootstrap(ctx context.Context, b Bootstrapping) error
	// Versioned reports whether the store keeps what is deleted or written over.
	Versioned(ctx context.Context) (bool, error)
}

// Bootstrapping says how a store is made.
type Bootstrapping struct {
	Args    *Args             // those of Kind.Bootstrap
	Require bool              // a store that does not exist is an error and is not made
	Keep    bool              // a store that exists is left as it is
	Did     func(what string) // called with everything that was made or changed
}

// Bootstrap makes the store of a configuration, unless it was made before as the same
// arguments say. args are those of Kind.Bootstrap, NilVal for none. can is false where
// the kind has no store to be made.
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
	s.making.Lock() // one after the other: two units may share a part of what is made
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

// bootstrapValue gives the arguments about making a store their types.
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
