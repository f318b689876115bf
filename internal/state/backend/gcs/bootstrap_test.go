package gcs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/state/backend"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
	"github.com/zclconf/go-cty/cty"
)

// A bucket is created with versioning. A second call changes nothing. Versioning of an
// existing bucket is enabled, unless the bucket must not be changed.
func TestBootstrap(t *testing.T) {
	s := servers.GCS(t)
	p := place(t, s)
	p.Config["bucket"] = cty.StringVal("new")
	made := func(args map[string]cty.Value, b backend.Bootstrapping) ([]string, diag.List) {
		var did []string
		b.Did = func(what string) { did = append(did, what) }
		set := backend.NewSet([]backend.Kind{Kind()}, nil, p.Services)
		_, ds := set.Bootstrap(t.Context(), backend.Config{Type: "gcs", Value: backendtest.Config(t, Kind(), p.Config)}, cty.ObjectVal(args), b)
		return did, ds
	}
	if _, ds := made(nil, backend.Bootstrapping{}); !ds.HasErrors() || !strings.Contains(ds.Err().Error(), "Set project") || s.Made("new") != nil {
		t.Errorf("without a project: %v", ds.Err())
	}
	args := map[string]cty.Value{"project": cty.StringVal("p"), "location": cty.StringVal("eu"), "gcs_bucket_labels": cty.MapVal(map[string]cty.Value{"a": cty.StringVal("b")}), "skip_bucket_versioning": cty.True}
	if _, ds := made(args, backend.Bootstrapping{Require: true}); !ds.HasErrors() || s.Made("new") != nil {
		t.Errorf("a bucket that is required: %v", ds.Err())
	}
	if did, ds := made(args, backend.Bootstrapping{}); ds.HasErrors() || !slices.Equal(did, []string{"made the bucket new"}) {
		t.Fatalf("%q %v", did, ds.Err())
	}
	if got := fmt.Sprint(s.Made("new")); got != "map[labels:map[a:b] location:eu name:new project:p]" {
		t.Error(got)
	}
	delete(args, "skip_bucket_versioning")
	args["enable_bucket_policy_only"] = cty.True
	if did, ds := made(args, backend.Bootstrapping{Keep: true}); ds.HasErrors() || len(did) > 0 {
		t.Errorf("%q %v", did, ds.Err())
	}
	if did, ds := made(args, backend.Bootstrapping{}); ds.HasErrors() || !slices.Equal(did, []string{"versioning and uniform access of the bucket new"}) {
		t.Errorf("%q %v", did, ds.Err())
	}
	if did, ds := made(args, backend.Bootstrapping{}); ds.HasErrors() || len(did) > 0 {
		t.Errorf("again: %q %v", did, ds.Err())
	}
}
