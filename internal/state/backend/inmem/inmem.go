// Package inmem is the backend "inmem": state in the memory of the process, for tests.
//
// The one rule: the states are in Services.Shared, so that all configurations of a process
// share them.
package inmem

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

// Kind returns the backend "inmem".
func Kind() backend.Kind {
	return backend.Kind{
		Name:   "inmem",
		Schema: &schema.Block{Attributes: map[string]*schema.Attribute{"lock_id": {Type: cty.String, Optional: true}}},
		Open:   open,
	}
}

func open(_ context.Context, cfg cty.Value, s backend.Services) (backend.Backend, error) {
	m := s.Shared.Get("inmem", func() any { return &memory{objects: map[string]*content{}} }).(*memory)
	if v := cfg.GetAttr("lock_id"); !v.IsNull() {
		m.mu.Lock()
		defer m.mu.Unlock()
		c := m.object(store.Default)
		c.lock = &store.LockInfo{ID: v.AsString(), Operation: "test", Info: "test config"}
	}
	return &memoryBackend{m: m, s: s}, nil
}

// A memory contains the states by workspace.
type memory struct {
	mu      sync.Mutex
	objects map[string]*content
}

// A content is the data of one workspace.
type content struct {
	data    []byte
	version int
	lock    *store.LockInfo
	blobs   map[string][]byte
}

// object returns the content of a workspace. The caller holds mu.
func (m *memory) object(workspace string) *content {
	c := m.objects[workspace]
	if c == nil {
		c = &content{blobs: map[string][]byte{}}
		m.objects[workspace] = c
	}
	return c
}

type memoryBackend struct {
	m *memory
	s backend.Services
}

func (b *memoryBackend) List(context.Context) ([]string, error) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	names := []string{store.Default}
	for name, c := range b.m.objects {
		if name != store.Default && c.version > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names[1:])
	return names, nil
}

func (b *memoryBackend) Delete(_ context.Context, workspace string) error {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	if c := b.m.objects[workspace]; c != nil {
		c.data, c.version = nil, 0
	}
	return nil
}

func (b *memoryBackend) Store(workspace string, o backend.StoreOptions) (store.Store, error) {
	if workspace == "" {
		workspace = store.Default
	}
	return backend.NewStore(&object{m: b.m, name: workspace}, "inmem:"+workspace, o, b.s), nil
}

// An object is the state of one workspace.
type object struct {
	m    *memory
	name string
}

func version(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func (o *object) Read(ctx context.Context) (backend.Payload, error) {
	if err := ctx.Err(); err != nil {
		return backend.Payload{}, err
	}
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	c := o.m.object(o.name)
	return backend.Payload{Data: slices.Clone(c.data), Version: version(c.version)}, nil
}

func (o *object) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	c := o.m.object(o.name)
	switch {
	case lock != "" && (c.lock == nil || c.lock.ID != lock):
		return "", backend.ErrLockLost
	case prior.Unknown:
	case prior.Absent && len(c.data) > 0, !prior.Absent && prior.Version != version(c.version):
		return "", backend.ErrChanged
	}
	c.data = slices.Clone(data)
	c.version++
	return version(c.version), nil
}

func (o *object) Lock(_ context.Context, info store.LockInfo) (string, error) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	c := o.m.object(o.name)
	if c.lock != nil {
		holder := *c.lock
		return "", &backend.LockedError{Holder: &holder}
	}
	c.lock = &info
	return info.ID, nil
}

func (o *object) Unlock(_ context.Context, id string) error {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	c := o.m.object(o.name)
	switch {
	case c.lock == nil:
		return backend.NotHeld(id)
	case c.lock.ID != id:
		return backend.WrongID(id, c.lock.ID)
	}
	c.lock = nil
	return nil
}

func (o *object) PutBlob(_ context.Context, name string, data []byte) error {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	o.m.object(o.name).blobs[name] = slices.Clone(data)
	return nil
}

func (o *object) GetBlob(_ context.Context, name string) ([]byte, error) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	b, ok := o.m.object(o.name).blobs[name]
	if !ok {
		return nil, backend.ErrNoBlob
	}
	return slices.Clone(b), nil
}

func (o *object) ListBlobs(_ context.Context, prefix string) ([]string, error) {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	var names []string
	for name := range o.m.object(o.name).blobs {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

func (o *object) DeleteBlob(_ context.Context, name string) error {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	delete(o.m.object(o.name).blobs, name)
	return nil
}
