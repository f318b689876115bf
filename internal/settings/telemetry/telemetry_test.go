package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/source"
)

// clock advances by a millisecond with every call.
func clock() func() time.Time {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time {
		at = at.Add(time.Millisecond)
		return at
	}
}

// counting is a reader of bytes that are all different.
type counting struct{ n byte }

func (c *counting) Read(b []byte) (int, error) {
	for i := range b {
		c.n++
		b[i] = c.n
	}
	return len(b), nil
}

// record returns a tracer, and the spans that it exports.
func record(p Parent, m *Measures) (context.Context, *[]*Span) {
	var got []*Span
	t := New(Options{Now: clock(), Random: &counting{}, Parent: p, Spans: func(s *Span) { got = append(got, s) }, Measures: m})
	return t.With(context.Background()), &got
}

// Without telemetry nothing is created and nothing is allocated.
func TestOff(t *testing.T) {
	ctx := t.Context()
	same, s := Start(ctx, "x")
	if same != ctx || s != nil || On(ctx) || s.Traced() {
		t.Error("a span was made")
	}
	n := testing.AllocsPerRun(100, func() {
		_, s := Start(ctx, "x")
		s.Text("a", "b").Count("n", 1).Flag("f", true)
		s.Outcome("o", "p")
		s.OutcomeCount("q", 2)
		s.Fail("t", "m")
		s.Messages(nil)
		s.End()
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSpans(t *testing.T) {
	p, err := ParseParent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if err != nil {
		t.Fatal(err)
	}
	ctx, got := record(p, nil)
	above, root := Start(ctx, "root")
	_, child := Start(above, "child")
	child.Text("path", "/u").Outcome("outcome", "failed")
	child.Messages(diag.List{{
		Code: "a/b", Summary: "It went wrong", Detail: "the secret detail",
		At: &source.Range{Filename: "f.tf", Start: hcl.Pos{Line: 3, Column: 4}},
	}, {Severity: diag.Warning, Summary: "only a warning"}})
	child.End()
	root.End()
	if len(*got) != 2 || (*got)[0] != child || (*got)[1] != root {
		t.Fatalf("the spans are %v", *got)
	}
	want := []Failure{{child.Began.Add(time.Millisecond), "a/b", "It went wrong (f.tf:3,4)"}}
	if diff := cmp.Diff(want, child.Failures); diff != "" {
		t.Error(diff)
	}
	if child.Above != root.ID || root.Above != p.Span || !root.Remote || child.Remote || root.Children != 1 {
		t.Error("the spans do not hang together")
	}
	if child.Trace != p.Trace || root.ID == child.ID || !child.Ended.After(child.Began) {
		t.Error("trace, identifiers or times are wrong")
	}
	if want := "00-0af7651916cd43dd8448eb211c80319c-" + fmt.Sprintf("%x", child.ID) + "-01"; child.Parent() != want {
		t.Errorf("told as %s, want %s", child.Parent(), want)
	}
}

// A trace without the sampled flag is not exported, but its ID is passed on to programs.
func TestNotSampled(t *testing.T) {
	p, err := ParseParent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
	if err != nil {
		t.Fatal(err)
	}
	m := &Measures{Now: clock()}
	ctx, got := record(p, m)
	_, s := Start(ctx, "root")
	s.End()
	if len(*got) != 0 || !strings.HasSuffix(s.Parent(), "-00") || !s.Traced() {
		t.Errorf("%d spans, told as %s", len(*got), s.Parent())
	}
	if len(m.list) != 2 {
		t.Error("it was not measured")
	}
}

// A list of errors is shortened, so that a span stays small.
func TestManyMessages(t *testing.T) {
	ctx, _ := record(Parent{}, nil)
	_, s := Start(ctx, "x")
	var ds diag.List
	for range 40 {
		ds = append(ds, &diag.Message{Severity: diag.Error, Summary: "no"})
	}
	s.Messages(ds)
	if n := len(s.Failures); n != mostFailures+1 || s.Failures[n-1].Message != "and 35 more errors" {
		t.Errorf("%d failures, the last %v", n, s.Failures[n-1])
	}
}

func TestLog(t *testing.T) {
	var got []*Record
	tr := New(Options{Now: clock(), Random: &counting{}, Spans: func(*Span) {}, Logs: func(r *Record) { got = append(got, r) }})
	ctx, s := Start(tr.With(t.Context()), "x")
	Log(ctx, "warn", "careful", "unit")
	Log(tr.With(t.Context()), "info", "before any", "")
	Log(ctx, "info", "", "unit")
	Log(t.Context(), "info", "nobody", "")
	if len(got) != 2 || got[0].Span != s.ID || got[0].Trace != s.Trace || got[0].Severity() != 13 || !cmp.Equal(got[0].Attrs, []Attr{{"prefix", "unit"}}) {
		t.Fatalf("%+v", got)
	}
	if got[1].Span != [8]byte{} || got[1].Attrs != nil || got[1].Severity() != 9 {
		t.Errorf("%+v", got[1])
	}
}

func TestPrograms(t *testing.T) {
	ctx, got := record(Parent{}, nil)
	ctx, root := Start(ctx, "root")
	var ran sys.Command
	fails := error(nil)
	run := Programs(func(_ context.Context, c sys.Command) error {
		ran = c
		return fails
	})
	env := sys.Env{"A=b", "TRACEPARENT=old"}
	prog := filepath.Join(t.TempDir(), "prog")
	if err := os.WriteFile(prog, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := run(ctx, sys.Command{Path: prog, Args: []string{"secret"}, Dir: "/d", Env: env}); err != nil {
		t.Fatal(err)
	}
	s := (*got)[0]
	if want := (sys.Env{"A=b", "TRACEPARENT=" + s.Parent()}); !cmp.Equal(ran.Env, want) || s.Above != root.ID {
		t.Errorf("the environment is %v, want %v", ran.Env, want)
	}
	want := []Attr{{"binary", "prog"}, {"binary_path", prog}, {"dir", "/d"}, {"exit_code", 0}}
	if diff := cmp.Diff(want, s.Attrs); diff != "" || s.Name != "run_prog" || len(s.Failures) > 0 {
		t.Error(diff, s.Name, s.Failures)
	}
	fails = errors.New("exec: the secret was not found")
	if err := run(ctx, sys.Command{Path: "secret", Dir: "/d"}); err == nil {
		t.Error("the error is lost")
	}
	if s := (*got)[1]; s.Name != "run_program" || !cmp.Equal(s.Attrs, []Attr{{"dir", "/d"}}) {
		t.Errorf("a program that there is not is %s %v", s.Name, s.Attrs)
	}
	if f := (*got)[1].Failures; len(f) != 1 || strings.Contains(f[0].Message, "secret") {
		t.Errorf("the failures are %v", f)
	}
	if err := run(t.Context(), sys.Command{Path: "prog", Env: env}); err == nil || !cmp.Equal(ran.Env, env) {
		t.Error("a program was told of a span though there is none")
	}
}

func TestMeasures(t *testing.T) {
	m := &Measures{Now: clock()}
	ctx, _ := record(Parent{}, m)
	for i := range 3 {
		_, s := Start(ctx, "hook_a b")
		s.Text("unit", "u").OutcomeCount("exit_code", i)
		if i == 2 {
			s.Fail("t", "m")
		}
		s.End()
	}
	var text bytes.Buffer
	m.Each(func(x *Measure) {
		for _, p := range x.Points {
			fmt.Fprintln(&text, x.Name, p.Attrs, p.Count, p.Sum, p.Min, p.Max, p.Buckets[1], x.Spread)
		}
	})
	want := `hook_a_b_duration [{unit u}] 3 4 1 2 3 true
hook_a_b_success_count [] 2 0 0 0 0 false
errors_count [] 1 0 0 0 0 false
hook_a_b_errors_count [] 1 0 0 0 0 false
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}

// The number of attribute sets of a metric is limited, whatever the number of units.
func TestMeasuresAreBounded(t *testing.T) {
	m := &Measures{Now: clock()}
	ctx, _ := record(Parent{}, m)
	const n = 5000
	for i := range n {
		_, s := Start(ctx, "x")
		s.Count("i", i).End()
	}
	x := m.all["x_duration"]
	last := x.Points[len(x.Points)-1]
	if len(x.Points) != mostPoints || last.Attrs[0].Key != overflow || last.Count != n-mostPoints+1 {
		t.Errorf("%d points, the last one %v with %d", len(x.Points), last.Attrs, last.Count)
	}
}

func TestParseParent(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for text, ok := range map[string]bool{
		"00-" + trace + "-" + span + "-01":                    true,
		"00-" + trace + "-" + span + "-00":                    true,
		"cc-" + trace + "-" + span + "-01-more":               true,
		"00-" + trace + "-" + span + "-01-more":               false,
		"ff-" + trace + "-" + span + "-01":                    false,
		"00-" + strings.ToUpper(trace) + "-" + span + "-01":   false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":  false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01": false,
		"00-" + trace + "-" + span:                            false,
		"00-" + trace[1:] + "-" + span + "-01":                false,
		"0x-" + trace + "-" + span + "-01":                    false,
		"":                                                    false,
	} {
		if p, err := ParseParent(text); (err == nil) != ok || p.Given() != ok {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
}

func FuzzParseParent(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add("---")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseParent(text)
		if err != nil {
			return
		}
		s := Span{Trace: p.Trace, ID: p.Span, Flags: p.Flags}
		if again, err := ParseParent(s.Parent()); err != nil || again != p {
			t.Errorf("%q: %v, %v", text, again, err)
		}
	})
}

// The context that Below returns has the span of one context and ends with the other.
func TestBelow(t *testing.T) {
	ctx, spans := record(Parent{}, nil)
	above, s := Start(ctx, "above")
	own, cancel := context.WithCancel(t.Context())
	below := Below(own, above)
	_, inner := Start(below, "inner")
	inner.End()
	s.End()
	if got := (*spans)[0]; got.Name != "inner" || got.Above != s.ID {
		t.Errorf("%s is below %x, want %x", got.Name, got.Above, s.ID)
	}
	cancel()
	if below.Err() == nil || above.Err() != nil {
		t.Error("the context does not end with its own")
	}
	if ctx := Below(t.Context(), t.Context()); On(ctx) {
		t.Error("spans are made without a tracer")
	}
}
