package remote_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/workdir"
	"github.com/terrace-iac/terrace/plan"
)

// A job arrives as it was sent.
func TestJobArrives(t *testing.T) {
	job := remote.Job{
		Format: remote.JobFormat, ID: "run", Op: "apply", Env: []string{"TF_VAR_a=1"},
		Request: request.Request{Command: "destroy", Dir: ".", Operation: request.Operation{Plan: plan.Options{Mode: plan.Destroy}, Vars: []workdir.VarFlag{{Value: "a=1"}}}},
	}
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	var got remote.Job
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(job, got); diff != "" {
		t.Error(diff)
	}
}

// A worker refuses a job or turn that it would read only in part.
func TestUnknownFields(t *testing.T) {
	for _, test := range []struct {
		into any
		text string
		want string // "" means that the text is read
	}{
		{new(remote.Job), `{"format": 2, "id": "a", "request": {"Command": "plan", "Units": {"All": true}}}`, ""},
		{new(remote.Job), `{"id": "a", "args": ["run", "--all", "plan"]}`, "the job has the format 0, and this program reads the format 2"},
		{new(remote.Job), `{"format": 3, "id": "a"}`, "the job has the format 3, and this program reads the format 2"},
		{new(remote.Job), `{"format": 2, "args": ["run"]}`, `unknown field "args"`},
		{new(remote.Job), `{"format": 2, "request": {"Units": {"Everything": true}}}`, `unknown field "Everything"`},
		{new(remote.Job), `{"format": 2, "request": {"Operation": {"Plan": {"Hurry": true}}}}`, `unknown field "Hurry"`},
		{new(remote.Turn), `{"unit": "a", "number": 1}`, ""},
		{new(remote.Turn), `{"unit": "a", "hurry": true}`, `unknown field "hurry"`},
	} {
		err := json.Unmarshal([]byte(test.text), test.into)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.text, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: the error is %v, want %s", test.text, err, test.want)
		}
	}
}
