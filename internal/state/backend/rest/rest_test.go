package rest_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend/rest"
)

// A request that would fail again is tried once. A temporary failure is retried.
func TestAttempts(t *testing.T) {
	drop := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	page := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<!DOCTYPE html><html>") }
	proxy := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }
	refused := errors.New("no account for it")
	for _, tt := range []struct {
		name     string
		serve    http.HandlerFunc
		secured  bool
		prepare  error
		attempts int
		is       error
	}{
		{name: "a connection that is dropped", serve: drop, attempts: 4},
		{name: "a service that says nothing", serve: silent, attempts: 2, is: context.DeadlineExceeded},
		{name: "keys that cannot be had now", serve: drop, prepare: refused, attempts: 4, is: refused},
		{name: "an account that may not be used", serve: drop, prepare: rest.Final(refused), attempts: 1, is: refused},
		{name: "a certificate that nobody knows", serve: page, secured: true, attempts: 1},
		{name: "a page", serve: page, attempts: 1, is: rest.ErrPage},
		{name: "a proxy that wants a password", serve: proxy, attempts: 1, is: rest.ErrProxy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(tt.serve)
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			if tt.secured {
				s.StartTLS()
			} else {
				s.Start()
			}
			defer s.Close()
			attempts := 0
			c := rest.Client{
				HTTP: &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: 50 * time.Millisecond}}, Retries: 3, Now: time.Now,
				Sleep: func(context.Context, time.Duration) error { return nil },
				Prepare: func(context.Context, *http.Request, func() [sha256.Size]byte) error {
					attempts++
					return tt.prepare
				},
			}
			_, err := c.Do(t.Context(), rest.Request{Method: http.MethodGet, URL: s.URL, Repeat: true})
			if err == nil || attempts != tt.attempts || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("%d attempts, not %d: %v", attempts, tt.attempts, err)
			}
		})
	}
}
