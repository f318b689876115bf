package backendtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/terrace-iac/terrace/internal/state/store"
	"github.com/zclconf/go-cty/cty"
)

// Beside tests that OpenTofu and Terrace can use the same place: each reads the states of the
// other, and cannot take a lock of the other. block is the text of the backend's arguments, and
// env the additional environment of OpenTofu. The test is skipped without OpenTofu.
func Beside(t *testing.T, k backend.Kind, p Place, block string, env ...string) {
	servers.Tofu(t)
	dir := servers.NewFolder(t, `
terraform {
  backend "`+k.Name+`" {
`+block+`
  }
}
variable "v" { default = "1" }
variable "wait" { default = "" }
resource "terraform_data" "x" {
  input = var.v
  provisioner "local-exec" {
    command = "[ -z '${var.wait}' ] || { touch ${var.wait}.there; until [ -e ${var.wait} ]; do sleep 0.1; done; }"
  }
}
output "v" { value = var.v }
`, env...)
	dir.Must(t, "init", "-input=false")
	sameArguments(t, k, dir)
	f := &fixture{Place: p, k: k, b: Open(t, k, p)}

	dir.Must(t, "apply", "-auto-approve", "-input=false")
	st, ds := f.store(t, "").Read(ctx)
	fatal(t, ds)
	if st == nil || st.Outputs["v"] == nil || st.Outputs["v"].Value != cty.StringVal("1") {
		t.Fatalf("what OpenTofu wrote is read as %+v", st)
	}

	ours := f.store(t, "")
	unlock, ds := ours.Lock(ctx, info(1), 0)
	fatal(t, ds)
	out, ok := dir.Run(t, "apply", "-auto-approve", "-input=false", "-no-color", "-var=v=2")
	if p.Locks && (ok || !strings.Contains(out, "Error acquiring the state lock") || !p.Anonymous && !strings.Contains(out, "run1@here")) {
		t.Errorf("OpenTofu was not kept out: %s", out)
	}
	if st, ds = ours.Read(ctx); ds.HasErrors() {
		t.Fatal(ds.Err())
	}
	d := st.Edit()
	out1 := *st.Outputs["v"]
	out1.Value = cty.StringVal("ours")
	d.SetOutput("v", &out1)
	next, _ := store.NextSerial(st, d.Freeze())
	fatal(t, ours.Write(ctx, next))
	fatal(t, unlock())
	if out := dir.Must(t, "output", "-raw", "v"); out != "ours" {
		t.Errorf("what was written is read by OpenTofu as %q", out)
	}

	if p.Locks {
		wait := filepath.Join(dir.Dir, "wait")
		cmd := dir.Command("apply", "-auto-approve", "-input=false", "-no-color", "-replace=terraform_data.x", "-var=v=3", "-var=wait="+wait)
		var log bytes.Buffer
		cmd.Stdout, cmd.Stderr = &log, &log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if _, err := os.Stat(wait + ".there"); err == nil {
				break
			}
			if time.Now().After(end) {
				cmd.Process.Kill()
				cmd.Wait()
				t.Fatalf("OpenTofu did not get to the provisioner: %s", &log)
			}
		}
		_, err := f.object(t, "").Lock(ctx, info(2))
		var locked *backend.LockedError
		if !errors.As(err, &locked) {
			t.Errorf("the lock of OpenTofu does not hold: %v", err)
		} else if h := locked.Holder; h == nil || h.ID == "" || !p.Anonymous && h.Operation != "OperationTypeApply" {
			t.Errorf("the holder is %+v", h)
		}
		if _, ds := f.store(t, "").Read(ctx); ds.HasErrors() {
			t.Error(ds.Err())
		}
		if err := os.WriteFile(wait, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, &log)
		}
		unlock, ds := f.store(t, "").Lock(ctx, info(3), 0)
		fatal(t, ds)
		fatal(t, unlock())
	}

	if p.Workspaces {
		dir.Must(t, "workspace", "new", "theirs")
		dir.Must(t, "apply", "-auto-approve", "-input=false", "-var=v=w")
		if st, ds := f.store(t, "theirs").Read(ctx); ds.HasErrors() || st == nil || st.Outputs["v"].Value != cty.StringVal("w") {
			t.Errorf("%+v %v", st, ds.Err())
		}
		w := backend.Workspaces{Backend: f.b, Lock: &store.LockInfo{}}
		fatal(t, w.Create(ctx, "our-1"))
		if got, err := f.b.List(ctx); err != nil || !slices.Equal(got, []string{"default", "our-1", "theirs"}) {
			t.Errorf("%v %v", got, err)
		}
		if out := dir.Must(t, "workspace", "list"); !strings.Contains(out, "our-1") {
			t.Errorf("OpenTofu lists %s", out)
		}
		dir.Must(t, "workspace", "select", "our-1")
		dir.Must(t, "apply", "-auto-approve", "-input=false", "-var=v=w")
		dir.Must(t, "workspace", "select", "default")
		fatal(t, w.Delete(ctx, "our-1"))
		dir.Must(t, "workspace", "delete", "-force", "theirs")
		if got, err := f.b.List(ctx); err != nil || !slices.Equal(got, []string{"default"}) {
			t.Errorf("%v %v", got, err)
		}
	}
}

// sameArguments compares the schema with OpenTofu's record in the data directory.
func sameArguments(t *testing.T, k backend.Kind, dir *servers.Folder) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir.Dir, ".terraform/terraform.tfstate"))
	if err != nil {
		t.Fatal(err)
	}
	var record struct {
		Backend struct {
			Config map[string]any
			Hash   uint64
		}
	}
	if err := json.Unmarshal(b, &record); err != nil {
		t.Fatal(err)
	}
	ours := slices.Sorted(maps.Keys(k.Schema.ImpliedType().AttributeTypes()))
	if theirs := slices.Sorted(maps.Keys(record.Backend.Config)); !slices.Equal(ours, theirs) {
		t.Errorf("arguments:\n%v\nthose of OpenTofu:\n%v", ours, theirs)
	}
}
