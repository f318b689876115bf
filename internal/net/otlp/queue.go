package otlp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// # Queue
//
// Records are encoded when they are added, and one goroutine sends them in batches. The queue is
// limited in bytes. Records that do not fit are dropped and counted, as are records that a
// receiver rejects. After mostFailed consecutive batches failed, the queue sends no more.

const (
	batchRecords = 512
	batchBytes   = 1 << 20 // far below the limits of receivers
	waitingBytes = 16 << 20
	sendEvery    = 5 * time.Second
	mostTries    = 3
	firstPause   = 250 * time.Millisecond
	mostFailed   = 3 // consecutive batches
)

// A sender sends one request. again means that a retry may succeed.
type sender interface {
	send(ctx context.Context, request []byte) (answer []byte, again bool, err error)
	where() string // address of the receiver, for messages
	close()
}

// queue is the output to a receiver.
type queue struct {
	kind   Kind
	sender sender
	source source

	mu      sync.Mutex
	waiting [][]byte
	size    int // size of waiting, in bytes
	lost    int
	added   int
	closing bool
	wake    chan struct{}

	cancel context.CancelFunc
	done   chan struct{}

	// Used only by the goroutine, until done is closed.
	failed int // consecutive batches
	why    error
}

func newQueue(kind Kind, s sender, from source) *queue {
	ctx, cancel := context.WithCancel(context.Background())
	q := &queue{kind: kind, sender: s, source: from, wake: make(chan struct{}, 1), cancel: cancel, done: make(chan struct{})}
	go q.work(ctx) // close waits for it
	return q
}

func (q *queue) add(item []byte) {
	q.mu.Lock()
	q.added++
	if q.size+len(item) > waitingBytes {
		q.lost++
		q.mu.Unlock()
		return
	}
	q.waiting = append(q.waiting, item)
	q.size += len(item)
	full := len(q.waiting) >= batchRecords
	q.mu.Unlock()
	if full {
		q.notify()
	}
}

func (q *queue) notify() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// batch removes the records of the next request from the queue.
func (q *queue) batch() (records [][]byte, closing bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.waiting) && n < batchRecords && (n == 0 || size+len(q.waiting[n]) <= batchBytes) {
		size += len(q.waiting[n])
		n++
	}
	records = q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	if q.size -= size; len(q.waiting) == 0 {
		q.waiting = nil
	}
	return records, q.closing
}

func (q *queue) isClosing() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closing
}

// work sends batches until the queue is closed and empty.
func (q *queue) work(ctx context.Context) {
	defer close(q.done)
	defer q.sender.close()
	tick := time.NewTicker(sendEvery)
	defer tick.Stop()
	for {
		records, closing := q.batch()
		if len(records) > 0 {
			q.deliver(ctx, records)
			continue
		}
		if closing {
			return
		}
		select {
		case <-q.wake:
		case <-tick.C:
		}
	}
}

// deliver sends one batch, with retries.
func (q *queue) deliver(ctx context.Context, records [][]byte) {
	if q.failed >= mostFailed || ctx.Err() != nil {
		q.drop(len(records), context.DeadlineExceeded)
		return
	}
	body := q.source.request(records)
	pause := firstPause
	for try := 1; ; try++ {
		answer, again, err := q.sender.send(ctx, body)
		if err == nil {
			q.failed = 0
			if n, why := rejected(answer); n > 0 {
				q.drop(min(int(n), len(records)), fmt.Errorf("the receiver did not take them: %.200q", why))
			}
			return
		}
		if !again || try == mostTries || q.isClosing() || !q.pause(ctx, pause) {
			q.failed++
			q.drop(len(records), err)
			return
		}
		pause *= 4
	}
}

// pause waits before a retry. It returns early if the queue is closed. It returns false if the
// context ended, so that the caller does not retry.
func (q *queue) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-q.wake:
			if q.isClosing() {
				return true
			}
		}
	}
}

// drop counts undelivered records, and records the first reason.
func (q *queue) drop(n int, why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lost += n; q.why == nil {
		q.why = why
	}
}

// close implements output.
func (q *queue) close(ctx context.Context) error {
	q.mu.Lock()
	q.closing = true
	q.mu.Unlock()
	q.notify()
	select {
	case <-q.done:
	case <-ctx.Done():
		q.cancel()
		<-q.done
	}
	q.cancel()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lost == 0 {
		return nil
	}
	why := q.why
	switch {
	case why == nil:
		why = errors.New("they came faster than they could be sent")
	case errors.Is(why, context.DeadlineExceeded), errors.Is(why, context.Canceled):
		why = errors.New("the receiver did not answer in time")
	}
	return fmt.Errorf("%s of %d could not be delivered to %s: %w", q.kind.plural(q.lost), q.added, q.sender.where(), why)
}
