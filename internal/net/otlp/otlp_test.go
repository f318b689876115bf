package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/settings/telemetry"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
)

// at is the time of all spans in these tests.
var at = time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)

// sink returns a sink with the settings of an environment.
func sink(t *testing.T, words string) *Sink {
	t.Helper()
	s, _, err := Read(env(words), true)
	if err != nil {
		t.Fatal(err)
	}
	k, err := Open(Options{Settings: s, Dir: t.TempDir(), Console: io.Discard, Now: func() time.Time { return at }, Name: "prog", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// span returns a span that has ended.
func span() *telemetry.Span {
	return &telemetry.Span{
		Name: "work", Trace: [16]byte{15: 1}, ID: [8]byte{7: 2}, Above: [8]byte{7: 3}, Flags: 1, Remote: true, Began: at, Ended: at.Add(time.Second),
		Attrs:    []telemetry.Attr{{Key: "t", Value: "x"}, {Key: "n", Value: -7}, {Key: "b", Value: true}, {Key: "bad", Value: "a\xff"}},
		Failures: []telemetry.Failure{{At: at, Type: "kind", Message: "what"}},
	}
}

// text renders the fields of a message by number. nested contains the paths of fields that are
// messages themselves.
func dump(b []byte, path string, nested map[string]bool) string {
	var out strings.Builder
	field(b, func(num protowire.Number, typ protowire.Type, v []byte) {
		at := fmt.Sprintf("%s.%d", path, num)
		switch {
		case nested[at]:
			out.WriteString(dump(v, at, nested))
		case typ == protowire.BytesType:
			fmt.Fprintf(&out, "%s %q\n", at, v)
		case typ == protowire.VarintType:
			n, _ := protowire.ConsumeVarint(v)
			fmt.Fprintf(&out, "%s %d\n", at, int64(n))
		case typ == protowire.Fixed64Type:
			n, _ := protowire.ConsumeFixed64(v)
			fmt.Fprintf(&out, "%s %d\n", at, n)
		case typ == protowire.Fixed32Type:
			n, _ := protowire.ConsumeFixed32(v)
			fmt.Fprintf(&out, "%s %d\n", at, n)
		}
	})
	return out.String()
}

func paths(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

func TestSpanProto(t *testing.T) {
	want := `.1 "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
.2 "\x00\x00\x00\x00\x00\x00\x00\x02"
.4 "\x00\x00\x00\x00\x00\x00\x00\x03"
.5 "work"
.6 1
.7 1893553445000000006
.8 1893553446000000006
.9.1 "t"
.9.2.1 "x"
.9.1 "n"
.9.2.3 -7
.9.1 "b"
.9.2.2 1
.9.1 "bad"
.9.2.1 "a�"
.11.1 1893553445000000006
.11.2 "exception"
.11.3.1 "exception.type"
.11.3.2.1 "kind"
.11.3.1 "exception.message"
.11.3.2.1 "what"
.15.2 "what"
.15.3 2
.16 769
`
	if diff := cmp.Diff(want, dump(spanProto(span()), "", paths(".9 .9.2 .11 .11.3 .11.3.2 .15"))); diff != "" {
		t.Error(diff)
	}
}

func TestRecordProto(t *testing.T) {
	r := &telemetry.Record{At: at, Level: "warn", Text: "careful", Attrs: []telemetry.Attr{{Key: "prefix", Value: "u"}}, Trace: [16]byte{15: 1}, Span: [8]byte{7: 2}, Flags: 1}
	want := `.1 1893553445000000006
.2 13
.3 "warn"
.5.1 "careful"
.6.1 "prefix"
.6.2.1 "u"
.8 1
.9 "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"
.10 "\x00\x00\x00\x00\x00\x00\x00\x02"
.11 1893553445000000006
`
	if diff := cmp.Diff(want, dump(recordProto(r), "", paths(".5 .6 .6.2"))); diff != "" {
		t.Error(diff)
	}
}

// receiver is an HTTP server that records requests.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []string // path and body of each request
	header http.Header
	answer func(n int, w http.ResponseWriter)
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body := io.Reader(req.Body)
	if req.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.got = append(r.got, req.URL.Path+" "+string(b))
	r.header = req.Header
	n, answer := len(r.got), r.answer
	r.mu.Unlock()
	if answer != nil {
		answer(n, w)
	}
}

// records returns the records in a request, and the attributes of its resource.
func records(request string) (n int, resource string) {
	field([]byte(request), func(_ protowire.Number, _ protowire.Type, of []byte) {
		resource = dump(of, "", paths(".1 .1.1 .1.1.2"))
		resource, _, _ = strings.Cut(resource, "\n.2 ")
		field(of, func(num protowire.Number, _ protowire.Type, v []byte) {
			if num == 2 {
				field(v, func(num protowire.Number, _ protowire.Type, _ []byte) {
					if num == 2 {
						n++
					}
				})
			}
		})
	})
	return n, resource
}

func TestHTTP(t *testing.T) {
	r := newReceiver(t)
	k := sink(t, trace+"=otlpHttp "+metric+"=otlpHttp OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL+"/x OTEL_EXPORTER_OTLP_COMPRESSION=gzip OTEL_EXPORTER_OTLP_HEADERS=k=v%20w OTEL_RESOURCE_ATTRIBUTES=service.name=mine,a=b")
	tr := telemetry.New(telemetry.Options{Now: func() time.Time { return at }, Random: strings.NewReader(strings.Repeat("r", 1000)), Spans: k.Spans(), Measures: k.Measures()})
	for range 3 {
		_, s := telemetry.Start(tr.With(t.Context()), "work")
		s.End()
	}
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	total := map[string]int{}
	for _, g := range r.got {
		path, body, _ := strings.Cut(g, " ")
		n, resource := records(body)
		total[path] += n
		want := `.1.1.1 "service.name"
.1.1.2.1 "mine"
.1.1.1 "a"
.1.1.2.1 "b"
.1.1.1 "service.version"
.1.1.2.1 "1"
.1.1.1 "telemetry.sdk.language"
.1.1.2.1 "go"
.1.1.1 "telemetry.sdk.name"
.1.1.2.1 "prog"
.1.1.1 "telemetry.sdk.version"
.1.1.2.1 "1"`
		if diff := cmp.Diff(want, resource); diff != "" {
			t.Error(diff)
		}
	}
	if diff := cmp.Diff(map[string]int{"/x/v1/traces": 3, "/x/v1/metrics": 2}, total); diff != "" {
		t.Error(diff)
	}
	if h := r.header; h.Get("K") != "v w" || h.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("the headers are %v", h)
	}
}

// Many records are sent in batches.
func TestBatches(t *testing.T) {
	r := newReceiver(t)
	k := sink(t, trace+"=otlpHttp OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL)
	add := k.Spans()
	const n = 5000
	for range n {
		add(span())
	}
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, g := range r.got {
		_, body, _ := strings.Cut(g, " ")
		in, _ := records(body)
		if total += in; in > batchRecords {
			t.Errorf("%d records in one request", in)
		}
	}
	if total != n {
		t.Errorf("%d spans came, want %d", total, n)
	}
}

// Responses of receivers, and the errors they cause.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(n int, w http.ResponseWriter)
		want   string // expected in the error; "" means no error
		tries  int
	}{
		{"garbage", func(_ int, w http.ResponseWriter) { fmt.Fprint(w, "\xff\xff<html>") }, "", 1},
		{"once busy", func(n int, w http.ResponseWriter) {
			if n == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}, "", 2},
		{"refusal", func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, `1 span of 1 could not be delivered to http://ADDR/v1/traces: it answered "403 Forbidden"`, 1},
		{"partial", func(_ int, w http.ResponseWriter) {
			_, _ = w.Write(message(nil, 1, text(number(nil, 1, 1), 2, "too old")))
		}, `the receiver did not take them: "too old"`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newReceiver(t)
			r.answer = tt.answer
			k := sink(t, trace+"=otlpHttp OTEL_EXPORTER_OTLP_ENDPOINT=http://user:secret@"+r.Listener.Addr().String())
			q := k.spans.(*queue)
			k.Spans()(span())
			q.notify()
			waitFor(t, func() bool { // so that it is sent while the program runs
				r.mu.Lock()
				defer r.mu.Unlock()
				return len(r.got) >= tt.tries
			})
			err := k.Close(t.Context())
			text := strings.ReplaceAll(fmt.Sprint(err), r.Listener.Addr().String(), "ADDR")
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(text, tt.want) || strings.Contains(text, "secret")) {
				t.Error(text)
			}
			if len(r.got) != tt.tries {
				t.Errorf("tried %d times", len(r.got))
			}
		})
	}
}

// waitFor waits until a condition is true.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	for !so() {
		if t.Context().Err() != nil {
			t.Fatal("it never came about")
		}
		time.Sleep(time.Millisecond)
	}
}

// A receiver that does not answer is abandoned after the timeout, and the queue for it is
// limited.
func TestSilence(t *testing.T) {
	r := newReceiver(t)
	hold := make(chan struct{})
	r.answer = func(int, http.ResponseWriter) { <-hold }
	defer close(hold)
	k := sink(t, trace+"=otlpHttp OTEL_EXPORTER_OTLP_ENDPOINT="+r.URL)
	q := k.spans.(*queue)
	item := make([]byte, 1<<18)
	const n = 200 // 50 MiB
	for range n {
		q.add(item)
	}
	q.mu.Lock()
	size := q.size
	q.mu.Unlock()
	if size > waitingBytes {
		t.Errorf("%d bytes wait", size)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	err := k.Close(over)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d spans of %d could not be delivered", n, n)) {
		t.Error(err)
	}
}

// Requests to a missing receiver end after a few failures.
func TestNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	where := l.Addr().String()
	l.Close()
	for _, exporter := range []string{"otlpHttp", "otlpGrpc"} {
		k := sink(t, trace+"="+exporter+" OTEL_EXPORTER_OTLP_ENDPOINT=http://"+where)
		add := k.Spans()
		for range 20 * batchRecords {
			add(span())
		}
		err := k.Close(t.Context())
		if err == nil || !strings.Contains(err.Error(), "10240 spans of 10240") || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: %v", exporter, err)
		}
	}
}

func TestGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	got := map[string]int{}
	s := grpc.NewServer(grpc.ForceServerCodec(asIs{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		var body []byte
		if err := stream.RecvMsg(&body); err != nil {
			return err
		}
		n, _ := records(string(body))
		mu.Lock()
		got[method] += n
		mu.Unlock()
		return stream.SendMsg(&[]byte{})
	}))
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) })
	defer serving.Wait()
	defer s.Stop()
	k := sink(t, trace+"=otlpGrpc "+metric+"=grpcHttp OTEL_EXPORTER_OTLP_ENDPOINT=http://"+l.Addr().String())
	k.Spans()(span())
	_, x := telemetry.Start(telemetry.New(telemetry.Options{Now: time.Now, Random: strings.NewReader(strings.Repeat("r", 24)), Measures: k.Measures()}).With(t.Context()), "x")
	x.End()
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{services[Traces]: 1, services[Metrics]: 2}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestConsole(t *testing.T) {
	var out bytes.Buffer
	s, _, err := Read(env(trace+"=console "+metric+"=console"), false)
	if err != nil {
		t.Fatal(err)
	}
	k, err := Open(Options{Settings: s, Console: &out, Now: func() time.Time { return at }, Name: "prog", Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	k.Spans()(span())
	tr := telemetry.New(telemetry.Options{Now: k.o.Now, Random: strings.NewReader(strings.Repeat("r", 24)), Measures: k.Measures()})
	_, x := telemetry.Start(tr.With(t.Context()), "x")
	x.Text("a", "b").End()
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, second, _ := strings.Cut(out.String(), "\n")
	var sp jsonSpan
	if err := json.Unmarshal([]byte(first), &sp); err != nil {
		t.Fatal(err)
	}
	if sp.Name != "work" || sp.SpanContext.SpanID != "0000000000000002" || !sp.Parent.Remote || sp.Status.Code != "Error" || sp.Events[0].Name != "exception" {
		t.Errorf("%+v", sp)
	}
	var m struct{ ScopeMetrics []jsonScopeMetrics }
	if err := json.Unmarshal([]byte(second), &m); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, x := range m.ScopeMetrics[0].Metrics {
		names = append(names, x.Name)
	}
	if diff := cmp.Diff([]string{"x_duration", "x_success_count"}, names); diff != "" {
		t.Error(diff)
	}
}

func FuzzRejected(f *testing.F) {
	f.Add(message(nil, 1, text(number(nil, 1, 3), 2, "why")))
	f.Add([]byte("\x0a\xff"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		if n, why := rejected(answer); len(why) > len(answer) || n != 0 && len(answer) == 0 {
			t.Errorf("%d, %q of %q", n, why, answer)
		}
	})
}
