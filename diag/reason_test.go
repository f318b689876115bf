package diag_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/diag"
)

// silent returns a client's error for a server that does not respond.
func silent(t *testing.T) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	client := http.Client{Transport: &http.Transport{ResponseHeaderTimeout: time.Millisecond}}
	_, err = client.Get("http://" + l.Addr().String())
	return errors.Unwrap(err)
}

// Messages contain the cause without Go's names of calls and types.
func TestReason(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: "/x/y", Err: syscall.ENOENT}
	dial := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	_, num := strconv.Atoi("many")
	var n struct{ Serial int }
	for _, c := range []struct {
		err  error
		want string
	}{
		{missing, "/x/y: no such file or directory"},
		{fmt.Errorf("the key: %w", missing), "the key: /x/y: no such file or directory"},
		{errors.Join(missing, io.ErrUnexpectedEOF), "/x/y: no such file or directory\nit ends too early"},
		{fmt.Errorf("asking: %w", context.Canceled), "asking: interrupted"},
		{context.DeadlineExceeded, "it took too long"},
		{&url.Error{Op: "Get", URL: "https://a.example/x", Err: silent(t)}, "https://a.example/x: no answer came in time"},
		{&url.Error{Op: "Get", URL: "https://a.example/x", Err: io.EOF}, "https://a.example/x: the server closed the connection"},
		{&url.Error{Op: "Get", URL: "https://a.example/x", Err: dial}, "https://a.example/x: 127.0.0.1:9: connection refused"},
		{fmt.Errorf("127.0.0.1:9: %w", dial), "127.0.0.1:9: connection refused"},
		{&net.DNSError{Err: "no such host", Name: "a.example", IsNotFound: true}, "no host has the name a.example"},
		{num, `"many" is not a valid whole number`},
		{json.Unmarshal([]byte(`{"Serial": 1`), &n), "the JSON text ends too early"},
		{json.Unmarshal([]byte(`[]`), &n), "the JSON value is an array, which cannot be there"},
		{json.Unmarshal([]byte(`{"Serial": "a"}`), &n), `the JSON value of "Serial" is a string, which cannot be there`},
		{errors.New("plain words"), "plain words"},
	} {
		if got := diag.Reason(c.err); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	if got := diag.Errorf("", nil, "S", "The file %s cannot be read: %s.", "/x/y", missing)[0].Detail; got != "The file /x/y cannot be read: no such file or directory." {
		t.Errorf("the path is there twice: %s", got)
	}
}
