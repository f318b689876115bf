package rpc

import (
	"context"
	"crypto/sha256"
	"sync"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
)

// # Equal checks
//
// A module that many units or module calls use, and the instances of count and for_each, often have
// equal blocks. By the protocol, the response of a plugin to the check of a configuration only
// depends on the request, so an equal request is answered with the response of the first one. Each
// caller gets its own messages.
//
// A request is identified by its SHA-256 hash, so that large configurations are not kept. It does
// not matter whether the plugin is configured: no caller relies on that, since any process of a
// program can get the request.

// A check identifies the request for a check.
type check [sha256.Size]byte

// checkOf returns the identity of a request. kind and typ must not contain NUL.
func checkOf(kind, typ string, config *pb6.Value) check {
	h := sha256.New()
	for _, text := range []string{kind, "\x00", typ, "\x00"} {
		_, _ = h.Write([]byte(text)) // a hash returns no error
	}
	_, _ = h.Write(config.GetMsgpack())
	return check(h.Sum(nil))
}

// checks contains the responses to checks. The zero value is ready to use. It may be used
// concurrently.
type checks struct {
	mu sync.Mutex
	// When latest is full, it replaces earlier, whose responses are forgotten.
	latest, earlier map[check]*checked
	// accepted is the response of all checks without messages. nil means that there was none yet.
	accepted *checked
}

// maxChecks is the maximum number of responses in each of the two maps of checks.
const maxChecks = 4096

// checked is the response to a check.
type checked struct {
	done chan struct{} // closed when the fields below are set
	ok   bool          // false if the call failed
	ds   []*pb6.Diagnostic
}

// do returns the response to a check. It calls request unless an equal request was answered or
// is being answered. A failed call is not recorded.
func (c *checks) do(ctx context.Context, key check, request func() ([]*pb6.Diagnostic, error)) ([]*pb6.Diagnostic, error) {
	for {
		have, first := c.find(key)
		if first {
			var err error
			if have.ds, err = request(); err != nil {
				c.forget(key, have)
			} else {
				have.ok = true
				c.share(key, have)
			}
			close(have.done)
			return have.ds, err
		}
		select {
		case <-have.done:
		case <-ctx.Done():
			return request() // fails with the error for an interrupted call
		}
		if have.ok {
			return have.ds, nil
		}
	}
}

// find returns the response to a check. first means that the caller must request it.
func (c *checks) find(key check) (have *checked, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := c.latest[key]; have != nil {
		return have, false
	}
	have = c.earlier[key]
	if first = have == nil; first {
		have = &checked{done: make(chan struct{})}
	}
	if len(c.latest) >= maxChecks {
		c.earlier, c.latest = c.latest, nil
	}
	if c.latest == nil {
		c.latest = map[check]*checked{}
	}
	c.latest[key] = have
	return have, first
}

// share replaces a response without messages by the common one, which needs less memory.
func (c *checks) share(key check, have *checked) {
	if len(have.ds) > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.accepted == nil {
		c.accepted = &checked{done: have.done, ok: true}
	}
	for _, m := range []map[check]*checked{c.latest, c.earlier} {
		if m[key] == have {
			m[key] = c.accepted
		}
	}
}

// forget removes a failed call.
func (c *checks) forget(key check, failed *checked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range []map[check]*checked{c.latest, c.earlier} {
		if m[key] == failed {
			delete(m, key)
		}
	}
}
