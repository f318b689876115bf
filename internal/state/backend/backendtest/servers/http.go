package servers

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// An HTTPServer is a service for the backend "http": one state at /state, locked by LOCK
// and UNLOCK at /lock. It refuses a write with the ID of a lock other than the present one.
type HTTPServer struct {
	URL string

	// Before, if set, may handle a request instead of the server.
	Before func(w http.ResponseWriter, r *http.Request) (answered bool)

	mu    sync.Mutex
	state []byte
	lock  []byte // the holder's request; nil for none
	log   []string
}

// HTTP starts a service.
func HTTP(t testing.TB) *HTTPServer {
	s := &HTTPServer{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// State returns the stored state.
func (s *HTTPServer) State() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.state)
}

// SetState replaces the stored state; "" deletes it.
func (s *HTTPServer) SetState(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = nil
	if text != "" {
		s.state = []byte(text)
	}
}

// Lock returns the request of the lock's holder; "" for none.
func (s *HTTPServer) Lock() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.lock)
}

// SetLock replaces the lock.
func (s *HTTPServer) SetLock(info string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lock = nil
	if info != "" {
		s.lock = []byte(info)
	}
}

// Log returns the requests, one per line: method, path, query and body.
func (s *HTTPServer) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.log...)
}

func (s *HTTPServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Before != nil && s.Before(w, r) {
		return
	}
	s.Answer(w, r)
}

// Answer handles a request without calling Before.
func (s *HTTPServer) Answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if want := r.Header.Get("Content-MD5"); want != "" {
		if sum := md5.Sum(body); base64.StdEncoding.EncodeToString(sum[:]) != want {
			http.Error(w, "wrong checksum", http.StatusBadRequest)
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf("%s %s %s", r.Method, r.URL.RequestURI(), body))
	switch r.Method + " " + r.URL.Path {
	case "GET /state":
		if s.state == nil {
			http.NotFound(w, r)
			return
		}
		sum := md5.Sum(s.state)
		w.Header().Set("Content-MD5", base64.StdEncoding.EncodeToString(sum[:]))
		w.Write(s.state)
	case "POST /state", "PUT /state":
		if id := r.URL.Query().Get("ID"); id != holderID(s.lock) && (id != "" || s.lock != nil) {
			w.WriteHeader(http.StatusConflict)
			w.Write(s.lock)
			return
		}
		s.state = body
	case "DELETE /state":
		s.state = nil
	case "LOCK /lock":
		if s.lock != nil {
			w.WriteHeader(http.StatusLocked)
			w.Write(s.lock)
			return
		}
		s.lock = body
	case "UNLOCK /lock":
		if s.lock == nil || holderID(s.lock) != holderID(body) {
			w.WriteHeader(http.StatusConflict)
			w.Write(s.lock)
			return
		}
		s.lock = nil
	default:
		http.Error(w, "no such thing here", http.StatusMethodNotAllowed)
	}
}

func holderID(info []byte) string {
	var v struct{ ID string }
	json.Unmarshal(info, &v)
	return v.ID
}
