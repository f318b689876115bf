package request_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/workdir"
)

// Paths of the client become paths of the worker, alone and after "=". The request of the client
// stays as it is.
func TestRelocate(t *testing.T) {
	make := func(root string) (q request.Request) {
		q.Operation.Vars = []workdir.VarFlag{{File: true, Value: root + "/a.tfvars"}, {Value: "dir=" + root + "/b"}, {Value: "dir=/elsewhere"}}
		q.Operation.TestDirectory = "tests"
		q.Words.Args = []string{"-var-file=" + root + "/a.tfvars"}
		q.Units.Filters = []string{"./prod/**"}
		q.Units.SourceMap = []string{"git::https://example.com/m=" + root}
		q.Units.DownloadDir = root + "/cache"
		q.Units.Config = "/home/me-too/terragrunt.hcl"
		return q
	}
	client := make("/home/me")
	if diff := cmp.Diff(make("/tmp/worker"), client.Relocate("/home/me", "/tmp/worker")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(make("/home/me"), client); diff != "" {
		t.Error(diff)
	}
}

// Relocate considers every text in a request, except those that are listed here, which are no
// paths.
func TestRelocateAll(t *testing.T) {
	noPaths := map[string]bool{
		"Command": true, "Dir": true, "Words.Added": true, "State.Journal": true, "View.Deprecation": true,
		"Operation.Since": true, "Operation.RoundsAllow": true, "Operation.Plan.Accept.Dir": true, "Operation.Scope.Targets": true, "Operation.Scope.Excludes": true, "Operation.Scope.Replace": true,
		"Units.Module": true, "Units.FeaturesFrom": true, "Units.Experiments": true, "Units.StrictNames": true, "Units.Old": true, "Units.Idle": true, "Units.Given": true,
		"Units.On": true, "Units.Blobs": true, "Units.Sharing": true, "Units.Owning": true, "Units.LogLevel": true, "Units.LogFormat": true, "Units.LogCustom": true,
		"Units.ReportFormat": true, "Units.Role": true, "Units.RoleSession": true,
	}
	var q request.Request
	fill(reflect.ValueOf(&q).Elem())
	check(t, reflect.ValueOf(q.Relocate("/from", "/to")), "", noPaths)
}

// fill sets all texts to a path.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("/from/x")
	case reflect.Slice:
		if k := v.Type().Elem().Kind(); k == reflect.String || v.Type() == reflect.TypeFor[[]workdir.VarFlag]() {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	}
}

// check compares the texts in v, which has a name, with the relocated path.
func check(t *testing.T, v reflect.Value, name string, noPaths map[string]bool) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		if moved := v.String() == "/to/x"; moved == noPaths[name] {
			t.Errorf("%s: %q", name, v)
		}
	case reflect.Slice:
		for i := range v.Len() {
			check(t, v.Index(i), name, noPaths)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			of := name
			if !f.Anonymous {
				if of != "" {
					of += "."
				}
				of += f.Name
			}
			check(t, v.Field(i), of, noPaths)
		}
	}
}
