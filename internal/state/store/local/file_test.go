package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/terrace-iac/terrace/internal/state/store/storetest"
)

func readSerial(t *testing.T, path string) uint64 {
	t.Helper()
	s, ds := ReadFile(context.Background(), path)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if s == nil {
		return 0
	}
	return s.Serial
}

func put(t *testing.T, s *Store, n int) {
	t.Helper()
	if ds := s.Write(context.Background(), storetest.Sample(n)); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
}

func TestPaths(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		o               Options
		in, out, backup string
	}{
		{Options{}, "terraform.tfstate", "terraform.tfstate", "terraform.tfstate.backup"},
		{Options{Workspace: "default", Path: "p/x"}, "p/x", "p/x", "p/x.backup"},
		{Options{Workspace: "w", Path: "p/x"}, "terraform.tfstate.d/w/terraform.tfstate", "terraform.tfstate.d/w/terraform.tfstate", "terraform.tfstate.d/w/terraform.tfstate.backup"},
		{Options{Workspace: "w", WorkspaceDir: "d"}, "d/w/terraform.tfstate", "d/w/terraform.tfstate", "d/w/terraform.tfstate.backup"},
		{Options{Workspace: "w", StatePath: "zz"}, "zz", "zz", "zz.backup"},
		{Options{OutPath: "out"}, "terraform.tfstate", "out", "out.backup"},
		{Options{OutPath: "out", BackupPath: "bk"}, "terraform.tfstate", "out", "bk"},
		{Options{BackupPath: "-"}, "terraform.tfstate", "terraform.tfstate", ""},
		{Options{Path: "/abs/x"}, "/abs/x", "/abs/x", "/abs/x.backup"},
	} {
		c.o.Dir = dir
		s := Open(c.o)
		abs := func(p string) string {
			if p == "" || filepath.IsAbs(p) {
				return p
			}
			return filepath.Join(dir, p)
		}
		if s.in != abs(c.in) || s.out != abs(c.out) || s.backup != abs(c.backup) {
			t.Errorf("%+v: %s, %s, %s", c.o, s.in, s.out, s.backup)
		}
	}
}

func TestBackupIsWrittenOncePerRun(t *testing.T) {
	dir := t.TempDir()
	backup := filepath.Join(dir, "terraform.tfstate.backup")
	first := Open(Options{Dir: dir, Now: clock})
	put(t, first, 1)
	if _, err := os.Stat(backup); err == nil {
		t.Error("a backup of nothing")
	}
	put(t, first, 2)
	put(t, first, 3)
	if got := readSerial(t, backup); got != 2 {
		t.Errorf("backup of the first run: serial %d", got)
	}
	second := Open(Options{Dir: dir, Now: clock})
	put(t, second, 3)
	if got := readSerial(t, backup); got != 2 {
		t.Errorf("a write that changed nothing made a backup: serial %d", got)
	}
	put(t, second, 4)
	put(t, second, 5)
	if got := readSerial(t, backup); got != 4 {
		t.Errorf("backup of the second run: serial %d", got)
	}
	put(t, Open(Options{Dir: dir, BackupPath: "-", Now: clock}), 6)
	if got := readSerial(t, backup); got != 4 {
		t.Errorf("a backup although it was turned off: serial %d", got)
	}
	put(t, Open(Options{Dir: dir, BackupPath: "other", Now: clock}), 7)
	if got := readSerial(t, filepath.Join(dir, "other")); got != 7 {
		t.Errorf("backup elsewhere: serial %d", got)
	}
}

func TestOutPath(t *testing.T) {
	dir := t.TempDir()
	put(t, Open(Options{Dir: dir, Now: clock}), 1)
	for _, n := range []int{5, 6} {
		s := Open(Options{Dir: dir, OutPath: "out", Now: clock})
		if got, _ := s.Read(context.Background()); got.Serial != 2 {
			t.Errorf("reads serial %d", got.Serial)
		}
		put(t, s, n)
	}
	for name, want := range map[string]uint64{"terraform.tfstate": 2, "out": 7, "out.backup": 6} {
		if got := readSerial(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s: serial %d, want %d", name, got, want)
		}
	}
}

func TestLinksAreFollowedAndKept(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "real", "x.tfstate")
	os.Mkdir(filepath.Dir(real), 0o777)
	link := filepath.Join(dir, "terraform.tfstate")
	if err := os.Symlink("real/x.tfstate", link); err != nil {
		t.Skip(err)
	}
	s := Open(Options{Dir: dir, Now: clock})
	unlock, ds := s.Lock(context.Background(), store.LockInfo{}, 0)
	if ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	put(t, s, 1)
	put(t, s, 2)
	unlock()
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v", err)
	}
	if got := readSerial(t, real); got != 3 {
		t.Errorf("serial %d", got)
	}
	if got := s.JournalPath(); got != filepath.Join(dir, "real", ".x.tfstate.journal") {
		t.Errorf("journal: %s", got)
	}
}

func TestPermissionsAreKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "terraform.tfstate")
	s := Open(Options{Dir: dir, Now: clock})
	put(t, s, 1)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	for _, locked := range []bool{false, true} {
		unlock := func() {}
		if locked {
			u, ds := s.Lock(context.Background(), store.LockInfo{}, 0)
			if ds.HasErrors() {
				t.Fatal(ds.Err())
			}
			unlock = func() { u() }
		}
		put(t, s, 2)
		put(t, s, 3)
		unlock()
		for _, p := range []string{path, path + ".backup"} {
			if info, err := os.Stat(p); err != nil || info.Mode().Perm() != 0o640 {
				t.Errorf("locked %v: %s: %v %v", locked, p, info.Mode(), err)
			}
		}
	}
}

func TestWhatCannotBeWrittenIsFoundBefore(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	s := Open(Options{Dir: dir, Path: "new/sub/x.tfstate", Now: clock})
	if ds := s.Prepare(ctx, 1<<20, 0); ds.HasErrors() {
		t.Error(ds.Err())
	}
	if ds := s.Prepare(ctx, 1<<58, 0); !ds.HasErrors() {
		t.Error("there is room for everything")
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
	// With a lock, the reserved space remains until the lock is released.
	s = Open(Options{Dir: dir, Now: clock})
	unlock, ds := s.Lock(ctx, store.LockInfo{}, 0)
	if ds = append(ds, s.Prepare(ctx, 1<<20, 0)...); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	if info, err := os.Stat(beside(s.Path(), tempSuffix)); err != nil || info.Size() != 1<<20 {
		t.Errorf("%v %v", info, err)
	}
	if ds := s.Prepare(ctx, 1<<58, 0); !ds.HasErrors() {
		t.Error("there is room for everything")
	}
	if ds := s.Prepare(ctx, 1<<10, 0); ds.HasErrors() {
		t.Error(ds.Err())
	}
	unlock()
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
	// The reserved file becomes the state and is not longer than the state.
	unlock, _ = s.Lock(ctx, store.LockInfo{}, 0)
	s.Prepare(ctx, 1<<20, 0)
	put(t, s, 1)
	unlock()
	if info, err := os.Stat(s.Path()); err != nil || info.Size() > 1<<16 {
		t.Errorf("%v %v", info, err)
	}
	if st, ds := s.Read(ctx); ds.HasErrors() || st == nil {
		t.Error(ds.Err())
	}
	if err := os.Remove(s.Path()); err != nil {
		t.Fatal(err)
	}
	// A file in place of a directory is an error even for root.
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	bad := Open(Options{Dir: dir, Path: "file/x.tfstate", Now: clock})
	if ds := bad.Prepare(ctx, 1, 0); !ds.HasErrors() || !strings.Contains(ds[0].Detail, "file/x.tfstate") {
		t.Errorf("%v", ds.Err())
	}
	if _, ds := bad.Lock(ctx, store.LockInfo{}, 0); !ds.HasErrors() || !strings.Contains(ds[0].Detail, "not a directory") {
		t.Errorf("%v", ds.Err())
	}
	if ds := bad.Write(ctx, storetest.Sample(1)); !ds.HasErrors() {
		t.Error("written into a file")
	}
	put(t, Open(Options{Dir: dir, Now: clock}), 1)
	if ds := Open(Options{Dir: dir, BackupPath: "file/b", Now: clock}).Prepare(ctx, 1, 0); !ds.HasErrors() || !strings.Contains(ds[0].Summary, "backed up") {
		t.Errorf("%v", ds.Err())
	}
	noBackup := Open(Options{Dir: dir, BackupPath: "file/b", Now: clock})
	if ds := noBackup.Write(ctx, storetest.Sample(9)); !ds.HasErrors() {
		t.Error("changed without the backup")
	}
	if got := readSerial(t, filepath.Join(dir, "terraform.tfstate")); got != 2 {
		t.Errorf("serial %d", got)
	}
}

func TestBrokenStateIsNoMissingState(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "terraform.tfstate")
	if err := os.WriteFile(path, []byte("{\n  \"version\": 4,\n  \"serial\": x"), 0o666); err != nil {
		t.Fatal(err)
	}
	s, ds := Open(Options{Dir: dir, Now: clock}).Read(context.Background())
	if s != nil || !ds.HasErrors() || ds[0].At == nil || ds[0].At.Filename != path || ds[0].At.Start.Line != 3 {
		t.Errorf("%v %+v", s, ds)
	}
	if s, ds := ReadFile(context.Background(), dir); s != nil || !ds.HasErrors() {
		t.Error("a directory was read")
	}
}

func TestNextSerial(t *testing.T) {
	s := storetest.Sample(2)
	first, write := store.NextSerial(nil, s.WithMeta("", 0, ""))
	if !write || first.Serial != 1 || len(first.Lineage) != 36 {
		t.Errorf("first: %v %d %q", write, first.Serial, first.Lineage)
	}
	if none, write := store.NextSerial(nil, nil); !write || none.Serial != 1 {
		t.Errorf("nothing: %v %v", write, none)
	}
	if same, write := store.NextSerial(s, s.Edit().Freeze()); write || same != s {
		t.Error("the same content is to be written")
	}
	d := s.Edit()
	d.SetOutput("n", nil)
	next, write := store.NextSerial(s, d.Freeze())
	if !write || next.Serial != s.Serial+1 || next.Lineage != s.Lineage {
		t.Errorf("next: %v %d", write, next.Serial)
	}
	if gone, write := store.NextSerial(s, nil); !write || !gone.Empty() || gone.Lineage != s.Lineage {
		t.Error("all removed")
	}
}
