package rpc_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/internal/provider/rpc"
	"github.com/terrace-iac/terrace/provider"
	"github.com/zclconf/go-cty/cty"
)

// within fails the test if do takes too long. The limit is generous for slow machines; no
// code under test may wait for a timeout of its own.
func within(t *testing.T, do func()) {
	t.Helper()
	const d = time.Minute
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("not done after %s", d)
	}
}

func TestStartFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		env   string
		words []string
	}{
		{"exit", "TEST_MISBEHAVE=exit", []string{"it ended before it was ready (exit status 3)", "was told to exit"}},
		{"panic", "TEST_MISBEHAVE=panic", []string{"exit status 2", "panic: the test provider was told to crash"}},
		{"hang", "TEST_MISBEHAVE=hang", []string{"it was not ready 500ms after its start"}},
		{"deaf", "TEST_MISBEHAVE=deaf", []string{"could not be started"}},
		{"empty line", "TEST_MISBEHAVE=line=", []string{`its first line is "\n"`}},
		{"other program", "TEST_MISBEHAVE=line=Hello, world", []string{`its first line is "Hello, world\n", not the handshake`}},
		{"old handshake", "TEST_MISBEHAVE=line=2|5|unix|/x|grpc", []string{`version "2" of the plugin handshake`}},
		{"old protocol", "TEST_MISBEHAVE=line=1|4|unix|/x|netrpc", []string{`version "4" of the provider protocol`}},
		{"no gRPC", "TEST_MISBEHAVE=line=1|5|unix|/x|netrpc", []string{"does not speak gRPC"}},
		{"bad address", "TEST_MISBEHAVE=line=1|5|tcp|nowhere|grpc", []string{`"nowhere", is not HOST:PORT`}},
		{"bad network", "TEST_MISBEHAVE=line=1|5|udp|x:1|grpc", []string{`a network "udp"`}},
		{"bad certificate", "TEST_MISBEHAVE=line=1|5|unix|/x|grpc|" + strings.Repeat("!", 60), []string{"is not in base64"}},
		{"other certificate", "TEST_MISBEHAVE=line=1|5|unix|/x|grpc|" + strings.Repeat("A", 60), []string{"could not be started"}},
		{"endless line", "TEST_MISBEHAVE=line=" + strings.Repeat("x", 100000), []string{"longer than 65536 bytes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := options(t, 6, tt.env)
			if tt.name == "hang" {
				o.StartTimeout = 500 * time.Millisecond
			}
			within(t, func() {
				p, ds := rpc.Launch(context.Background(), o)
				if p != nil {
					_, ds = p.Schema(context.Background())
					_ = p.Close()
					if len(ds) == 1 && ds[0].Code == rpc.CodeCrash { // the first call connects
						ds[0].Code, ds[0].Detail = rpc.CodeStart, ds[0].Detail+" could not be started"
					}
				}
				code := rpc.CodeStart
				if tt.name == "hang" {
					code = provider.CodeSlow
				}
				wantError(t, ds, code, append(tt.words, "terrace/test")...)
			})
		})
	}
}

// A plugin runs without TLS if only our user can enter the directory of its socket, and
// otherwise with TLS. The second start of a plugin that needs TLS uses it immediately.
func TestStartSecured(t *testing.T) {
	for _, tt := range []struct {
		misbehave string
		starts    [2]int
		tls       bool
	}{
		{"", [2]int{1, 1}, false},
		{"old", [2]int{2, 1}, true},
		{"certificate", [2]int{2, 1}, true},
	} {
		t.Run(tt.misbehave, func(t *testing.T) {
			t.Parallel()
			cache := new(rpc.SchemaCache)
			for _, want := range tt.starts {
				calls, temp := filepath.Join(t.TempDir(), "calls"), t.TempDir()
				o := options(t, 6, "TEST_MISBEHAVE="+tt.misbehave, "TEST_CALLS="+calls)
				o.Env = slices.DeleteFunc(o.Env, func(kv string) bool { return strings.HasPrefix(kv, "TMPDIR=") })
				o.Env = append(o.Env, "TMPDIR="+temp)
				o.Cache = cache
				p := launch(t, o)
				schemaOf(t, p)
				if p.TLS() != tt.tls {
					t.Errorf("TLS is %t", p.TLS())
				}
				text, err := os.ReadFile(calls)
				if err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(string(text), "start"); n != want {
					t.Errorf("it was started %d times, not %d:\n%s", n, want, text)
				}
				if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
					t.Errorf("left behind: %v %v", left, err)
				}
			}
		})
	}
}

func TestStartOfNoProgram(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	plain := filepath.Join(dir, "plain")
	for path, mode := range map[string]os.FileMode{text: 0o755, plain: 0o644} {
		if err := os.WriteFile(path, []byte("no program"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{filepath.Join(dir, "missing"), text, plain, dir} {
		_, ds := rpc.Launch(context.Background(), rpc.Options{Addr: addr.DefaultProvider("x"), Path: path, Dir: dir})
		wantError(t, ds, rpc.CodeStart, path, "cannot be run")
	}
}

// An interrupted start is not a failure of the plugin.
func TestStartInterrupted(t *testing.T) {
	for _, d := range []time.Duration{0, 200 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), d)
		defer cancel()
		within(t, func() {
			_, ds := rpc.Launch(ctx, options(t, 6, "TEST_MISBEHAVE=hang"))
			wantError(t, ds, rpc.CodeInterrupted, "Provider start interrupted", "terrace/test")
		})
	}
}

// A grandchild that keeps the output open does not delay Close.
func TestCloseWithGrandchild(t *testing.T) {
	p := launch(t, options(t, 6, "TEST_MISBEHAVE=fork"))
	schemaOf(t, p)
	within(t, func() { _ = p.Close() })
}

func TestStrayOutput(t *testing.T) {
	p := launch(t, options(t, 6, "TEST_MISBEHAVE=stray"))
	o := managed(t, p, "test_object")
	for range 20 {
		o.create(vals{"name": str("n")})
	}
}

func TestCrash(t *testing.T) {
	for _, tt := range []struct {
		what  string
		words []string
	}{
		{"crash", []string{"ended (exit status 2)", "panic: the test provider was told to crash"}},
		{"exit", []string{"ended (exit status 7)"}},
	} {
		for _, call := range []string{"plan", "create", "read", "configure"} {
			t.Run(tt.what+" "+call, func(t *testing.T) {
				t.Parallel()
				p := launch(t, options(t, 6))
				o := managed(t, p, "test_object")
				config := vals{"name": str("n"), "misbehave": str(tt.what + ":" + call)}
				words := append([]string{"terrace/test", "test_object"}, tt.words...)
				within(t, func() {
					switch call {
					case "plan":
						_, _, ds := o.plan(o.null(), config)
						wantError(t, ds, rpc.CodeCrash, append(words, "plan test_object")...)
					case "create":
						_, ds := o.apply(o.null(), config)
						wantError(t, ds, rpc.CodeCrash, append(words, "create test_object")...)
					case "read":
						state := o.create(config).State
						_, ds := p.Read(context.Background(), provider.ReadRequest{Type: o.typ, Prior: state})
						wantError(t, ds, rpc.CodeCrash, append(words, "read test_object")...)
					case "configure":
						v := coerce(t, schemaOf(t, p).Config, vals{"misbehave": str(tt.what + ":configure")})
						wantError(t, p.Configure(context.Background(), v), rpc.CodeCrash, append(tt.words, "take its configuration")...)
					}
					start := time.Now()
					for range 100 { // all later calls fail immediately, as calls that did not reach the plugin
						_, _, ds := o.plan(o.null(), config)
						wantError(t, ds, provider.CodeUnasked)
					}
					if d := time.Since(start); d > 30*time.Second {
						t.Errorf("100 calls after the crash took %s", d)
					}
					_ = p.Close()
				})
			})
		}
	}
}

// A crash ends every running call.
func TestCrashDuringOthers(t *testing.T) {
	p := launch(t, options(t, 5))
	record := filepath.Join(t.TempDir(), "record")
	configure(t, p, vals{"record_path": str(record)})
	o := managed(t, p, "test_record")
	within(t, func() {
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				_, ds := o.apply(o.null(), vals{"name": str("n"), "sleep_ms": cty.NumberIntVal(600000)})
				wantError(t, ds, rpc.CodeCrash, "create test_record")
			})
		}
		for begun := 0; begun < 10; time.Sleep(5 * time.Millisecond) {
			text, _ := os.ReadFile(record)
			begun = strings.Count(string(text), "begin\t")
		}
		if _, err := p.CallFunction(context.Background(), "crash", nil); err == nil || !strings.Contains(err.Error(), "told to crash") {
			t.Errorf("crash: %v", err)
		}
		wg.Wait()
	})
}

// A call that hangs ends with its context, and so does Close.
func TestHang(t *testing.T) {
	p := launch(t, options(t, 6))
	o := managed(t, p, "test_object")
	c := coerce(t, o.b, vals{"misbehave": str("hang:plan")})
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	within(t, func() {
		_, ds := p.Plan(ctx, provider.PlanRequest{Type: o.typ, Prior: o.null(), Config: c, Proposed: c})
		wantError(t, ds, rpc.CodeInterrupted, "plan test_object")
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, ds := p.Plan(context.Background(), provider.PlanRequest{Type: o.typ, Prior: o.null(), Config: c, Proposed: c})
			wantError(t, ds, rpc.CodeClosed)
		}()
		time.Sleep(100 * time.Millisecond) // usually the call is running by now; the result is the same if it is not
		_ = p.Close()
		<-done
	})
}

func TestSchemaNonsense(t *testing.T) {
	ctx := context.Background()
	for what, words := range map[string][]string{
		"schema-crash":     {"tell its schema", "told to crash"},
		"schema-error":     {"told to have no schema"},
		"schema-provider":  {"the schema of its configuration cannot be used"},
		"schema-functions": {`in the function "bad"`, "in the result"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := launch(t, options(t, 6, "TEST_MISBEHAVE="+what))
			_, ds := p.Schema(ctx)
			if !ds.HasErrors() {
				t.Fatal("no error")
			}
			for _, w := range words {
				if !strings.Contains(ds.Err().Error(), w) {
					t.Errorf("%q is not in %v", w, ds.Err())
				}
			}
			if _, ds := p.Read(ctx, provider.ReadRequest{Type: "test_object"}); !ds.HasErrors() {
				t.Error("a call without a schema works")
			}
		})
	}
	for what, words := range map[string][]string{
		"schema-garbage": {"the schema of test_object cannot be used"},
		"schema-invalid": {"the schema of test_object cannot be used", "in the attribute id", "type"},
	} {
		t.Run(what, func(t *testing.T) { // one type is invalid, and the others work
			t.Parallel()
			p := launch(t, options(t, 6, "TEST_MISBEHAVE="+what))
			s := schemaOf(t, p)
			if s.Resource(addr.Managed, "test_object") != nil {
				t.Error("there is a schema")
			}
			err := s.Invalid(addr.Managed, "test_object")
			if err == nil || !strings.Contains(err.Error(), words[len(words)-1]) && len(words) > 1 {
				t.Errorf("Invalid: %v", err)
			}
			_, ds := p.Import(ctx, provider.ImportRequest{Type: "test_object", ID: "x"})
			wantError(t, ds, rpc.CodeCall, words...)
			managed(t, p, "test_record").create(vals{"name": str("n")})
		})
	}
	p := launch(t, options(t, 6, "TEST_MISBEHAVE=schema-hang"))
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, ds := p.Schema(short)
	wantError(t, ds, rpc.CodeInterrupted, "tell its schema")
}

func TestStderr(t *testing.T) {
	var mu sync.Mutex
	var out bytes.Buffer
	o := options(t, 6)
	o.Stderr = writer(func(b []byte) {
		mu.Lock()
		defer mu.Unlock()
		out.Write(b)
	})
	p := launch(t, o)
	if _, err := p.CallFunction(context.Background(), "crash", nil); err == nil {
		t.Error("no error")
	}
	_ = p.Close()
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(out.String(), "panic: the test provider was told to crash") {
		t.Errorf("log: %s", out.String())
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }

func TestWithoutTLS(t *testing.T) {
	o := options(t, 5)
	o.DisableTLS = true
	managed(t, launch(t, o), "test_object").create(vals{"name": str("n")})
}

// The schema is requested once per program, or each time if the plugin requires that.
func TestSchemaCache(t *testing.T) {
	for _, protocol := range []int{5, 6} {
		o := options(t, protocol)
		o.Cache = new(rpc.SchemaCache)
		first := schemaOf(t, launch(t, o))
		again := launch(t, o)
		if schemaOf(t, again) != first {
			t.Errorf("protocol %d: the schema was read again", protocol)
		}
		managed(t, again, "test_object").create(vals{"name": str("n")})
		o.Args = []string{"other"}
		if schemaOf(t, launch(t, o)) == first {
			t.Errorf("protocol %d: other arguments have the same schema", protocol)
		}

		// A program of the same name is the same program, whatever its path.
		o.Args, o.Name = nil, "the test provider"
		first = schemaOf(t, launch(t, o))
		link := filepath.Join(t.TempDir(), "copy")
		if err := os.Symlink(o.Path, link); err != nil {
			t.Skip(err)
		}
		o.Path = link
		if schemaOf(t, launch(t, o)) != first {
			t.Errorf("protocol %d: the schema was read again for a copy of the program", protocol)
		}
	}
}

func TestProcessEnvironmentAndFolder(t *testing.T) {
	o := options(t, 6)
	p := launch(t, o)
	configure(t, p, vals{"world": str(".")})
	managed(t, p, "test_object").create(vals{"name": str("here")})
	if _, err := os.Stat(filepath.Join(o.Dir, "test_object.id-here.json")); err != nil {
		t.Error(err)
	}
}
