package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
)

func client(srv *httptest.Server) *Client {
	return &Client{HTTP: srv.Client(), Retries: 3, Timeout: time.Minute, Idle: time.Minute, Backoff: time.Millisecond, UserAgent: "test"}
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv
}

func TestGetRetriesWhatMayPass(t *testing.T) {
	for _, code := range []int{429, 500, 502, 503} {
		var n atomic.Int32
		srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) < 3 {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(code)
				return
			}
			fmt.Fprint(w, r.Header.Get("User-Agent"), r.Header.Get("X-A"))
		})
		body, _, err := client(srv).Get(context.Background(), srv.URL, http.Header{"X-A": {"a"}}, 100)
		if err != nil || string(body) != "testa" || n.Load() != 3 {
			t.Errorf("%d: %s %v after %d requests", code, body, err, n.Load())
		}
	}
}

func TestGetGivesUp(t *testing.T) {
	var n atomic.Int32
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/404":
			w.WriteHeader(404)
		case "/503":
			w.WriteHeader(503)
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/huge":
			_, _ = w.Write(bytes.Repeat([]byte("x"), 1000))
		case "/slow":
			<-r.Context().Done()
		case "/drip": // one byte at a time, endlessly
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				w.(http.Flusher).Flush()
				time.Sleep(5 * time.Millisecond)
			}
		case "/stall":
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	c := client(srv)
	// Attempts are counted here, because a request that is canceled at once may never reach the
	// server.
	c.HTTP.Transport = counted{&n, c.HTTP.Transport}
	for _, x := range []struct {
		path, want string
		requests   int32
	}{
		{"/404", `/404 answered "404 Not Found"`, 1},
		{"/503", "503", 4},
		{"/loop", "stopped after 10 redirects", 10},
		{"/huge", "larger than allowed", 1},
		{"/slow", "no answer within 100ms", 4},
		{"/stall", "stopped sending", 4},
		{"/drip", "stopped sending", 4},
	} {
		n.Store(0)
		c := *c
		switch x.path {
		case "/slow":
			c.Timeout = 100 * time.Millisecond
		case "/stall", "/drip":
			c.Idle = 100 * time.Millisecond
		}
		_, _, err := c.Get(context.Background(), srv.URL+x.path+"?token=secret", nil, 100)
		if err == nil || !strings.Contains(err.Error(), x.want) || n.Load() != x.requests || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v after %d requests", x.path, err, n.Load())
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := c.Get(ctx, srv.URL, nil, 100); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	srv.Close()
	if _, _, err := c.Get(context.Background(), srv.URL, nil, 100); !Unreachable(err) {
		t.Error(err)
	}
}

type counted struct {
	n *atomic.Int32
	http.RoundTripper
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

func TestSaveContinues(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 10_000)
	var n atomic.Int32
	var ranges []string
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		ranges = append(ranges, r.Header.Get("Range"))
		w.Header().Set("ETag", `"v1"`)
		if n.Add(1) > 2 {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write(content[:30_000])
		panic(http.ErrAbortHandler) // cuts the connection
	})
	path := filepath.Join(t.TempDir(), "f")
	var last int64
	err := client(srv).Save(context.Background(), Download{URL: srv.URL, Max: 1 << 20, Progress: func(done, total int64) { last = done }}, path)
	got, _ := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, content) || last != int64(len(content)) {
		t.Errorf("%d bytes, %d told, %v", len(got), last, err)
	}
	if len(ranges) != 3 || ranges[0] != "" || ranges[2] == "" {
		t.Error(ranges)
	}
}

func TestSaveBeginsAnewWhenTheFileChanged(t *testing.T) {
	var n atomic.Int32
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == 1 {
			w.Header().Set("ETag", `"v1"`)
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(bytes.Repeat([]byte("a"), 70_000))
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("ETag", `"v2"`)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader("new"))
	})
	path := filepath.Join(t.TempDir(), "f")
	err := client(srv).Save(context.Background(), Download{URL: srv.URL, Max: 1 << 20}, path)
	if got, _ := os.ReadFile(path); err != nil || string(got) != "new" {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestSaveBounds(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wrong" {
			w.Header().Set("Content-Range", "bytes 5-9/10")
			w.WriteHeader(http.StatusPartialContent)
			return
		}
		w.(http.Flusher).Flush() // without a length
		for range 100 {
			_, _ = w.Write(make([]byte, 1000))
		}
	})
	c := client(srv)
	if err := c.Save(context.Background(), Download{URL: srv.URL, Max: 5000}, filepath.Join(t.TempDir(), "f")); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if err := c.Save(context.Background(), Download{URL: srv.URL + "/wrong", Max: 5000}, filepath.Join(t.TempDir(), "f")); err == nil {
		t.Error("a part was taken for the whole")
	}
	if err := c.Save(context.Background(), Download{URL: srv.URL, Max: 5000}, filepath.Join(t.TempDir(), "no", "f")); err == nil {
		t.Error("saved nowhere")
	}
}

func TestProxyComesFromTheGivenEnvironment(t *testing.T) {
	var asked string
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) { asked = r.URL.String() })
	c := New(sys.Env{"HTTP_PROXY=" + srv.URL, "TF_APPEND_USER_AGENT=more"})
	if _, _, err := c.Get(context.Background(), "http://example.invalid/x", nil, 10); err != nil || asked != "http://example.invalid/x" || c.UserAgent != "Terrace more" {
		t.Error(asked, err, c.UserAgent)
	}
}

func TestSaveCountsAttempts(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	for retries, want := range []string{"/x.zip giving up after 1 attempt(s): ", "/x.zip giving up after 2 attempt(s): "} {
		err := client(srv).With(retries, 0).Save(context.Background(), Download{URL: srv.URL + "/x.zip", Max: 10}, filepath.Join(t.TempDir(), "f"))
		var se *StatusError
		if !errors.As(err, &se) || se.Code != http.StatusBadGateway || !strings.Contains(err.Error(), want) {
			t.Errorf("%d retries: %v, want %q", retries, err, want)
		}
	}
	missing := serve(t, http.NotFound)
	err := client(missing).Save(context.Background(), Download{URL: missing.URL + "/x.zip", Max: 10}, filepath.Join(t.TempDir(), "f"))
	if err == nil || strings.Contains(err.Error(), "giving up") {
		t.Errorf("one attempt is enough for the status 404: %v", err)
	}
}
