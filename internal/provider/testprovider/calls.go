package testprovider

import (
	"context"
	"os"
	"path"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/terrace-iac/terrace/internal/provider/rpc/pb6"
	"google.golang.org/grpc"
)

// A callLog is the file in the variable TEST_CALLS. All processes with this variable record
// their calls in it, for tests of shared processes, concurrent calls and the end of
// processes. Its lines have these tab-separated fields:
//
//	start  PROCESS  TIME  the working directory, the variable AWS_ACCESS_KEY_ID
//	begin  PROCESS  TIME  NUMBER  CALL  TYPE  NAME
//	end    PROCESS  TIME  NUMBER
//	exit   PROCESS  TIME
//
// PROCESS is the process ID, and TIME is in nanoseconds. NUMBER identifies a call of a
// process. CALL is its name in protocol 6. TYPE and NAME of the object are empty for calls
// without one. A killed process writes no exit.
type callLog struct {
	path string // "" disables the log
	last atomic.Int64
}

// readPause returns the duration in the variable TEST_READ_MS. It delays calls that read an
// object or a data source, as a network would.
func readPause() time.Duration {
	ms, _ := strconv.Atoi(os.Getenv("TEST_READ_MS"))
	return time.Duration(ms) * time.Millisecond
}

// callPause returns the minimum duration of every call, from the variable TEST_CALL_MS.
func callPause() time.Duration {
	ms, _ := strconv.Atoi(os.Getenv("TEST_CALL_MS"))
	return time.Duration(ms) * time.Millisecond
}

func (l *callLog) write(what string, fields ...string) {
	at := strconv.FormatInt(now().UnixNano(), 10)
	appendLine(l.path, append([]string{what, strconv.Itoa(os.Getpid()), at}, fields...)...)
}

func (l *callLog) started() {
	dir, _ := os.Getwd()
	l.write("start", dir, os.Getenv("AWS_ACCESS_KEY_ID"))
}

// options returns the server options for the log and the delays. It returns none if neither
// is enabled.
func (l *callLog) options(s *server) []grpc.ServerOption {
	if l.path == "" && readPause() == 0 {
		return nil
	}
	return []grpc.ServerOption{grpc.UnaryInterceptor(l.around(s))}
}

// around records the server's calls. It records the end before the response is sent, so
// that calls overlap in the file only if they overlap for the caller.
func (l *callLog) around(s *server) grpc.UnaryServerInterceptor {
	names := callNames()
	pause, read := callPause(), readPause()
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		call := path.Base(info.FullMethod)
		if !names[call] { // a call of another service
			return handle(ctx, req)
		}
		n := strconv.FormatInt(l.last.Add(1), 10)
		typ, name := s.about(req)
		l.write("begin", n, call, typ, name)
		defer l.write("end", n)
		switch call {
		case "StopProvider":
		case "ReadResource", "ReadDataSource":
			time.Sleep(pause + read)
		default:
			time.Sleep(pause)
		}
		return handle(ctx, req)
	}
}

// callNames returns the names of provider calls in our bindings, which are those of
// protocol 6.
func callNames() map[string]bool {
	out := map[string]bool{}
	for _, m := range pb6.Provider_ServiceDesc.Methods {
		out[m.MethodName] = true
	}
	return out
}

// about returns the type and the name of the object that a call is about.
func (s *server) about(req any) (typ, name string) {
	if r, ok := req.(interface{ GetName() string }); ok {
		return "", r.GetName() // for a function
	}
	r, ok := req.(interface{ GetTypeName() string })
	if !ok {
		return "", ""
	}
	typ = r.GetTypeName()
	b := s.block(typ)
	switch typ {
	case "test_data":
		b = s.data
	case "test_secret":
		b = s.secret
	}
	if b == nil {
		return typ, ""
	}
	for _, v := range values(req) {
		if obj, err := decodeValue(v, s.codec(b)); err == nil && text(obj, "name") != "" {
			return typ, text(obj, "name")
		}
	}
	return typ, ""
}

// values returns the values of a request that may be the object.
func values(req any) (out []*pb6.Value) {
	if r, ok := req.(interface{ GetConfig() *pb6.Value }); ok {
		out = append(out, r.GetConfig())
	}
	if r, ok := req.(interface{ GetPriorState() *pb6.Value }); ok {
		out = append(out, r.GetPriorState())
	}
	if r, ok := req.(interface{ GetCurrentState() *pb6.Value }); ok {
		out = append(out, r.GetCurrentState())
	}
	return out
}
