package workspace

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/workdir"
)

// A request that waits while another one uses the same module or unit ends when it is canceled.
func TestWaitingRequestsAreCanceled(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"main.tf": "locals {\n  a = 1\n}\n", "u/terragrunt.hcl": "locals {\n  a = 1\n}\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, who, err := workdir.Embedded(workdir.Embedding{Dir: dir, Environ: []string{"HOME=" + t.TempDir()}, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	s := New(d, who)
	m, u := s.Module(t.Context(), dir), s.Unit(t.Context(), filepath.Join(dir, "u", "terragrunt.hcl"))
	if m == nil || u == nil {
		t.Fatal("no module or no unit")
	}
	for _, g := range []gate{m.using, u.using} {
		if !g.enter(t.Context()) {
			t.Fatal("the result is in use")
		}
		defer g.leave()
	}
	for name, request := range map[string]func(context.Context){
		"module explain":   func(ctx context.Context) { m.Explain(ctx, "local.a") },
		"module rules":     func(ctx context.Context) { m.Rules(ctx) },
		"module instances": func(ctx context.Context) { m.Instances(ctx, "module.a") },
		"unit explain":     func(ctx context.Context) { u.Explain(ctx, "", "local.a", "") },
		"unit rules":       func(ctx context.Context) { u.Rules(ctx) },
		"unit instances":   func(ctx context.Context) { u.Instances(ctx, "module.a") },
		"unit directory":   func(ctx context.Context) { u.ModuleDir(ctx) },
		"unit text":        func(ctx context.Context) { _, _ = u.Render(ctx, "") },
		"unit imports":     func(ctx context.Context) { u.WithImports(ctx) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { // ends when the request does
			request(ctx)
			close(ended)
		}()
		select {
		case <-ended:
			t.Errorf("%s did not wait", name)
		case <-time.After(20 * time.Millisecond):
		}
		cancel()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s waits after it was canceled", name)
		}
	}
}
