package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/schema"
	"github.com/zclconf/go-cty/cty"
)

func kind(name string, types map[string]cty.Type) backend.Kind {
	return backend.Kind{Name: name, Schema: &schema.Block{Attributes: backend.Optional(types)}}
}

func nulls(k backend.Kind, set map[string]cty.Value) cty.Value {
	all := map[string]cty.Value{}
	for name, a := range k.Schema.Attributes {
		all[name] = cty.NullVal(a.Type)
	}
	for name, v := range set {
		all[name] = v
	}
	return cty.ObjectVal(all)
}

// The hashes and the text equal those that OpenTofu 1.12.6 wrote for the same blocks.
func TestAsOpenTofuWrites(t *testing.T) {
	local := kind("local", map[string]cty.Type{"path": cty.String, "workspace_dir": cty.String})
	inmem := kind("inmem", map[string]cty.Type{"lock_id": cty.String})
	http := kind("http", map[string]cty.Type{
		"address": cty.String, "update_method": cty.String, "lock_address": cty.String, "unlock_address": cty.String,
		"lock_method": cty.String, "unlock_method": cty.String, "username": cty.String, "password": cty.String,
		"skip_cert_verification": cty.Bool, "retry_max": cty.Number, "retry_wait_min": cty.Number, "retry_wait_max": cty.Number,
		"client_ca_certificate_pem": cty.String, "client_certificate_pem": cty.String, "client_private_key_pem": cty.String,
		"headers": cty.Map(cty.String),
	})
	for _, c := range []struct {
		kind backend.Kind
		set  map[string]cty.Value
		want uint64
	}{
		{local, map[string]cty.Value{"path": cty.StringVal("ü/<x>&.tfstate")}, 2356092331},
		{inmem, nil, 3947750061},
		{http, map[string]cty.Value{
			"address": cty.StringVal("http://127.0.0.1:1/x?a=1&b=<2>"), "retry_max": cty.NumberIntVal(3),
			"headers": cty.MapVal(map[string]cty.Value{"A": cty.StringVal("b")}),
		}, 1531299193},
	} {
		if got := Hash(c.kind.Name, nulls(c.kind, c.set)); got != c.want {
			t.Errorf("%s: %d, want %d", c.kind.Name, got, c.want)
		}
	}
	v := nulls(local, map[string]cty.Value{"path": cty.StringVal("ü/<x>&.tfstate")})
	r, err := Of(backend.Config{Type: "local", Value: v}, v)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := Write(dir, r); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(filepath.Join(dir, Name))
	const want = `{
    "version": 3,
    "backend": {
        "type": "local",
        "config": {
            "path": "ü/\u003cx\u003e\u0026.tfstate",
            "workspace_dir": null
        },
        "hash": 2356092331
    }
}
`
	if string(got) != want {
		t.Errorf("%s", got)
	}
	back, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := back.Value(local); err != nil || !again.RawEquals(v) {
		t.Errorf("%#v %v", again, err)
	}
	if err := Write(dir, nil); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir, Name)); string(got) != "{\n    \"version\": 3\n}\n" {
		t.Errorf("without a backend: %s", got)
	}
}

func TestBadRecords(t *testing.T) {
	local := kind("local", map[string]cty.Type{"path": cty.String})
	for text, want := range map[string]string{
		`{`:             "not JSON",
		`{"version":4}`: "version 4",
		`{"version":3,"backend":{"type":"local","config":{"extra":1},"hash":1}}`: `"extra"`,
		`{"version":3,"backend":{"type":"local","config":{"path":[]},"hash":1}}`: `"path"`,
		`{"version":3,"backend":{"type":"local","config":[],"hash":1}}`:          "not an object",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, Name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := Read(dir)
		if err == nil {
			_, err = r.Value(local)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if r, err := Read(t.TempDir()); r != nil || err != nil {
		t.Errorf("%v %v", r, err)
	}
}
