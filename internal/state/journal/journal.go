// Package journal records the actions of an apply while they happen, so that a killed run loses
// no provider response.
//
// Main types: Journal, which a run writes, and Recovered, which the next command reads and
// merges into the state. The one rule: Begin is called before a call that changes something,
// and Answer before its result is used. Both have written to the file when they return, which
// survives the death of the process. The record is on disk at most SyncDelay later, and
// immediately after Sync; one sync covers all records written before it.
//
// A journal is a file next to the state, readable by its owner only. It is bound to its path
// and to the user that wrote it (user.go). It contains records with checksums. A record that a
// crash truncated at the end is ignored. Damaged bytes elsewhere are skipped, reported and
// kept. record.go describes records, and parse.go how a journal is read.
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

// SyncDelay is the maximum time for which a record may be only in the memory of the operating
// system.
const SyncDelay = 100 * time.Millisecond

// A Header identifies the state that a journal continues: the state in the store when the run
// began. It is "" and 0 if there was none.
type Header struct {
	Lineage string
	Serial  uint64
}

// HeaderOf returns the header for a run that begins with a state; nil means none.
func HeaderOf(s *state.State) Header {
	if s == nil {
		return Header{}
	}
	return Header{Lineage: s.Lineage, Serial: s.Serial}
}

// A Mirror is a second copy of a journal. Its methods are not called concurrently.
type Mirror interface {
	// Append appends bytes to the copy. It returns when they are stored safely.
	Append(b []byte) error
	// Discard removes the copy, because the written state contains all of it.
	Discard() error
}

// A Journal is open for writing. It is safe for concurrent use.
type Journal struct {
	path   string
	sealer sealing.Sealer
	codes  *binding // nil means that the journal is not bound to a user
	tail   *tail

	mirror Mirror // nil means none

	mu     sync.Mutex
	f      *os.File // nil after Close
	size   int64    // number of bytes that are completely written
	number uint32   // number of the last record
	safe   int64    // number of bytes on disk; 0 means that the directory entry may not be on disk either
	broken error    // error after a record was written in part and could not be removed
	plain  []byte   // buffer
	out    []byte
	unsent []byte // bytes that the mirror does not have yet
	busy   bool   // a sync is in progress

	syncing    chan struct{} // semaphore of one, held for a sync or close and taken before mu
	background sync.WaitGroup
	timer      *time.Timer // the next sync in the background; nil if none is due
	failed     error       // error of a sync
}

// ErrExists is the error that a journal exists already and must be recovered first.
var ErrExists = errors.New("there is a journal of another run")

// Options configures Create. The zero value describes an unknown run without a state.
type Options struct {
	Header
	Run     Run
	Sealer  sealing.Sealer // nil means no encryption
	Mirror  Mirror         // nil means that there is only the file
	User    User           // the user to whom the journal is bound
	Store   string         // identifies the location of the state, for the copy in the Mirror
	Answers int            // expected number of answers, for allocating memory; 0 means many. A wrong number only costs time
}

// Create creates a journal. It returns ErrExists if the file exists.
func Create(path string, o Options) (*Journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil { // it may be missing without a lock
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, ErrExists
	}
	if err != nil {
		return nil, err
	}
	if err := lock(f); errors.Is(err, errBusy) || !stillAt(f, path) { // another run claimed the new file as an abandoned journal
		f.Close()
		return nil, ErrExists
	}
	// A process that was killed while it removed an earlier journal may have left a tail.
	// Without a header no process reads it.
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
	return j.Sync() // reports a mirror that does not work before the run changes anything
}

// Begin records that an action is about to be requested. id is unique within the run. With a
// Mirror, Begin returns when the mirror has the record, so that a command on another machine
// knows at least what may have happened.
func (j *Journal) Begin(id int, address, action string) error {
	err := j.append(kindBegin, func(b []byte) ([]byte, error) {
		return appendJSON(b, Intent{ID: id, Address: address, Action: action})
	})
	if err != nil || j.mirror == nil {
		return err
	}
	return j.Sync()
}

// Answer records the changes of an action for which Begin was called. Without changes, it records
// that the action had no effect. For changes without a provider call, such as moves, the id is one
// for which Begin was not called.
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

// answerAtOnce writes an answer if it does not have to wait: no sync is in progress, and none
// begins before it is written.
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

// answerByTail writes an answer to the tail, which never waits, and then to the journal.
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

// Written records that s, which contains all answers so far, is about to be written to the
// store. If the run is killed after that write and before Remove, the answers in s are not
// merged again.
func (j *Journal) Written(s *state.State) error {
	sum, err := digest(s)
	if err != nil {
		return err
	}
	return j.twice(kindWritten, mark{HeaderOf(s), sum})
}

// twice writes a record two times, because everything else depends on it.
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

// write writes one record with one system call. The caller holds mu.
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

// takeBack removes a record that was written in part, so that later records can be read.
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

// syncSoon schedules a sync in the background. The caller holds mu.
func (j *Journal) syncSoon() {
	if j.timer != nil {
		return
	}
	j.background.Add(1)
	j.timer = time.AfterFunc(SyncDelay, func() {
		defer j.background.Done()
		_ = j.Sync() // the next call returns the error
	})
}

// stopTimer cancels the scheduled sync. The caller holds mu.
func (j *Journal) stopTimer() {
	if j.timer != nil && j.timer.Stop() {
		j.background.Done()
	}
	j.timer = nil
}

// Sync returns when all earlier records are on disk.
func (j *Journal) Sync() error {
	j.mu.Lock()
	want := j.size
	j.mu.Unlock()
	j.syncing <- struct{}{}
	defer func() { <-j.syncing }()
	j.mu.Lock()
	f, size, known, err := j.f, j.size, j.safe, errors.Join(j.broken, j.failed)
	if f == nil || err != nil || known >= want { // the sync of another call included these records
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

// Close closes the journal and leaves the file for the next command, for example after the
// state could not be written.
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

// Remove closes and deletes the journal. The caller must have written a state with all of its
// contents.
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

// removeFile deletes the file. The caller holds syncing.
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
	// The file is locked until it is closed, so that no other process claims it.
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
