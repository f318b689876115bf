package consul

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/rest"
	"github.com/terrace-iac/terrace/internal/state/store"
)

// chunkSize is the maximum size of a value, in bytes.
const chunkSize = 524288

// An object is the key of one workspace. Its version is the key's ModifyIndex.
type object struct {
	b   *consulBackend
	key string

	mu     sync.Mutex
	held   *session
	chunks string // the hash of the chunks in the main key, as it was last read or written; "" for none
}

// A pair is a key in Consul's response.
type pair struct {
	Key         string
	Value       []byte
	Flags       uint64
	Session     string
	ModifyIndex uint64
}

// A manifest is the content of the main key if the state is stored in chunks.
type manifest struct {
	Chunks []string `json:"chunks"`
	Hash   string   `json:"current-hash"`
}

// most is the maximum size, in bytes, of a value in a transaction: base64-encoded with
// overhead it must fit into the largest request that Consul accepts.
const most = (chunkSize - 1024) / 4 * 3

const largeAdvice = "Raise txn_max_req_len of Consul's servers, set gzip, split the state, or keep it in another backend."

// Limit implements backend.Limited. A large state is stored in chunks, and the main key
// must be able to contain the list of their keys.
func (o *object) Limit(bool) (int64, string) {
	key := int64(len(o.below()) + len("\"tfstate.01234567890123456789012345678901/12345\","))
	return most / key * chunkSize, largeAdvice
}

// below returns the prefix of the keys that belong to the state's key.
func (o *object) below() string { return strings.TrimRight(o.key, "/") + "/" }

// get returns a key, or nil if it does not exist. The leader answers, so that recent writes
// are included.
func (b *consulBackend) get(ctx context.Context, key string) (*pair, error) {
	resp, err := b.send(ctx, "GET", "kv/"+escape(key), url.Values{"consistent": {""}}, nil, true)
	if err != nil {
		return nil, err
	}
	if resp.Status == http.StatusNotFound {
		return nil, nil
	}
	if resp.Status != http.StatusOK {
		return nil, b.refused("", resp)
	}
	var pairs []pair
	if err := json.Unmarshal(resp.Body, &pairs); err != nil || len(pairs) != 1 {
		return nil, b.odd("")
	}
	return &pairs[0], nil
}

// put writes a key unconditionally.
func (b *consulBackend) put(ctx context.Context, key string, value []byte, flags int) error {
	q := url.Values{}
	if flags != 0 {
		q.Set("flags", strconv.Itoa(flags))
	}
	if value == nil {
		value = []byte{}
	}
	resp, err := b.send(ctx, "PUT", "kv/"+escape(key), q, value, true)
	if err != nil {
		return err
	}
	if resp.Status != http.StatusOK || strings.TrimSpace(string(resp.Body)) != "true" {
		return b.refused("", resp)
	}
	return nil
}

// Read implements backend.Object.
func (o *object) Read(ctx context.Context) (backend.Payload, error) { return backend.Collect(ctx, o) }

// Fetch implements backend.Streamed.
func (o *object) Fetch(ctx context.Context, take func(io.Reader) error) (string, error) {
	for try := 0; ; try++ {
		version, retry, err := o.read(ctx, take)
		if !retry || try >= 5 {
			return version, err
		}
	}
}

// read reads the state once. retry reports that chunks are missing, because another process
// has written another state meanwhile.
func (o *object) read(ctx context.Context, take func(io.Reader) error) (version string, retry bool, err error) {
	main, err := o.b.get(ctx, o.key)
	if err != nil {
		return "", false, err
	}
	if main == nil {
		return "", false, take(bytes.NewReader(nil))
	}
	parts := &chunks{get: func(key string) (*pair, error) { return o.b.get(ctx, key) }, value: main.Value}
	var m manifest
	if bytes.HasPrefix(bytes.TrimSpace(main.Value), []byte("{")) && json.Unmarshal(main.Value, &m) == nil && m.Hash != "" {
		parts.value, parts.keys = nil, m.Chunks
	}
	in := bufio.NewReaderSize(parts, 64<<10)
	content := io.Reader(in)
	if head, _ := in.Peek(1); len(head) > 0 && head[0] == 0x1f {
		z, e := gzip.NewReader(in)
		if e == nil {
			content = z
		} else if err = parts.err; err == nil {
			return "", false, packed(e)
		}
	}
	sum := md5.New()
	if err == nil {
		err = take(io.TeeReader(content, sum))
		if err == nil { // the rest must be empty
			_, err = io.Copy(sum, content)
		}
	}
	switch {
	case parts.err != nil:
		return "", parts.gone, parts.err
	case err != nil && content != io.Reader(in):
		return "", false, packed(err)
	case err != nil:
		return "", false, err
	case m.Hash != "" && hex.EncodeToString(sum.Sum(nil)) != m.Hash:
		return "", true, &backend.Error{Argument: "path", Answer: "the state in Consul does not have the checksum that is kept with it", Advice: "It is damaged; bring it back from a snapshot of Consul or a backup."}
	}
	o.mu.Lock()
	o.chunks = m.Hash
	o.mu.Unlock()
	return strconv.FormatUint(main.ModifyIndex, 10), false, nil
}

func packed(err error) error {
	return &backend.Error{Argument: "path", Answer: "the state in Consul cannot be decompressed: " + diag.Reason(err), Advice: "It is damaged; bring it back from a snapshot of Consul or a backup."}
}

// chunks reads the values of keys, one after the other.
type chunks struct {
	get   func(key string) (*pair, error)
	value []byte // the rest of the current value
	keys  []string
	err   error
	gone  bool // a key does not exist
}

func (c *chunks) Read(p []byte) (int, error) {
	for len(c.value) == 0 && c.err == nil {
		if len(c.keys) == 0 {
			return 0, io.EOF
		}
		var next *pair
		if next, c.err = c.get(c.keys[0]); c.err == nil && next == nil {
			c.gone, c.err = true, &backend.Error{Argument: "path", Answer: fmt.Sprintf("the part %q of the state is missing", c.keys[0]), Advice: "The state in Consul is damaged; bring it back from a snapshot of Consul or a backup."}
		}
		if c.err == nil {
			c.value, c.keys = next.Value, c.keys[1:]
		}
	}
	n := copy(p, c.value)
	c.value = c.value[n:]
	if n == 0 {
		return 0, c.err
	}
	return n, nil
}

// Write implements backend.Object.
func (o *object) Write(ctx context.Context, data []byte, prior backend.Prior, lock string) (string, error) {
	return o.Send(ctx, backend.Bytes(data), prior, lock)
}

// Send implements backend.Streamed.
func (o *object) Send(ctx context.Context, t *backend.Text, prior backend.Prior, lock string) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if lock != "" && (o.held == nil || o.held.id != lock) {
		return "", backend.ErrLockLost
	}
	// Base64 adds a third, so a much larger text is not attempted.
	first := &upTo{most: 16 * chunkSize}
	switch err := o.payload(t, first); {
	case err != nil && err != errTooMany:
		return "", err
	case err == nil:
		version, tooLarge, err := o.commit(ctx, first.b, prior, lock)
		if !tooLarge {
			if err == nil {
				o.forget(ctx, "")
			}
			return version, err
		}
	}
	first = nil
	sum := t.MD5()
	m := manifest{Hash: hex.EncodeToString(sum[:]), Chunks: []string{}}
	w := &pieces{put: func(b []byte) error {
		key := fmt.Sprintf("%stfstate.%s/%d", o.below(), m.Hash, len(m.Chunks))
		m.Chunks = append(m.Chunks, key)
		return o.b.put(ctx, key, b, 0)
	}}
	err := o.payload(t, w)
	if err == nil {
		err = w.flush()
	}
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	version, tooLarge, err := o.commit(ctx, text, prior, lock)
	if tooLarge {
		err = &backend.Error{Argument: "path", Answer: "the state is too large for Consul", Advice: largeAdvice}
	}
	if err == nil {
		o.forget(ctx, m.Hash)
	}
	return version, err
}

// payload writes the bytes to store for a text.
func (o *object) payload(t *backend.Text, w io.Writer) error {
	r := t.Open()
	defer r.Close()
	if !o.b.gzip {
		_, err := io.Copy(w, r)
		return err
	}
	// The best compression, since a value of Consul is small. Go 1.27 stores base64 text at the default
	// level.
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := io.Copy(z, r); err != nil {
		return err
	}
	return z.Close()
}

// errTooMany is the error that a text does not fit.
var errTooMany = errors.New("too many bytes")

// upTo buffers up to most bytes, and fails if more are written.
type upTo struct {
	b    []byte
	most int
}

func (u *upTo) Write(b []byte) (int, error) {
	if len(u.b)+len(b) >= u.most {
		return 0, errTooMany
	}
	u.b = append(u.b, b...)
	return len(b), nil
}

// pieces divides its input into chunks.
type pieces struct {
	put func([]byte) error
	b   []byte
}

func (p *pieces) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := min(len(rest), chunkSize-len(p.b))
		p.b, rest = append(p.b, rest[:n]...), rest[n:]
		if len(p.b) == chunkSize {
			if err := p.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(b), nil
}

// flush stores the current chunk, if it is not empty.
func (p *pieces) flush() error {
	if len(p.b) == 0 {
		return nil
	}
	err := p.put(p.b)
	p.b = p.b[:0]
	return err
}

// forget deletes the chunks of the previous state and ignores errors. The caller holds mu.
func (o *object) forget(ctx context.Context, now string) {
	if o.chunks != "" && o.chunks != now {
		o.b.deleteTree(ctx, o.below()+"tfstate."+o.chunks+"/")
	}
	o.chunks = now
}

// commit writes the main key in a transaction that checks the lock and the previous
// content.
func (o *object) commit(ctx context.Context, value []byte, prior backend.Prior, lock string) (version string, tooLarge bool, err error) {
	type kv struct {
		Verb, Key string
		Value     []byte  `json:",omitempty"`
		Index     *uint64 `json:",omitempty"`
		Session   string  `json:",omitempty"`
	}
	type op struct{ KV kv }
	var ops []op
	if lock != "" {
		ops = append(ops, op{kv{Verb: "check-session", Key: o.below() + ".lock", Session: lock}})
	}
	write := kv{Verb: "set", Key: o.key, Value: value}
	if !prior.Unknown {
		var index uint64 // 0: the key must not exist
		if prior.Version != "" {
			if index, err = strconv.ParseUint(prior.Version, 10, 64); err != nil {
				return "", false, err
			}
		}
		write.Verb, write.Index = "cas", &index
	}
	ops = append(ops, op{write})
	body, err := json.Marshal(ops)
	if err != nil {
		return "", false, err
	}
	resp, err := o.b.send(ctx, "PUT", "txn", nil, body, prior.Unknown)
	if err != nil || resp.Repeated > 0 && resp.Status == http.StatusConflict {
		// It is unknown whether the write succeeded.
		if now, e := o.b.get(context.WithoutCancel(ctx), o.key); e == nil && now != nil && bytes.Equal(now.Value, value) {
			return strconv.FormatUint(now.ModifyIndex, 10), false, nil
		}
		if err != nil {
			return "", false, err
		}
	}
	return o.committed(resp, lock != "")
}

func (o *object) committed(resp *rest.Response, locked bool) (version string, tooLarge bool, err error) {
	const summary = "Failed to write the state"
	var answer struct {
		Results []struct{ KV pair }
		Errors  []struct {
			OpIndex int
			What    string
		}
	}
	switch {
	case resp.Status == http.StatusRequestEntityTooLarge, resp.Status >= 400 && strings.Contains(string(resp.Body), "too large"):
		return "", true, nil
	case resp.Status != http.StatusOK && resp.Status != http.StatusConflict:
		return "", false, o.b.refused(summary, resp)
	case json.Unmarshal(resp.Body, &answer) != nil:
		return "", false, o.b.odd(summary)
	}
	if len(answer.Errors) > 0 {
		e := answer.Errors[0]
		switch {
		case strings.Contains(e.What, "ermission denied"):
			return "", false, o.b.refused(summary, &rest.Response{Status: http.StatusForbidden, Body: []byte(e.What)})
		case strings.Contains(e.What, "too large") || strings.Contains(e.What, "exceeds"):
			return "", true, nil
		case locked && e.OpIndex == 0:
			return "", false, &backend.Error{Argument: "lock", Answer: "the session that held the lock has ended: " + e.What, Err: backend.ErrLockLost}
		}
		return "", false, backend.ErrChanged
	}
	if resp.Status != http.StatusOK || len(answer.Results) == 0 {
		return "", false, o.b.refused(summary, resp)
	}
	return strconv.FormatUint(answer.Results[len(answer.Results)-1].KV.ModifyIndex, 10), false, nil
}

// Probe implements backend.Prober.
func (o *object) Probe() (backend.Object, func(context.Context) error) {
	name := "doctor/" + store.NewID()
	return &object{b: o.b, key: o.below() + ".beside/" + name}, func(ctx context.Context) error { return o.DeleteBlob(ctx, name) }
}

// Objects next to the state have keys below ".beside/". The flags of a key are the number
// of its chunks. All chunks except the first are below ".beside-more/".

func (o *object) more(name string, i int) string {
	return fmt.Sprintf("%s.beside-more/%s/%d", o.below(), name, i)
}

func (o *object) PutBlob(ctx context.Context, name string, data []byte) error {
	n := 1
	for from := chunkSize; from < len(data); from, n = from+chunkSize, n+1 {
		if err := o.b.put(ctx, o.more(name, n), data[from:min(len(data), from+chunkSize)], 0); err != nil {
			return err
		}
	}
	return o.b.put(ctx, o.below()+".beside/"+name, data[:min(len(data), chunkSize)], n)
}

func (o *object) GetBlob(ctx context.Context, name string) ([]byte, error) {
	first, err := o.b.get(ctx, o.below()+".beside/"+name)
	if err != nil {
		return nil, err
	}
	if first == nil {
		return nil, backend.ErrNoBlob
	}
	data := first.Value
	for i := 1; i < int(first.Flags); i++ {
		c, err := o.b.get(ctx, o.more(name, i))
		if err != nil {
			return nil, err
		}
		if c == nil {
			return nil, &backend.Error{Argument: "path", Answer: fmt.Sprintf("a part of %q is missing", name)}
		}
		data = append(data, c.Value...)
	}
	return data, nil
}

func (o *object) ListBlobs(ctx context.Context, prefix string) ([]string, error) {
	root := o.below() + ".beside/"
	resp, err := o.b.send(ctx, "GET", "kv/"+escape(root+prefix), url.Values{"keys": {""}, "consistent": {""}}, nil, true)
	if err != nil || resp.Status == http.StatusNotFound {
		return nil, err
	}
	var keys []string
	if resp.Status != http.StatusOK {
		return nil, o.b.refused("", resp)
	}
	if json.Unmarshal(resp.Body, &keys) != nil {
		return nil, o.b.odd("")
	}
	for i, k := range keys { // Consul returns the keys sorted
		keys[i] = strings.TrimPrefix(k, root)
	}
	return keys, nil
}

func (o *object) DeleteBlob(ctx context.Context, name string) error {
	resp, err := o.b.send(ctx, "DELETE", "kv/"+escape(o.below()+".beside/"+name), nil, nil, true)
	if err == nil && resp.Status != http.StatusOK {
		err = o.b.refused("", resp)
	}
	if err != nil {
		return err
	}
	return o.b.deleteTree(ctx, o.below()+".beside-more/"+name+"/")
}
