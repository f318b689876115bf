package modules_test

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate/modules"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// embedded returns a directory in which no program can be started.
func embedded(t *testing.T) *workdir.Directory {
	t.Helper()
	d, _, err := workdir.Embedded(workdir.Embedding{Dir: t.TempDir(), NoExec: true, Environ: []string{"HOME=" + t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Newest ignores prereleases and texts that are no versions, and compares numbers, not texts.
func TestNewest(t *testing.T) {
	for want, in := range map[string]string{"1.10.0": "1.9.0 1.10.0 2.0.0-rc1 latest", "v1.0": "v1.0 0.9", "": "1.0.0-beta x"} {
		if got := modules.Newest(strings.Fields(in)); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
	if got := modules.Newest(nil); got != "" {
		t.Error(got)
	}
}

// A version in the source is the version, without a request to the registry.
func TestVersionInSource(t *testing.T) {
	d := embedded(t)
	cfg, ds := d.Settings()
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v, err := modules.NewestVersion(ctx, d, cfg, "tfr:///ns/name/system?version=1.2.3"); v != "1.2.3" || err != nil {
		t.Error(v, err)
	}
	if _, err := modules.NewestVersion(ctx, d, cfg, "tfr:///ns/name"); err == nil {
		t.Error("no error")
	}
}

// A module that was not fetched is an error that names the command to run. Nothing is written.
func TestFetched(t *testing.T) {
	d := embedded(t)
	cfg, ds := d.Settings()
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	fetched := modules.Fetched(d, cfg)
	for src, code := range map[string]string{
		"git::https://example.com/m.git?ref=v1": diag.CodeUnitNotFetched,
		"tfr:///ns/name/system":                 diag.CodeUnitNotFetched,
		"tfr:///ns/name/system?version=1.0.0":   diag.CodeUnitNotFetched,
		"tfr:///ns/name":                        diag.CodeUnitModuleSource,
		"ns/name/system":                        diag.CodeUnitModuleSource,
	} {
		if dir, ds := fetched(t.Context(), src); dir != "" || len(ds) != 1 || ds[0].Code != code {
			t.Errorf("%s: %q %v", src, dir, ds.Err())
		}
	}
	for _, dir := range []string{d.Dir, d.Env.Get("HOME")} {
		if err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
			if path != "." {
				t.Errorf("%s was written", path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
}
