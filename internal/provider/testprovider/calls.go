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

// A callLog is the file that the variable TEST_CALLS names, in which all processes
// that have it in their environment write what they are asked, for tests of who
// shares a process, how many calls there are at once and how processes end. Its
// lines have tabs between these fields:
//
//	start  PROCESS  TIME  the working folder, the variable AWS_ACCESS_KEY_ID
//	begin  PROCESS  TIME  NUMBER  CALL  TYPE  NAME
//	end    PROCESS  TIME  NUMBER
//	exit   PROCESS  TIME
//
// PROCESS is the number that the system gave it, TIME is in nanoseconds, NUMBER
// tells the calls of a process apart, CALL is the name in protocol 6. The TYPE and
// the NAME of the object are empty where the call has none. A process that is killed writes no exit.
type callLog struct {
	path string // "" writes nothing
	last atomic.Int64
}

// readPause is how long the variable TEST_READ_MS makes a call take that asks what an
// object or a data source is like, as a call over a network does.
func readPause() time.Duration {
	ms, _ := strconv.Atoi(os.Getenv("TEST_READ_MS"))
	return time.Duration(ms) * time.Millisecond
}

// callPause is how long the variable TEST_CALL_MS makes every call take, at least.
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

// options are what a server needs that writes the log or waits; none if it does neither.
func (l *callLog) options(s *server) []grpc.ServerOption {
	if l.path == "" && readPause() == 0 {
		return nil
	}
	return []grpc.ServerOption{grpc.UnaryInterceptor(l.around(s))}
}

// around writes the lines of the server's calls. The end is written before the
// answer goes out: calls overlap in the file only where they do for the caller.
func (l *callLog) around(s *server) grpc.UnaryServerInterceptor {
	names := callNames()
	pause, read := callPause(), readPause()
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		call := path.Base(info.FullMethod)
		if !names[call] { // of another service
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

// callNames are the calls of providers, which our bindings name as protocol 6 does.
func callNames() map[string]bool {
	out := map[string]bool{}
	for _, m := range pb6.Provider_ServiceDesc.Methods {
		out[m.MethodName] = true
	}
	return out
}

// about is the type and the name of the object that a call is about.
func (s *server) about(req any) (typ, name string) {
	if r, ok := req.(interface{ GetName() string }); ok {
		return "", r.GetName() // of a function
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

// values are those of a request that may hold the object.
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
