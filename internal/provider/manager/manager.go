// Package manager runs the provider processes of engines. It starts a process when it is
// first needed, configures it, shares it between engines with an equal configuration, and
// stops it when no unit can need it any more.
//
// Main types: Host and Pool. The one rule: the users of a Pool never close its providers;
// Close of the Pool does.
//
// # Sharing
//
// A Host owns the processes. A Pool contains the providers of one engine. Two pools share a
// configured process only if the program, the configuration, the environment without the variables
// that providers do not read, and the working directory are equal. A provider that works the same
// in any directory is started in the host's own directory, so that the result does not depend on
// which unit comes first. A provider whose use of its directory is UsesNamedPaths is started in an
// empty directory. The first request of a pool that can name a path in a unit's directory gives the pool a process of its own,
// in its own directory. Keys contain the complete texts, not hashes, so that two
// different environments never have the same key.
//
// Schemas are read once per program, without a process if the schema of the package is kept.
// Configurations can be validated by any process of the program, because neither uses credentials.
// Upgrades of state and calls of functions without a configuration use a process that no other
// pool has configured.
//
// # The end of a process
//
// If a process ends unexpectedly, the running calls fail. The pool that made them keeps the
// ended process, so that a unit that crashes its provider fails as it would without other units.
// Every other pool gets a new process at its next call.
//
// The host asks a process to stop when all pools that use it are stopping. No other pool gets
// that process afterwards.
//
// Otherwise an unused process is kept while units that may need it are still expected: a
// few of them, the most recently used first, and more if they are small. A unit that needs
// a process that has ended starts a new one. A configured process that depends on the
// directory of its unit ends with the unit.
package manager

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/parallel"
	"github.com/terrace-iac/terrace/provider"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// A Source returns factories of providers. The providers are not shared between pools,
// unless the source is also a Sharer.
type Source interface {
	Factory(addr.Provider) (provider.Factory, diag.List)
}

// A Sharer is a source of providers whose processes can be shared between engines. A
// Program is one of them.
type (
	Sharer  = provider.ProgramSource
	Program = provider.Program
)

// Options configures a Host. The zero value is valid.
type Options struct {
	// Dir is the working directory of providers that do not depend on it.
	Dir string
	// Empty is the working directory of shared processes whose requests are searched for paths. It
	// is empty, so that no name in a request is a path there. It is created for the first such
	// process. "" means that such providers are not shared.
	Empty string
	// Sharing describes the providers. nil means that none works the same in any directory, that
	// units may need any provider, and that calls are not limited by configuration.
	Sharing Sharing
	// Calls is the maximum number of concurrent provider calls over all pools, which take turns.
	// 0 means no limit.
	Calls int
	// CountPerEngine applies the limit of Sharing.CallsOf to each pool separately. The caller then
	// counts the other users of a configuration itself.
	CountPerEngine bool
}

// Sharing describes how engines share the processes of providers. Its methods may be called
// concurrently, and must not call the Host.
type Sharing interface {
	// Directory returns how a provider uses its working directory.
	Directory(a addr.Provider) DirectoryUse
	// Separated is called when a unit gets a process of its own, because an argument can name a
	// path in the unit's directory.
	Separated(unit string, a addr.Provider, argument string)
	// Needed reports whether units that have not started yet may need a provider. If so, the host
	// keeps its processes running.
	Needed(a addr.Provider) bool
	// CallsOf returns the maximum number of concurrent calls of a provider with one
	// configuration. 0 means no limit.
	CallsOf(a addr.Provider) int
}

// A DirectoryUse describes how a provider uses its working directory.
type DirectoryUse uint8

// The uses of a working directory.
const (
	// UsesDirectory means that the provider may read, write or run anything there. Each unit has
	// its own process.
	UsesDirectory DirectoryUse = iota
	// UsesNamedPaths means that the provider opens only relative paths that requests contain.
	UsesNamedPaths
	// IgnoresDirectory means that the provider works the same in any directory.
	IgnoresDirectory
)

// A Host owns the provider processes of several engines. Its methods may be called concurrently.
type Host struct {
	o     Options
	turns *parallel.Turns
	alone bool // the host has one pool and shares nothing

	mu      sync.Mutex
	envs    map[string]int // numbers the environments seen so far
	procs   map[key][]*process
	paths   map[string][]*process // by program
	idle    []*process            // unused processes, the most recently used last
	expect  int                   // number of units that are not done
	closed  bool
	schemas schemaCache
	limits  map[addr.Provider][]*limited
}

// limited is a configuration with a maximum number of concurrent calls.
type limited struct {
	config cty.Value
	pool   *Pool // nil means all pools
	turns  *parallel.Turns
}

// limit returns the limiter for the calls of a provider with a configuration, or nil if
// there is no limit.
func (h *Host) limit(a addr.Provider, config cty.Value, pool *Pool) *parallel.Turns {
	if h.o.Sharing == nil || config == cty.NilVal {
		return nil
	}
	n := h.o.Sharing.CallsOf(a)
	if n < 1 {
		return nil
	}
	if !h.o.CountPerEngine {
		pool = nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.limits[a] {
		if l.pool == pool && l.config.RawEquals(config) {
			return l.turns
		}
	}
	l := &limited{config: config, pool: pool, turns: parallel.NewTurns(n)}
	if h.limits == nil {
		h.limits = map[addr.Provider][]*limited{}
	}
	h.limits[a] = append(h.limits[a], l)
	return l.turns
}

// A key identifies processes that can be shared if their configurations are equal.
type key struct {
	path  string
	env   int
	dir   string
	owner *Pool // the pool of an unshared process
}

// Limits for keeping unused processes: their number, or their total memory.
const (
	keptIdle   = 8
	idleMemory = 1 << 30
)

// NewHost returns a host without processes.
func NewHost(o Options) *Host {
	return &Host{
		o: o, turns: parallel.NewTurns(o.Calls), envs: map[string]int{}, procs: map[key][]*process{},
		paths: map[string][]*process{},
	}
}

// Expect announces units that may need providers. Done must be called for each of them.
func (h *Host) Expect(units int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.expect += units
}

// Done reports that an expected unit is done. Unused processes that no expected unit can
// need end.
func (h *Host) Done() {
	h.mu.Lock()
	h.expect--
	var end []*process
	for _, p := range slices.Clone(h.idle) {
		if !h.wanted(p) {
			h.drop(p)
			end = append(end, p)
		}
	}
	h.mu.Unlock()
	closeAll(end)
}

// wanted reports whether an unused process is kept. The caller holds the lock.
func (h *Host) wanted(p *process) bool {
	others := p.config == cty.NilVal || p.outside || h.use(p.addr) != UsesDirectory // units in other directories can use it
	return others && p.key.owner == nil && h.expect > 0 && (h.o.Sharing == nil || h.o.Sharing.Needed(p.addr))
}

// Close ends every process. It is idempotent.
func (h *Host) Close() {
	h.mu.Lock()
	h.closed = true
	var end []*process
	for _, list := range h.procs {
		end = append(end, list...)
	}
	for _, p := range end {
		h.drop(p)
	}
	h.idle = nil
	h.mu.Unlock()
	closeAll(end)
}

func closeAll(list []*process) {
	parallel.Each(len(list), len(list), func(i int) { list[i].close() })
}

// keyOf returns the key of a program for a pool.
func (h *Host) keyOf(owner *Pool, a addr.Provider, prog *Program) key {
	if prog.Path == "" || h.alone {
		return key{path: a.String(), owner: owner}
	}
	if prog.Outside {
		return key{path: prog.Path}
	}
	env := prog.Env
	switch h.use(a) {
	case IgnoresDirectory:
		prog.Dir, env = h.o.Dir, environOf(env)
	case UsesNamedPaths:
		if os.MkdirAll(h.o.Empty, 0o700) == nil { // otherwise the process is not shared
			prog.Dir, env = h.o.Empty, environOf(env)
		}
	}
	text := strings.Join(env, "\x00")
	h.mu.Lock()
	defer h.mu.Unlock()
	n, ok := h.envs[text]
	if !ok {
		n = len(h.envs)
		h.envs[text] = n
	}
	return key{path: prog.Path, env: n, dir: prog.Dir}
}

// use returns how a provider uses its working directory.
func (h *Host) use(a addr.Provider) DirectoryUse {
	if h.o.Dir == "" || h.o.Sharing == nil {
		return UsesDirectory
	}
	use := h.o.Sharing.Directory(a)
	if use == UsesNamedPaths && h.o.Empty == "" {
		return UsesDirectory
	}
	return use
}

// find returns a process for a pool, and adds the pool to its users. start reports whether
// the caller must start the process. config is NilVal for a process without a
// configuration.
func (h *Host) find(prog *program, config cty.Value, pool *Pool) (p *process, start bool, ds diag.List) {
	k := prog.key
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || pool.closed {
		return nil, false, stopped(k.path)
	}
	for _, have := range slices.Clone(h.procs[k]) {
		switch {
		case have.ended():
			h.drop(have)
		case p == nil && have.fits(config):
			p = have
		}
	}
	if p == nil && config != cty.NilVal {
		p = h.promote(k, pool)
	}
	if p == nil {
		p, start = h.add(prog), true
	}
	p.config = config
	p.users[pool], pool.used[p] = true, true
	h.awake(p)
	return p, start, nil
}

// add returns a new process that must be started. The pool of an unshared process is its
// user from the beginning.
func (h *Host) add(prog *program) *process {
	p, k := newProcess(prog), prog.key
	h.procs[k] = append(h.procs[k], p)
	h.paths[k.path] = append(h.paths[k.path], p)
	if k.owner != nil {
		p.users[k.owner], k.owner.used[p] = true, true
	}
	return p
}

// fits reports whether a process has this configuration. NilVal fits only a process without
// a configuration.
func (p *process) fits(config cty.Value) bool {
	if p.config == cty.NilVal || config == cty.NilVal {
		return p.config == config
	}
	return p.config.RawEquals(config)
}

// promote returns a process without a configuration that no other pool uses, or nil.
func (h *Host) promote(k key, pool *Pool) *process {
	for _, have := range h.procs[k] {
		if have.config == cty.NilVal && (len(have.users) == 0 || len(have.users) == 1 && have.users[pool]) {
			return have
		}
	}
	return nil
}

// visit returns any process of a program, for calls that need no configuration. The caller
// must call left afterwards.
func (h *Host) visit(prog *program, pool *Pool) (p *process, start bool, ds diag.List) {
	k := prog.key
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || pool.closed {
		return nil, false, stopped(k.path)
	}
	for _, have := range slices.Clone(h.paths[k.path]) {
		switch {
		case have.ended():
			h.drop(have)
		case p == nil && have.key.owner == k.owner:
			p = have
		}
	}
	if p == nil {
		p, start = h.add(prog), true
	}
	p.visits++
	h.awake(p)
	return p, start, nil
}

func stopped(name string) diag.List {
	return diag.Errorf(diag.CodeProviderCall, nil, "Provider stopped", "The provider %s was needed after everything was stopped.", name)
}

func (h *Host) awake(p *process) {
	h.idle = slices.DeleteFunc(h.idle, func(x *process) bool { return x == p })
}

// drop ensures that no pool gets a process any more. The caller holds the lock.
func (h *Host) drop(p *process) {
	if p.out {
		return
	}
	p.out = true
	h.awake(p)
	without := func(list []*process) []*process {
		return slices.DeleteFunc(list, func(x *process) bool { return x == p })
	}
	if h.procs[p.key] = without(h.procs[p.key]); len(h.procs[p.key]) == 0 {
		delete(h.procs, p.key)
	}
	if h.paths[p.key.path] = without(h.paths[p.key.path]); len(h.paths[p.key.path]) == 0 {
		delete(h.paths, p.key.path)
	}
}

// discard ensures that no pool gets an unusable process any more.
func (h *Host) discard(p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(p)
}

// left removes a user (nil: a visitor) from a process, and ends processes that are not
// needed any more.
func (h *Host) left(p *process, pool *Pool) {
	h.mu.Lock()
	if pool == nil {
		p.visits--
	} else {
		delete(p.users, pool)
		delete(pool.used, p)
	}
	var end []*process
	switch {
	case len(p.users) > 0 || p.visits > 0:
	case p.out:
		end = append(end, p)
	case !h.wanted(p):
		h.drop(p)
		end = append(end, p)
	default:
		h.awake(p)
		h.idle = append(h.idle, p)
		p.held = p.memory()
		end = append(end, h.crowd()...)
	}
	stop := p.mayStop(h)
	h.mu.Unlock()
	if stop {
		_ = p.provider().Stop(context.Background())
	}
	closeAll(end)
}

// crowd drops idle processes above the limits, the least recently used first. The caller
// holds the lock, and ends the processes that it returns.
func (h *Host) crowd() (end []*process) {
	var sum int64
	for _, p := range h.idle {
		sum += p.held
	}
	for len(h.idle) > keptIdle && sum > idleMemory {
		p := h.idle[0]
		sum -= p.held
		h.drop(p)
		end = append(end, p)
	}
	return end
}

// A schemaCache caches schemas by program.
type schemaCache = parallel.Cache[string, schemaAnswer]

// A schemaAnswer is the result of a schema request. Messages are not cached with it: the
// first caller gets them.
type schemaAnswer struct {
	schema *schema.Provider
	ds     diag.List
}
