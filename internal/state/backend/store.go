package backend

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// A Store implements store.Store for an Object. It decodes and encodes states, encrypts them if
// required, waits for locks, and never overwrites a state that was not read.
type Store struct {
	object Object
	place  string // location of the state for messages, such as "s3://bucket/key"
	o      StoreOptions
	s      Services

	mu    sync.Mutex
	prior Prior
	sum   [sha256.Size]byte // checksum of the content that was last read or written
	lock  string            // ID of the held lock; "" means none
	// migrate means that the state that was read is not encrypted as configured.
	migrate bool
	size    int64 // size in bytes of the content that was last read or written
}

// NewStore returns the store of an object. place is the location for messages, without secrets.
func NewStore(object Object, place string, o StoreOptions, s Services) *Store {
	return &Store{object: object, place: place, o: o, s: s, prior: Prior{Unknown: true}}
}

// Object returns the object that stores the bytes.
func (s *Store) Object() Object { return s.object }

// Place returns the location of the state for messages.
func (s *Store) Place() string { return s.place }

// Migrating reports whether the next write must happen even if nothing changed, because the
// state that was read is not encrypted as configured.
func (s *Store) Migrating() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.migrate
}

// Read implements store.Store.
func (s *Store) Read(ctx context.Context) (*state.State, diag.List) { return s.read(ctx, false) }

// ReadSummary implements store.SummaryReader.
func (s *Store) ReadSummary(ctx context.Context) (*state.State, diag.List) { return s.read(ctx, true) }

func (s *Store) read(ctx context.Context, outline bool) (*state.State, diag.List) {
	if o, ok := s.object.(Streamed); ok {
		if st, done, ds := s.stream(ctx, o, outline); done {
			return st, ds
		}
	}
	answered := s.watch()
	p, err := s.object.Read(ctx)
	answered()
	if err != nil {
		return nil, s.fail(diag.CodeBackendReadFailed, "Failed to read the state", err)
	}
	seen := reading{digest: digest{Hash: sha256.New()}}
	seen.Write(p.Data)
	plain, err := s.opened(p.Data, &seen)
	if err != nil {
		return nil, s.fail(diag.CodeBackendReadFailed, "Failed to decrypt the state", err)
	}
	s.note(p.Version, &seen)
	if outline {
		if st, ok := statefile.ParseStream(bytes.NewReader(plain), true); ok {
			return st, nil
		}
	}
	return statefile.Parse(s.place, plain)
}

// opened decrypts content, if there is any.
func (s *Store) opened(content []byte, seen *reading) ([]byte, error) {
	if s.o.Sealer == nil || len(content) == 0 {
		return content, nil
	}
	r, migrate, err := s.o.Sealer.Open(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, err
	}
	seen.migrate = migrate
	return io.ReadAll(r)
}

// A reading is information about content that was read.
type reading struct {
	digest
	migrate bool // it is not encrypted as configured
}

// note records the version and the checksum of the content that was read, for a later write.
func (s *Store) note(version string, seen *reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prior, s.sum, s.size, s.migrate = Prior{Version: version, Absent: seen.n == 0}, seen.sum(), seen.n, seen.migrate
}

// stream decodes a state of the current format while it arrives. For anything else done is
// false, and the content must be read as a whole.
func (s *Store) stream(ctx context.Context, o Streamed, outline bool) (st *state.State, done bool, ds diag.List) {
	var seen reading
	var ok bool
	answered := s.watch()
	version, err := o.Fetch(ctx, func(r io.Reader) error {
		st, ok, seen = nil, false, reading{digest: digest{Hash: sha256.New()}}
		size := SizeOf(r)
		in := io.TeeReader(r, &seen)
		plain, err := s.unsealed(in, size, &seen)
		if err == nil {
			st, ok = statefile.ParseStream(plain, outline)
		}
		_, err = io.Copy(io.Discard, in)
		return err
	})
	answered()
	if err != nil {
		return nil, true, s.fail(diag.CodeBackendReadFailed, "Failed to read the state", err)
	}
	if seen.n > 0 && !ok {
		return nil, false, nil
	}
	s.note(version, &seen)
	if seen.n == 0 {
		st = nil
	}
	return st, true, nil
}

// unsealed decrypts content while it is read, if there is any.
func (s *Store) unsealed(r io.Reader, size int64, seen *reading) (plain io.Reader, err error) {
	if s.o.Sealer == nil {
		return r, nil
	}
	in := bufio.NewReader(r)
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	plain, seen.migrate, err = s.o.Sealer.Open(in, size)
	return plain, err
}

// A digest computes the checksum and the size of content while it is read.
type digest struct {
	hash.Hash
	n int64
}

func (d *digest) Write(b []byte) (int, error) {
	d.n += int64(len(b))
	return d.Hash.Write(b)
}

func (d *digest) sum() [sha256.Size]byte {
	if d.Hash == nil {
		return sha256.Sum256(nil)
	}
	return [sha256.Size]byte(d.Sum(nil))
}

// watch reports that the program waits for the store, with the location of its configuration,
// unless the returned function is called soon.
func (s *Store) watch() (answered func()) {
	return s.s.watch(func() string {
		what := "the store of the state " + s.place
		for _, m := range s.o.Located(diag.List{{Severity: diag.Error, Extra: Blame{Argument: s.s.Reached}}}) {
			if m.At != nil {
				what += fmt.Sprintf(" (%s line %d)", s.s.shown(m.At.Filename), m.At.Start.Line)
			}
		}
		return what
	})
}

// shown returns a path for messages, relative to the working directory if it is below.
func (s Services) shown(path string) string {
	if rel, err := filepath.Rel(cmp.Or(s.Start, s.Dir), path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// watch reports that the program waits for a service, unless the returned function is called
// soon.
func (s Services) watch(what func() string) (answered func()) {
	if s.Slow == nil {
		return func() {}
	}
	timer := time.AfterFunc(s.SlowAfter, func() { s.Slow(what()) })
	return func() { timer.Stop() }
}

// Watch reports that the program waits for the service of a backend, unless the returned
// function is called soon. It is for requests that do not concern one state.
func Watch(b Backend, o StoreOptions) (answered func()) {
	if st, err := b.Store(store.Default, o); err == nil { // sends no request
		if s, ok := st.(*Store); ok {
			return s.watch()
		}
	}
	return func() {}
}

// Write implements store.Store.
func (s *Store) Write(ctx context.Context, st *state.State) diag.List {
	const summary = "Failed to write the state"
	write := func(w io.Writer) error { return statefile.Write(w, st, false) }
	if s.o.Sealer != nil {
		sealed, err := s.o.Sealer.Seal(sealing.Plaintext{Write: write, Serial: st.Serial, Lineage: st.Lineage})
		if err != nil {
			return s.fail(diag.CodeBackendWriteFailed, "Failed to encrypt the state", err)
		}
		write = sealed
	}
	text, err := Encoded(write)
	if err != nil {
		return s.fail(diag.CodeBackendWriteFailed, summary, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prior.Version == "" && !s.prior.Unknown { // the store cannot compare
		sum, err := s.present(ctx)
		if err != nil {
			return s.fail(diag.CodeBackendWriteFailed, summary, err)
		}
		if sum != s.sum {
			return s.fail(diag.CodeBackendWriteFailed, summary, ErrChanged)
		}
	}
	defer s.watch()()
	version, err := s.send(ctx, text)
	if err == nil || version != "" {
		s.prior, s.sum, s.size, s.migrate = Prior{Version: version}, text.SHA256(), text.Size(), false
	}
	if err != nil {
		return s.fail(diag.CodeBackendWriteFailed, summary, err)
	}
	return nil
}

// present returns the checksum of the current content of the store.
func (s *Store) present(ctx context.Context) (sum [sha256.Size]byte, err error) {
	o, ok := s.object.(Streamed)
	if !ok {
		p, err := s.object.Read(ctx)
		return sha256.Sum256(p.Data), err
	}
	h := sha256.New()
	_, err = o.Fetch(ctx, Hash(h))
	return [sha256.Size]byte(h.Sum(nil)), err
}

// send writes a text.
func (s *Store) send(ctx context.Context, t *Text) (version string, err error) {
	if o, ok := s.object.(Streamed); ok {
		return o.Send(ctx, t, s.prior, s.lock)
	}
	data, err := t.Bytes()
	if err != nil {
		return "", err
	}
	return s.object.Write(ctx, data, s.prior, s.lock)
}

// Prepare implements store.Preparer. It checks before an apply whether the store has a size
// limit that would be exceeded. growth is an estimate of the bytes that are added to the state;
// a quarter of it counts as certain.
func (s *Store) Prepare(_ context.Context, _, growth int64) diag.List {
	l, ok := s.object.(Limited)
	if !ok {
		return nil
	}
	most, advice := l.Limit(s.o.Sealer != nil)
	s.mu.Lock()
	have := s.size
	s.mu.Unlock()
	if s.o.Sealer != nil {
		growth += growth / 3 // sealed text is encoded in base64
	}
	switch {
	case most <= 0 || growth == 0 && have <= most: // no written state is larger than the current one
		return nil
	case growth > 0 && have+growth/4 > most:
		return s.o.Located(diag.Errorf(diag.CodeBackendTooLarge, nil, "State too large for its store", "The state takes %d bytes now and is going to take more, and %s can hold %d at most. Nothing was changed. %s", have, s.place, most, advice))
	case have+growth > most:
		return s.o.Located(diag.Warnf(diag.CodeBackendNearlyFull, nil, "State may become too large for its store", "The state takes %d bytes now, and %s can hold %d at most. If it gets larger than that, it is saved to errored.tfstate in its place. %s", have, s.place, most, advice))
	}
	return nil
}

// Lock implements store.Store.
func (s *Store) Lock(ctx context.Context, info store.LockInfo, timeout time.Duration) (func() diag.List, diag.List) {
	if info.ID == "" {
		info.ID = store.NewID()
	}
	if info.Created.IsZero() {
		info.Created = s.s.Now().UTC()
	}
	if info.Who == "" {
		info.Who = s.s.Who
	}
	if info.Version == "" {
		info.Version = s.s.Version
	}
	end, said := s.s.Now().Add(timeout), false
	for pause, again := time.Second, 0; ; {
		answered := s.watch()
		id, err := s.object.Lock(store.Awaited(ctx), info)
		answered()
		var locked *LockedError
		switch {
		case err == nil && ctx.Err() != nil: // the lock would never be released
			ds := s.unlock(context.WithoutCancel(ctx), id)
			if !ds.HasErrors() {
				ds = s.fail(diag.CodeBackendLockFailed, "Error acquiring the state lock", &Error{Answer: "The run was interrupted when it had just got the lock, which was released again"})
			}
			return nil, ds
		case err == nil:
			s.mu.Lock()
			s.lock = id
			s.mu.Unlock()
			var once sync.Once
			var ds diag.List
			return func() diag.List {
				once.Do(func() { ds = s.unlock(context.WithoutCancel(ctx), id) })
				return ds
			}, nil
		case errors.Is(err, ErrNoLocks):
			return func() diag.List { return nil }, nil
		case !errors.As(err, &locked):
			ds := s.fail(diag.CodeBackendLockFailed, "Error acquiring the state lock", err)
			if errors.Is(err, store.ErrUnanswered) {
				ds[0].Detail += fmt.Sprintf("\n\nThe lock may have been taken all the same. If the next run finds the state locked by this one, release the lock with \"force-unlock\" and the ID that it tells (%s in most stores).", info.ID)
			}
			return nil, ds
		case ctx.Err() != nil:
			return nil, s.locked(locked)
		case locked.Again && again < 10:
			again++
			continue
		}
		pause = min(pause, end.Sub(s.s.Now())) // the last attempt is at the end of the timeout
		if pause <= 0 {
			return nil, s.locked(locked)
		}
		if s.o.Waiting != nil && !said {
			said = true
			s.o.Waiting(locked.Holder)
		}
		if err := s.s.Sleep(ctx, pause); err != nil {
			return nil, s.locked(locked)
		}
		pause = min(2*pause, 16*time.Second)
	}
}

// locked returns the message that another process holds the lock.
func (s *Store) locked(e *LockedError) diag.List {
	ds := store.Locked(s.place+": "+e.Error(), e.Holder)
	if e.Holder != nil && e.Holder.ID != "" {
		ds[0].Detail += fmt.Sprintf(" Only if that run is gone and left its lock, release it with \"force-unlock %s\": a run that still works on the state would be written over.", e.Holder.ID)
		if run, ok := e.Holder.Run(); ok && s.o.Unit != "" {
			ds[0].Detail += fmt.Sprintf(" All locks of that run are released with \"run --all force-unlock %s\".", run.ID)
		}
	}
	return s.o.Located(ds)
}

func (s *Store) unlock(ctx context.Context, id string) diag.List {
	s.mu.Lock()
	s.lock = ""
	s.mu.Unlock()
	defer s.watch()()
	if err := s.object.Unlock(ctx, id); err != nil {
		if e, ok := errors.AsType[*Error](err); ok && errors.Is(err, errNotOurs) {
			lost := *e
			lost.Advice = "Somebody released it while this run was at work, and may have changed the state meanwhile."
			return s.fail(diag.CodeBackendLockFailed, "Error releasing the state lock", &lost)
		}
		ds := s.fail(diag.CodeBackendLockFailed, "Error releasing the state lock", err)
		ds[0].Detail += fmt.Sprintf("\n\nThe lock may still be held. Once no run works on this state any more, release it with \"force-unlock %s\".", id)
		return ds
	}
	return nil
}

// ForceUnlock implements store.Unlocker.
func (s *Store) ForceUnlock(ctx context.Context, id string) diag.List {
	if err := s.object.Unlock(ctx, id); err != nil {
		return s.fail(diag.CodeBackendLockFailed, "Failed to unlock state", err)
	}
	return nil
}

// fail returns the message for an error.
func (s *Store) fail(code, summary string, err error) diag.List {
	return s.o.Located(Message(code, summary, s.place, err))
}

// GivenElsewhere returns a sentence for messages about an argument that is not in the block, or
// has another value there. how comes from Config.Elsewhere.
func GivenElsewhere(argument, how string) string {
	return fmt.Sprintf(" The argument %q was given to init %s.", argument, how)
}

// A Blame is the Extra of a message about one argument of a backend's block.
type Blame struct {
	Argument   string
	Permission string // see Error.Permission
}

// Message returns the message for an error of a kind. code and summary are those of the failed
// operation; the code and summary of an Error override them. place is the location of the
// state; "" if it is not known yet.
func Message(code, summary, place string, err error) diag.List {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Answer: diag.Reason(err)}
	}
	if errors.Is(err, context.Canceled) {
		given := *e
		given.Answer, given.Advice = "The request was given up, since the run was interrupted", ""
		e = &given
	}
	m := &diag.Message{Code: cmp.Or(e.Code, code), Severity: diag.Error, Summary: cmp.Or(e.Summary, summary)}
	answer := e.Answer
	switch {
	case errors.Is(err, ErrChanged):
		m.Code = diag.CodeBackendChanged
		answer = "The state in the store is not the one that this run read: somebody else has written it in the meantime. It was left as it is"
	case errors.Is(err, ErrLockLost):
		m.Code = diag.CodeBackendLockLost
		answer = "The lock of this run is not held any more, so somebody else may be at work. Nothing was written"
	}
	m.Detail = strings.TrimRight(answer, ".") + "."
	if place != "" {
		m.Detail = place + ": " + m.Detail
	}
	if e.Advice != "" {
		m.Detail += " " + e.Advice
	}
	m.At = store.PlaceOf(err)
	if e.Argument != "" || e.Permission != "" {
		m.Extra = Blame{e.Argument, e.Permission}
	}
	return diag.List{m}
}
