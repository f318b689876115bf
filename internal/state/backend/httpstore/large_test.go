package httpstore

import (
	"crypto/md5"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

// filed is a service that stores the state in a file, so that it needs little memory.
type filed struct {
	path  string
	cut   int // number of responses that break off in the middle
	gone  bool
	wrote int64
}

func (f *filed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == "GET" {
		in, err := os.Open(f.path)
		if err != nil || f.gone && f.cut == 0 {
			http.NotFound(w, r)
			return
		}
		defer in.Close()
		s, _ := in.Stat()
		w.Header().Set("Content-Length", fmt.Sprint(s.Size()))
		if f.cut > 0 {
			f.cut--
			_, _ = io.CopyN(w, in, s.Size()/2)
			return
		}
		_, _ = io.Copy(w, in)
		return
	}
	out, err := os.Create(f.path)
	if err == nil {
		sum := md5.New()
		f.wrote, err = io.Copy(io.MultiWriter(out, sum), r.Body)
		if base64.StdEncoding.EncodeToString(sum.Sum(nil)) != r.Header.Get("Content-MD5") || f.wrote != r.ContentLength {
			err = io.ErrUnexpectedEOF
		}
		out.Close()
	}
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
}

func largeState(n int) *state.State {
	d := state.New().Edit()
	for i := range n {
		d.Apply(state.Change{
			Object:   addr.Object{Instance: addr.Instance{Resource: addr.Resource{Type: "terraform_data", Name: fmt.Sprint("x", i)}}},
			Provider: addr.ProviderConfig{Provider: addr.BuiltIn}, New: &state.Object{JSON: []byte(`{"id":"` + strings.Repeat("0123456789", 400) + `"}`)},
		})
	}
	return d.Freeze().WithMeta("l", 1, state.LanguageVersion)
}

func largePlace(t *testing.T, f *filed) backendtest.Place {
	f.path = filepath.Join(t.TempDir(), "state")
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return backendtest.Place{Config: map[string]cty.Value{"address": cty.StringVal(server.URL)}, Services: backendtest.Services(t)}
}

// A large state is read and written without its text being in memory: requests, checksums
// and the comparison before a write use the text while it is encoded or read.
func TestLargeStatesAreStreamed(t *testing.T) {
	f := &filed{}
	p := largePlace(t, f)
	st, err := backendtest.Open(t, Kind(), p).Store("", backend.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	large := largeState(8000)
	allocated := func(what string, most float64, do func()) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		if times := float64(after.TotalAlloc-before.TotalAlloc) / float64(f.wrote); times > most {
			t.Errorf("%s allocates %.2f times the text of %d bytes, more than %v", what, times, f.wrote, most)
		}
	}
	if _, ds := st.Read(ctx); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	f.wrote = 32 << 20
	allocated("writing", 0.3, func() {
		if ds := st.Write(ctx, large); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
	})
	var got *state.State
	allocated("reading", 1.6, func() { // the memory of the state itself
		var ds diag.List
		if got, ds = st.Read(ctx); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
	})
	if !got.Equal(large) {
		t.Error("another state is read than was written")
	}
	allocated("writing once more", 0.3, func() { // it is compared by reading
		if ds := st.Write(ctx, got.WithMeta("l", 2, state.LanguageVersion)); ds.HasErrors() {
			t.Fatal(ds.Err())
		}
	})
	if _, err := object0(t, p).Write(ctx, []byte("{}"), backend.Prior{Unknown: true}, ""); err != nil {
		t.Fatal(err)
	}
	if ds := st.Write(ctx, large); !ds.HasErrors() || ds[0].Code != "backend/changed" {
		t.Errorf("a state that somebody else wrote is written over: %v", ds.Err())
	}
}

// A response that breaks off is requested again, and its content is discarded.
func TestAnswersThatBreakOff(t *testing.T) {
	f := &filed{}
	p := largePlace(t, f)
	o := object0(t, p)
	if _, err := o.Send(ctx, backend.Bytes([]byte(strings.Repeat("x", 100_000))), backend.Prior{}, ""); err != nil {
		t.Fatal(err)
	}
	f.cut = 1
	if got, err := o.Read(ctx); err != nil || len(got.Data) != 100_000 {
		t.Errorf("%d bytes, %v", len(got.Data), err)
	}
	f.cut, f.gone = 1, true
	if got, err := o.Read(ctx); err != nil || got.Data != nil {
		t.Errorf("the state is gone, but %d bytes are read: %v", len(got.Data), err)
	}
	f.cut, f.gone = 10, false
	if got, err := o.Read(ctx); err == nil {
		t.Errorf("%d bytes of an answer that always breaks off are read", len(got.Data))
	}
}
