package servers

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// consulLimit is the maximum size, in bytes, of a value and of the body of a transaction.
const consulLimit = 524288

// A ConsulServer is a stand-in for Consul, based on the documentation of its HTTP API: keys
// with indexes, flags and locks, blocking queries, sessions with a TTL and a lock delay,
// and transactions with the verbs that backends use.
type ConsulServer struct {
	Address string // host:port
	Token   string // if not "", requests must contain it

	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	index    uint64
	keys     map[string]*consulPair
	sessions map[string]*consulSession
	delayed  map[string]time.Time // keys that cannot be locked before that time
	log      []string
}

type consulPair struct {
	LockIndex   uint64
	Key         string
	Flags       uint64
	Value       []byte
	Session     string `json:",omitempty"`
	CreateIndex uint64
	ModifyIndex uint64
}

type consulSession struct {
	ID, Name, Node, TTL, Behavior string
	LockDelay                     time.Duration
	CreateIndex, ModifyIndex      uint64

	ttl   time.Duration
	until time.Time
}

// Consul starts a stand-in.
func Consul(t testing.TB) *ConsulServer {
	s := NewConsul()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.Address = strings.TrimPrefix(server.URL, "http://")
	return s
}

// NewConsul returns a stand-in that is not listening yet.
func NewConsul() *ConsulServer {
	return &ConsulServer{index: 10, changed: make(chan struct{}), keys: map[string]*consulPair{}, sessions: map[string]*consulSession{}, delayed: map[string]time.Time{}}
}

// Keys returns the names of all keys, sorted.
func (s *ConsulServer) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.under("")
}

// Value returns the value of a key; "" if it does not exist.
func (s *ConsulServer) Value(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.keys[key]; p != nil {
		return string(p.Value)
	}
	return ""
}

// Log returns the requests, one per line: method, path and query.
func (s *ConsulServer) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

// Invalidate ends the session that holds a key, as Consul does if it is not renewed.
func (s *ConsulServer) Invalidate(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.keys[key]; p != nil {
		s.invalidate(p.Session)
	}
}

func (s *ConsulServer) invalidate(id string) {
	session := s.sessions[id]
	if session == nil {
		return
	}
	delete(s.sessions, id)
	s.index++
	for _, p := range s.keys {
		if p.Session != id {
			continue
		}
		s.delayed[p.Key] = time.Now().Add(session.LockDelay)
		if session.Behavior == "delete" {
			delete(s.keys, p.Key)
			continue
		}
		p.Session, p.ModifyIndex = "", s.index
	}
	s.wake()
}

func (s *ConsulServer) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *ConsulServer) expire() {
	for id, session := range s.sessions {
		if session.ttl > 0 && time.Now().After(session.until) {
			s.invalidate(id)
		}
	}
}

func (s *ConsulServer) under(prefix string) []string {
	var names []string
	for k := range s.keys {
		if strings.HasPrefix(k, prefix) {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return names
}

func (s *ConsulServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, r.Method+" "+r.URL.RequestURI())
	if s.Token != "" && r.Header.Get("X-Consul-Token") != s.Token {
		http.Error(w, "Permission denied: token with AccessorID '00000000-0000-0000-0000-000000000002' lacks permission 'key:read'", http.StatusForbidden)
		return
	}
	s.expire()
	path := strings.TrimPrefix(r.URL.Path, "/v1/")
	what, rest, _ := strings.Cut(path, "/")
	switch what {
	case "kv":
		s.kv(w, r, rest, body)
	case "session":
		s.session(w, rest, body)
	case "txn":
		s.txn(w, body)
	default:
		http.NotFound(w, r)
	}
}

func (s *ConsulServer) answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Consul-Index", fmt.Sprint(s.index))
	w.Header().Set("X-Consul-Knownleader", "true")
	w.Header().Set("X-Consul-Lastcontact", "0")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func (s *ConsulServer) kv(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	q := r.URL.Query()
	switch r.Method {
	case "GET":
		if at, err := strconv.ParseUint(q.Get("index"), 10, 64); err == nil {
			s.block(r, key, at, q.Get("wait"))
		}
		if q.Has("keys") {
			names := []string{}
			for _, k := range s.under(key) {
				if sep := q.Get("separator"); sep != "" {
					if i := strings.Index(k[len(key):], sep); i >= 0 {
						k = k[:len(key)+i+len(sep)]
					}
				}
				if !slices.Contains(names, k) {
					names = append(names, k)
				}
			}
			if len(names) == 0 {
				s.answer(w, http.StatusNotFound, nil)
				return
			}
			s.answer(w, http.StatusOK, names)
			return
		}
		p := s.keys[key]
		if p == nil {
			w.Header().Set("X-Consul-Index", fmt.Sprint(s.index))
			w.WriteHeader(http.StatusNotFound)
			return
		}
		s.answer(w, http.StatusOK, []*consulPair{p})
	case "PUT":
		if len(body) > consulLimit {
			http.Error(w, fmt.Sprintf("Request body(%d bytes) too large, max size: %d bytes. See https://www.consul.io/docs/agent/config/config-files#kv_max_value_size.", len(body), consulLimit), http.StatusRequestEntityTooLarge)
			return
		}
		flags, _ := strconv.ParseUint(q.Get("flags"), 10, 64)
		s.answer(w, http.StatusOK, s.put(key, body, flags, q.Get("acquire"), q.Get("release"), q))
	case "DELETE":
		if q.Has("cas") {
			at, _ := strconv.ParseUint(q.Get("cas"), 10, 64)
			if p := s.keys[key]; p != nil && p.ModifyIndex != at {
				s.answer(w, http.StatusOK, false)
				return
			}
		}
		gone := []string{key}
		if q.Has("recurse") {
			gone = s.under(key)
		}
		for _, k := range gone {
			delete(s.keys, k)
		}
		s.index++
		s.wake()
		s.answer(w, http.StatusOK, true)
	}
}

// block waits until a key changes after an index, as for a blocking query.
func (s *ConsulServer) block(r *http.Request, key string, at uint64, wait string) {
	d, err := time.ParseDuration(wait)
	if err != nil {
		d = 5 * time.Minute
	}
	timeout := time.After(d)
	for s.index <= at {
		changed := s.changed
		s.mu.Unlock()
		over := false
		select {
		case <-changed:
		case <-timeout:
			over = true
		case <-r.Context().Done():
			over = true
		case <-time.After(time.Second):
		}
		s.mu.Lock()
		s.expire()
		if over {
			return
		}
	}
}

func (s *ConsulServer) put(key string, value []byte, flags uint64, acquire, release string, q map[string][]string) bool {
	p := s.keys[key]
	if cas := q["cas"]; len(cas) == 1 {
		at, _ := strconv.ParseUint(cas[0], 10, 64)
		if at == 0 && p != nil || at != 0 && (p == nil || p.ModifyIndex != at) {
			return false
		}
	}
	switch {
	case acquire != "":
		if s.sessions[acquire] == nil || p != nil && p.Session != "" && p.Session != acquire || time.Now().Before(s.delayed[key]) {
			return false
		}
	case release != "":
		if p == nil || p.Session != release {
			return false
		}
	}
	s.index++
	if p == nil {
		p = &consulPair{Key: key, CreateIndex: s.index}
		s.keys[key] = p
	}
	if acquire != "" && p.Session != acquire {
		p.Session = acquire
		p.LockIndex++
	}
	if release != "" {
		p.Session = ""
	}
	p.Value, p.Flags, p.ModifyIndex = value, flags, s.index
	s.wake()
	return true
}

func (s *ConsulServer) session(w http.ResponseWriter, path string, body []byte) {
	what, id, _ := strings.Cut(path, "/")
	switch what {
	case "create":
		var in struct{ Name, TTL, LockDelay, Behavior string }
		if len(body) > 0 && json.Unmarshal(body, &in) != nil {
			http.Error(w, "Request decode failed", http.StatusBadRequest)
			return
		}
		s.index++
		n := &consulSession{ID: fmt.Sprintf("%08x-1111-2222-3333-%012x", s.index, s.index*77), Name: in.Name, Node: "stand-in", TTL: in.TTL, Behavior: in.Behavior, LockDelay: 15 * time.Second, CreateIndex: s.index, ModifyIndex: s.index}
		if n.Behavior == "" {
			n.Behavior = "release"
		}
		if d, err := time.ParseDuration(in.LockDelay); err == nil {
			n.LockDelay = d
		}
		n.ttl, _ = time.ParseDuration(in.TTL)
		n.until = time.Now().Add(n.ttl)
		s.sessions[n.ID] = n
		s.answer(w, http.StatusOK, map[string]string{"ID": n.ID})
	case "renew":
		n := s.sessions[id]
		if n == nil {
			http.Error(w, fmt.Sprintf("Session id '%s' not found", id), http.StatusNotFound)
			return
		}
		n.until = time.Now().Add(n.ttl)
		s.answer(w, http.StatusOK, []*consulSession{n})
	case "destroy":
		s.invalidate(id)
		s.answer(w, http.StatusOK, true)
	case "info":
		out := []*consulSession{}
		if n := s.sessions[id]; n != nil {
			out = append(out, n)
		}
		s.answer(w, http.StatusOK, out)
	}
}

func (s *ConsulServer) txn(w http.ResponseWriter, body []byte) {
	if len(body) > consulLimit {
		http.Error(w, fmt.Sprintf("Request body(%d bytes) too large, max size: %d bytes. See https://www.consul.io/docs/agent/config/config-files#txn_max_req_len.", len(body), consulLimit), http.StatusRequestEntityTooLarge)
		return
	}
	var ops []struct {
		KV *struct {
			Verb, Key, Session string
			Value              []byte
			Flags, Index       uint64
		}
	}
	if err := json.Unmarshal(body, &ops); err != nil {
		http.Error(w, "Failed to parse body: "+err.Error(), http.StatusBadRequest)
		return
	}
	type failure struct {
		OpIndex int
		What    string
	}
	var failed []failure
	for i, op := range ops {
		p := s.keys[op.KV.Key]
		switch op.KV.Verb {
		case "set":
		case "cas":
			if op.KV.Index == 0 && p != nil || op.KV.Index != 0 && (p == nil || p.ModifyIndex != op.KV.Index) {
				failed = append(failed, failure{i, fmt.Sprintf("failed to set key %q, index is stale", op.KV.Key)})
			}
		case "check-session":
			switch {
			case p == nil:
				failed = append(failed, failure{i, fmt.Sprintf("failed to check session, key %q doesn't exist", op.KV.Key)})
			case p.Session != op.KV.Session:
				failed = append(failed, failure{i, fmt.Sprintf("failed session check for key %q, current session %q != %q", op.KV.Key, p.Session, op.KV.Session)})
			}
		case "get":
			if p == nil {
				failed = append(failed, failure{i, fmt.Sprintf("key %q doesn't exist", op.KV.Key)})
			}
		default:
			failed = append(failed, failure{i, fmt.Sprintf("unknown KV verb %q", op.KV.Verb)})
		}
	}
	if failed != nil {
		s.answer(w, http.StatusConflict, map[string]any{"Results": nil, "Errors": failed})
		return
	}
	type result struct{ KV consulPair }
	var results []result
	for _, op := range ops {
		if op.KV.Verb == "set" || op.KV.Verb == "cas" {
			s.put(op.KV.Key, op.KV.Value, op.KV.Flags, "", "", nil)
		}
		out := *s.keys[op.KV.Key]
		if op.KV.Verb != "get" {
			out.Value = nil
		}
		results = append(results, result{out})
	}
	s.answer(w, http.StatusOK, map[string]any{"Results": results, "Errors": nil})
}
