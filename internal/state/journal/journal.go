// Package journal remembers what an apply does while it does it, so that a run
// that is killed loses nothing that a provider answered.
//
// Main types: Journal, which a run writes, and Recovered, which the next
// command reads and folds into the state. The one rule: Begin before a call
// that changes something, Answer before its result is used; both are in the
// file when they return, which a killed process cannot undo. On disk they are
// at most SyncDelay later, and at once after Sync; one sync serves all that was
// noted until it begins.
//
// A journal is a file beside the state, for its owner alone, and bound to the user that
// wrote it and to its path (user.go). It holds records
// with a checksum each. What a crash left torn at the end is not read; bytes
// elsewhere that are no record are stepped over, reported, and kept. How a record
// looks stands in record.go, how a journal is read in parse.go.
package journal

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sealing"
	"github.com/terrace-iac/terrace/state"
	"github.com/terrace-iac/terrace/state/statefile"
)

// SyncDelay is how long a record may stay in the memory of the system only.
const SyncDelay = 100 * time.Millisecond

// A Header names the state that a journal continues: that of the store when
// the run began, "" and 0 if there was none.
type Header struct {
	Lineage string
	Serial  uint64
}

// HeaderOf is the header for a run that begins with a state; nil is none.
func HeaderOf(s *state.State) Header {
	if s == nil {
		return Header{}
	}
	return Header{Lineage: s.Lineage, Serial: s.Serial}
}

// A Mirror keeps what is written to a journal in a second place. Its methods are called
// one at a time.
type Mirror interface {
	// Append returns once bytes that follow those before them are safe there.
	Append(b []byte) error
	// Discard removes everything: the state that was written holds it.
	Discard() error
}

// A Journal is open for writing. Its methods may be called concurrently.
type Journal struct {
	path   string
	sealer sealing.Sealer
	codes  *binding // nil: the journal is bound to nobody
	tail   *tail

	mirror Mirror // nil for none

	mu     sync.Mutex
	f      *os.File // nil after Close
	size   int64    // what is wholly written
	number uint32   // of the last record
	safe   int64    // what is on disk; 0: not even the name
	broken error    // a record could not be written and not be taken back
	plain  []byte   // scratch
	out    []byte
	unsent []byte // what the mirror has not got yet
	busy   bool   // a sync is under way

	syncing    chan struct{} // one place, taken by who syncs or closes, before mu
	background sync.WaitGroup
	timer      *time.Timer // of the next sync in the background; nil if none is due
	failed     error       // of a sync
}

// ErrExists says that there is a journal already, which must be recovered first.
var ErrExists = errors.New("there is a journal of another run")

// Options say what a journal begins with. The zero value is one of a run without a
// state, of which nothing is known.
type Options struct {
	Header
	Run     Run
	Sealer  sealing.Sealer // nil: nothing is sealed
	Mirror  Mirror         // nil: the file is all there is
	User    User           // who the journal is bound to
	Store   string         // names the place of the state, for the copy in the Mirror
	Answers int            // how many are expected, about: fewer take less memory, and more cost time alone; 0: many
}

// Create starts a journal. The file must not exist: the error is ErrExists then.
func Create(path string, o Options) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, ErrExists
	}
	if err != nil {
		return nil, err
	}
	if err := lock(f); errors.Is(err, errBusy) || !stillAt(f, path) { // another run took it for one that was left
		f.Close()
		return nil, ErrExists
	}
	// A tail may have been left by who was killed while removing an earlier journal.
	// As long as there is no header, nobody reads it.
	if err := removeTail(tailPath(path)); err != nil {
		os.Remove(path)
		f.Close()
		return nil, err
	}
	places := tailPlaces
	if o.Answers > 0 {
		places = min(o.Answers, tailPlaces)
	}
	codes, nonce := o.User.bindNew(path)
	j := &Journal{syncing: make(chan struct{}, 1), path: path, sealer: o.Sealer, codes: codes, mirror: o.Mirror, f: f, tail: newTail(tailPath(path), places)}
	if err := j.start(start{o.Header, o.Run, o.Store, nonce}); err != nil {
		os.Remove(path)
		f.Close()
		return nil, err
	}
	return j, nil
}

func (j *Journal) start(h start) error {
	m := magic
	if j.sealer != nil {
		m = sealedMagic
	}
	n, err := j.f.WriteString(m)
	if err != nil {
		return err
	}
	j.size = int64(n)
	if j.mirror != nil {
		j.unsent = append(j.unsent, m...)
	}
	if err := j.twice(kindHeader, h); err != nil || j.mirror == nil {
		return err
	}
	return j.Sync() // so that a second place that does not work is found before anything is done
}

// Begin notes that an action is about to be asked for. id tells the actions of
// one run apart. With a Mirror it is there when Begin returns: who finds the journal on
// another machine then knows at least what may have happened.
func (j *Journal) Begin(id int, address, action string) error {
	err := j.append(kindBegin, func(b []byte) ([]byte, error) {
		return appendJSON(b, Intent{ID: id, Address: address, Action: action})
	})
	if err != nil || j.mirror == nil {
		return err
	}
	return j.Sync()
}

// Answer notes what an action that was begun brought about; without changes,
// that it brought about nothing. It may be called for an id that was not begun,
// for changes that no provider was asked for, such as moves.
func (j *Journal) Answer(id int, changes []state.Change) error {
	body, err := appendAnswer([]byte{byte(kindAnswer)}, id, changes)
	if err != nil {
		return err
	}
	if done, err := j.answerAtOnce(body); done {
		return err
	}
	return j.answerByTail(body)
}

// answerAtOnce writes an answer if nothing can keep it waiting: no sync is under
// way, and none begins before it is written.
func (j *Journal) answerAtOnce(body []byte) (bool, error) {
	if !j.mu.TryLock() {
		return false, nil
	}
	defer j.mu.Unlock()
	if j.busy {
		return false, nil
	}
	return true, j.write(kindAnswer, func(b []byte) ([]byte, error) { return append(b, body[1:]...), nil })
}

// answerByTail puts an answer where nothing waits, and then into the journal.
func (j *Journal) answerByTail(body []byte) error {
	record, err := body, error(nil)
	if j.sealer != nil {
		if record, err = sealing.Append(j.sealer, nil, body); err != nil {
			return err
		}
	}
	if j.codes != nil {
		record = append(record[:len(record):len(record)], j.codes.sum(0, record)...)
	}
	place := j.tail.put(record)
	err = j.append(kindAnswer, func(b []byte) ([]byte, error) { return append(b, body[1:]...), nil })
	if err == nil {
		j.tail.done(place)
	}
	return err
}

func appendAnswer(b []byte, id int, changes []state.Change) ([]byte, error) {
	b = binary.AppendVarint(b, int64(id))
	for _, c := range changes {
		start := len(b)
		b = append(b, 0, 0, 0, 0)
		var err error
		if b, err = statefile.AppendChange(b, c); err != nil {
			return b, err
		}
		binary.LittleEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	}
	return b, nil
}

// Written notes that s, which holds everything that was answered so far, is
// about to be written to the store. If the run is killed after that write and
// before Remove, what s holds is not folded in once more.
func (j *Journal) Written(s *state.State) error {
	sum, err := digest(s)
	if err != nil {
		return err
	}
	return j.twice(kindWritten, mark{HeaderOf(s), sum})
}

// twice notes what all else depends on.
func (j *Journal) twice(k kind, v any) error {
	body := func(b []byte) ([]byte, error) { return appendJSON(b, v) }
	if err := j.append(k, body); err != nil {
		return err
	}
	return j.append(k, body)
}

func (j *Journal) append(k kind, body func([]byte) ([]byte, error)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.write(k, body)
}

// write writes one record with one call of the system. The caller holds mu.
func (j *Journal) write(k kind, body func([]byte) ([]byte, error)) error {
	switch {
	case j.f == nil:
		return fmt.Errorf("the journal %s is closed", j.path)
	case j.broken != nil:
		return j.broken
	case j.failed != nil:
		return j.failed
	}
	plain, err := body(append(j.plain[:0], byte(k)))
	if err != nil {
		return err
	}
	j.plain = plain
	if j.out, err = seal(j.out[:0], plain, j.number+1, j.sealer, j.codes); err != nil {
		return err
	}
	if n, err := j.f.Write(j.out); err != nil {
		j.takeBack(n)
		return err
	}
	j.size += int64(len(j.out))
	if j.mirror != nil {
		j.unsent = append(j.unsent, j.out...)
	}
	j.number++
	j.syncSoon()
	return nil
}

// takeBack removes a record that was written in part, so that those after it
// can be read.
func (j *Journal) takeBack(n int) {
	if n == 0 {
		return
	}
	err := j.f.Truncate(j.size)
	if err == nil {
		_, err = j.f.Seek(j.size, 0)
	}
	if err != nil {
		j.broken = fmt.Errorf("the journal %s cannot be written any more: %w", j.path, err)
	}
}

// syncSoon sees to it that a sync follows. The caller holds mu.
func (j *Journal) syncSoon() {
	if j.timer != nil {
		return
	}
	j.background.Add(1)
	j.timer = time.AfterFunc(SyncDelay, func() {
		defer j.background.Done()
		_ = j.Sync() // what is wrong is returned by the next call
	})
}

// stopTimer takes back the sync that is due. The caller holds mu.
func (j *Journal) stopTimer() {
	if j.timer != nil && j.timer.Stop() {
		j.background.Done()
	}
	j.timer = nil
}

// Sync returns once all that was noted before is on disk.
func (j *Journal) Sync() error {
	j.mu.Lock()
	want := j.size
	j.mu.Unlock()
	j.syncing <- struct{}{}
	defer func() { <-j.syncing }()
	j.mu.Lock()
	f, size, known, err := j.f, j.size, j.safe, errors.Join(j.broken, j.failed)
	if f == nil || err != nil || known >= want { // another one's sync served this one too
		j.mu.Unlock()
		return err
	}
	j.stopTimer()
	j.busy = true
	send := j.unsent
	j.unsent = nil
	j.mu.Unlock()
	if known == 0 {
		if err = f.Sync(); err == nil {
			err = syncDir(filepath.Dir(j.path))
		}
	} else {
		err = syncData(f)
	}
	if err == nil && j.mirror != nil {
		err = j.mirror.Append(send)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.busy = false
	if err != nil {
		j.failed = err
		return err
	}
	j.safe = size
	return nil
}

// Close closes the journal and leaves the file for the next command, as after
// an error that kept the state from being written.
func (j *Journal) Close() error {
	defer j.background.Wait()
	err := j.Sync()
	j.syncing <- struct{}{}
	defer func() { <-j.syncing }()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stopTimer()
	if j.f == nil {
		return nil
	}
	err = errors.Join(err, j.f.Close())
	j.f = nil
	j.tail.close(false)
	return err
}

// Remove closes the journal and removes it: the state that was written holds
// everything.
func (j *Journal) Remove() error {
	defer j.background.Wait()
	j.syncing <- struct{}{}
	defer func() { <-j.syncing }()
	err := j.removeFile()
	if j.mirror != nil {
		err = errors.Join(err, j.mirror.Discard())
	}
	return err
}

// removeFile removes the file. The caller has syncing.
func (j *Journal) removeFile() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stopTimer()
	f := j.f
	j.f = nil
	j.tail.close(true)
	var err error
	if f != nil && !removeOpen {
		err = f.Close()
	}
	// Until it is closed it is locked: nobody takes it for one that was left.
	if e := os.Remove(j.path); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	if f != nil && removeOpen {
		err = errors.Join(err, f.Close())
	}
	return err
}

func appendJSON(b []byte, v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	return append(b, raw...), err
}
