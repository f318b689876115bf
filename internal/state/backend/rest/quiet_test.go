package rest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend/rest"
)

// A request is cancelled if the service stops reading or sending in the middle. A service that
// is slow with a large body is not.
func TestServicesThatStop(t *testing.T) {
	ended := make(chan bool)
	defer close(ended)
	stops := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("begun"))
		w.(http.Flusher).Flush()
		<-ended
	}
	slow := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(300 * time.Millisecond)
	}
	for _, tt := range []struct {
		name  string
		serve http.HandlerFunc
		r     rest.Request
		late  bool
	}{
		{"in its answer", stops, rest.Request{Method: "GET"}, true},
		{"in its answer, handed on", stops, rest.Request{Method: "GET", Into: func(r io.Reader) error { _, err := io.ReadAll(r); return err }}, true},
		{"who reads may take longer", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(make([]byte, 100_000)) }, rest.Request{Method: "GET", Into: func(r io.Reader) error {
			if _, err := r.Read(make([]byte, 5)); err != nil {
				return err
			}
			time.Sleep(300 * time.Millisecond)
			_, err := io.ReadAll(r)
			return err
		}}, false},
		{"after a small body", slow, rest.Request{Method: "PUT", Body: []byte("x")}, true},
		{"after a large body", slow, rest.Request{Method: "PUT", Body: bytes.Repeat([]byte("x"), 2<<20)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(tt.serve)
			defer s.CloseClientConnections()
			tt.r.URL = s.URL
			_, err := client().Do(t.Context(), tt.r)
			var e net.Error
			if late := errors.As(err, &e) && e.Timeout(); late != tt.late || !late && err != nil {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("in what it takes", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, err = client().Do(t.Context(), rest.Request{Method: "PUT", URL: "http://" + l.Addr().String(), Body: make([]byte, 64<<20)})
		var e net.Error
		if !errors.As(err, &e) || !e.Timeout() {
			t.Errorf("%v", err)
		}
	})
}

func client() *rest.Client {
	return &rest.Client{
		HTTP: &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: 100 * time.Millisecond}}, Now: time.Now,
		Sleep: func(context.Context, time.Duration) error { return nil },
	}
}
