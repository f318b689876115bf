package rest

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/state/store"
)

// A failed write is not repeated after another process may have taken over the state. A read
// is.
func TestFence(t *testing.T) {
	over := errors.New("somebody else has it")
	for _, c := range []struct {
		method string
		want   int // number of requests
	}{{http.MethodPut, 1}, {http.MethodDelete, 1}, {http.MethodGet, 3}} {
		sent := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			sent++
			w.WriteHeader(http.StatusInternalServerError)
		}))
		ctx := store.WithFence(t.Context(), func() error {
			if sent > 0 {
				return over
			}
			return nil
		})
		client := &Client{HTTP: s.Client(), Retries: 2, Sleep: func(context.Context, time.Duration) error { return nil }, Now: time.Now}
		_, err := client.Do(ctx, Request{Method: c.method, URL: s.URL, Repeat: true})
		if s.Close(); sent != c.want || errors.Is(err, over) != (c.want == 1) {
			t.Errorf("%s: %d requests, want %d; %v", c.method, sent, c.want, err)
		}
	}
}
