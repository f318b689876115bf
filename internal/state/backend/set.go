package backend

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// A Set opens backends by the names of their kinds. A configuration that many units share is
// opened once. It is safe for concurrent use.
type Set struct {
	kinds    map[string]Kind
	unknown  func(name string) diag.List
	services Services

	opened parallel.Cache[string, opening]

	making sync.Mutex
	made   map[string]bool // stores that Bootstrap has created
}

// An opening is the cached result of opening a configuration.
type opening struct {
	backend Backend
	ds      diag.List
}

// NewSet returns a Set of kinds. unknown returns the message for an unknown name.
func NewSet(kinds []Kind, unknown func(name string) diag.List, s Services) *Set {
	set := &Set{kinds: make(map[string]Kind, len(kinds)), unknown: unknown, services: s}
	for _, k := range kinds {
		set.kinds[k.Name] = k
	}
	return set
}

// Kind returns the kind with a name.
func (s *Set) Kind(name string) (Kind, diag.List) {
	if k, ok := s.kinds[name]; ok {
		return k, nil
	}
	return Kind{}, s.unknown(name)
}

// InFolder returns the configuration of states in a directory without any other configuration.
func (s *Set) InFolder(dir string) Config {
	for _, k := range s.kinds {
		if k.InFolder != nil {
			return Config{Type: k.Name, Value: k.InFolder(dir), Dir: dir}
		}
	}
	return Config{}
}

// Place returns a text that is equal for configurations with the same states; "" if it is not
// known.
func (s *Set) Place(c Config) string {
	k, ds := s.Kind(c.Type)
	if ds.HasErrors() {
		return ""
	}
	if k.Place != nil {
		if p := k.Place(c.Value, c.Dir); p != "" {
			return p
		}
		return ""
	}
	text, err := ctyjson.Marshal(c.Value, c.Value.Type())
	if err != nil {
		return ""
	}
	return c.Type + string(text)
}

// Strip removes the arguments about creating a store from a remote_state's configuration, since
// they do not belong to the backend.
func (s *Set) Strip(kind string, v cty.Value) cty.Value {
	k, ok := s.kinds[kind]
	if !ok || v == cty.NilVal || v.IsNull() || !v.IsKnown() || !v.CanIterateElements() || len(k.Bootstrap) == 0 {
		return v
	}
	v, marks := v.Unmark()
	all := v.AsValueMap()
	for name := range k.Bootstrap {
		if k.Schema.Attributes[name] == nil {
			delete(all, name)
		}
	}
	return cty.ObjectVal(all).WithMarks(marks)
}

// A Config is the location of states: a kind, and a configuration for Kind.Open.
type Config struct {
	Type  string
	Value cty.Value
	// Dir is the base of relative paths; "" means that of the services.
	Dir string
	// Env is the complete environment; nil means that of the services.
	Env sys.Env
	// Elsewhere describes, for each argument whose value differs from that in the block, how
	// init received it, for example "with -backend-config".
	Elsewhere map[string]string
	// Renew is Services.Renew.
	Renew func(ctx context.Context) (sys.Env, time.Time, error)
}

// Services returns the effects for a directory and an environment. "" and nil mean those of the
// set.
func (s *Set) Services(dir string, env sys.Env) Services {
	out := s.services
	if dir != "" {
		out.Dir = dir
	}
	if env != nil {
		out.Env = env
	}
	return out
}

// Open opens a configuration. After a failure, the next call tries again.
func (s *Set) Open(ctx context.Context, c Config) (Backend, diag.List) {
	k, ds := s.Kind(c.Type)
	if ds.HasErrors() {
		return nil, ds
	}
	services := s.Services(c.Dir, c.Env)
	if services.Unusable != nil {
		return nil, Message(diag.CodeBackendFailed, "Failed to open the backend", "", services.Unusable)
	}
	services.Renew = c.Renew
	for _, name := range k.Reached {
		if services.Reached == "" && c.Value.Type().HasAttribute(name) && !c.Value.GetAttr(name).IsNull() {
			services.Reached = name
		}
	}
	text, err := ctyjson.Marshal(c.Value, c.Value.Type())
	if err != nil {
		return nil, Message(diag.CodeBackendFailed, "Failed to open the backend", "", err)
	}
	env := sha256.New()
	for _, pair := range c.Env {
		fmt.Fprintf(env, "%s\x00", pair)
	}
	key := fmt.Sprintf("%s\x00%s\x00%x\x00%s", c.Type, services.Dir, env.Sum(nil), text)
	o, err := s.opened.Do(ctx, key, func() (opening, bool) {
		b, ds := open(ctx, k, c.Value, services)
		return opening{b, ds}, !ds.HasErrors()
	})
	if err != nil {
		return nil, Message(diag.CodeBackendFailed, "Failed to open the backend", "", err)
	}
	return o.backend, o.ds
}

func open(ctx context.Context, k Kind, cfg cty.Value, s Services) (Backend, diag.List) {
	answered := s.watch(func() string { return fmt.Sprintf("what the backend %q needs to be opened", k.Name) })
	b, err := k.Open(ctx, cfg, s)
	answered()
	if err == nil {
		return b, nil
	}
	var ds diag.List
	for _, err := range parts(err) {
		ds = append(ds, Message(diag.CodeBackendFailed, fmt.Sprintf("Failed to configure the backend %q", k.Name), "", err)...)
	}
	return nil, ds
}

// parts returns the errors that were joined.
func parts(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, one := range joined.Unwrap() {
			out = append(out, parts(one)...)
		}
		return out
	}
	return []error{err}
}
