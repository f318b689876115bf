package program

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/estate/remote"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

var (
	exampleArgument = regexp.MustCompile(`(?m)^\s+- (worker|--\S+)$`)
	exampleVariable = regexp.MustCompile(`TERRACE_[A-Z_]+`)
)

// The workers in the examples only use existing flags with valid values, and variables that the
// program reads.
func TestExamples(t *testing.T) {
	read := []string{remote.KeyVariable, heartbeatVariable, "TERRACE_TEMPORAL_TLS_CERT", "TERRACE_TEMPORAL_TLS_KEY", "TERRACE_TEMPORAL_TLS_CA", "TERRACE_TEMPORAL_TLS_SERVER_NAME", "TERRACE_TEMPORAL_API_KEY"}
	for _, name := range []string{"compose.yaml", "kubernetes.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../../examples/temporal", name))
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"terrace-worker"}
		for _, m := range exampleArgument.FindAllSubmatch(text, -1) {
			args = append(args, string(m[1]))
		}
		if len(args) < 5 || args[1] != "worker" {
			t.Fatalf("%s: the arguments are %q", name, args)
		}
		var errs bytes.Buffer
		code := Main(t.Context(), &sys.System{Args: args, Dir: t.TempDir(), Stdin: strings.NewReader(""), Stdout: &errs, Stderr: &errs})
		if code == 0 || !strings.Contains(errs.String(), "there is no key that the run is encrypted with") {
			t.Errorf("%s: without a key: status %d, %s", name, code, errs.String())
		}
		for _, v := range exampleVariable.FindAllString(string(text), -1) {
			if !slices.Contains(read, v) {
				t.Errorf("%s: nobody reads %s", name, v)
			}
		}
	}
}

// example decodes an example into a value, as json.Unmarshal would.
func example(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../examples/temporal", name))
	if err != nil {
		t.Fatal(err)
	}
	typ, err := ctyyaml.Standard.ImpliedType(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	v, err := ctyyaml.Standard.Unmarshal(text, typ)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	asJSON, err := ctyjson.Marshal(v, typ)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(asJSON))
	d.DisallowUnknownFields() // unknown fields are errors
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// Everything that the compose file refers to exists. The struct contains the fields that the file
// uses; see https://github.com/compose-spec/compose-spec/blob/main/spec.md.
func TestComposeFile(t *testing.T) {
	var f struct {
		Services map[string]struct {
			Image       string            `json:"image"`
			Command     []string          `json:"command"`
			Environment map[string]string `json:"environment"`
			Volumes     []string          `json:"volumes"`
			Ports       []string          `json:"ports"`
			Restart     string            `json:"restart"`
			DependsOn   json.RawMessage   `json:"depends_on"`
			Healthcheck *struct {
				Test     []string `json:"test"`
				Interval string   `json:"interval"`
			} `json:"healthcheck"`
			Deploy *struct {
				Replicas int `json:"replicas"`
			} `json:"deploy"`
		} `json:"services"`
		Volumes map[string]any `json:"volumes"`
	}
	example(t, "compose.yaml", &f)
	used := map[string]bool{}
	for name, s := range f.Services {
		if s.Image == "" {
			t.Errorf("%s has no image", name)
		}
		for _, v := range s.Volumes {
			volume, _, ok := strings.Cut(v, ":/")
			if _, there := f.Volumes[volume]; !ok || !there {
				t.Errorf("%s has a volume %q that there is not", name, v)
			}
			used[volume] = true
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s can be reached from elsewhere: %s", name, port)
			}
		}
		var names []string
		conditions := map[string]struct{ Condition string }{}
		if s.DependsOn != nil && json.Unmarshal(s.DependsOn, &names) != nil {
			if err := json.Unmarshal(s.DependsOn, &conditions); err != nil {
				t.Errorf("%s depends on %s", name, s.DependsOn)
			}
		}
		for _, on := range append(names, slices.Collect(maps.Keys(conditions))...) {
			other, ok := f.Services[on]
			if !ok {
				t.Errorf("%s depends on %s, which there is not", name, on)
			}
			switch c := conditions[on].Condition; c {
			case "service_healthy":
				if other.Healthcheck == nil || len(other.Healthcheck.Test) == 0 {
					t.Errorf("%s waits for the health of %s, which nobody checks", name, on)
				}
			case "", "service_started", "service_completed_successfully":
			default:
				t.Errorf("%s waits for %s: there is no condition %q", name, on, c)
			}
		}
	}
	for v := range f.Volumes {
		if !used[v] {
			t.Errorf("nobody uses the volume %s", v)
		}
	}
	if len(f.Services["worker"].Command) == 0 || f.Services["worker"].Environment[remote.KeyVariable] == "" {
		t.Errorf("the worker: %+v", f.Services["worker"])
	}
}

// Everything that the Kubernetes example refers to exists. The struct contains the fields of an
// apps/v1 Deployment that the file uses.
func TestKubernetesFile(t *testing.T) {
	type mount struct {
		Name      string `json:"name"`
		MountPath string `json:"mountPath"`
		ReadOnly  bool   `json:"readOnly"`
	}
	type container struct {
		Name    string   `json:"name"`
		Image   string   `json:"image"`
		Command []string `json:"command"`
		Args    []string `json:"args"`
		Env     []struct {
			Name      string `json:"name"`
			Value     string `json:"value"`
			ValueFrom *struct {
				SecretKeyRef struct {
					Name string `json:"name"`
					Key  string `json:"key"`
				} `json:"secretKeyRef"`
			} `json:"valueFrom"`
		} `json:"env"`
		Resources struct {
			Requests map[string]string `json:"requests"`
			Limits   map[string]string `json:"limits"`
		} `json:"resources"`
		VolumeMounts []mount `json:"volumeMounts"`
	}
	type volume struct {
		Name     string `json:"name"`
		EmptyDir *struct {
			SizeLimit string `json:"sizeLimit"`
		} `json:"emptyDir"`
		Secret *struct {
			SecretName string `json:"secretName"`
		} `json:"secret"`
	}
	type metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	}
	var f struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Metadata   metadata `json:"metadata"`
		Spec       struct {
			Replicas int `json:"replicas"`
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			Template struct {
				Metadata metadata `json:"metadata"`
				Spec     struct {
					ServiceAccountName            string         `json:"serviceAccountName"`
					TerminationGracePeriodSeconds int            `json:"terminationGracePeriodSeconds"`
					SecurityContext               map[string]any `json:"securityContext"`
					Containers                    []container    `json:"containers"`
					InitContainers                []container    `json:"initContainers"`
					Volumes                       []volume       `json:"volumes"`
				} `json:"spec"`
			} `json:"template"`
		} `json:"spec"`
	}
	example(t, "kubernetes.yaml", &f)
	pod := f.Spec.Template
	if f.APIVersion != "apps/v1" || f.Kind != "Deployment" || f.Metadata.Name == "" || f.Spec.Replicas < 1 || !maps.Equal(f.Spec.Selector.MatchLabels, pod.Metadata.Labels) {
		t.Errorf("%+v", f)
	}
	paths := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		if (v.EmptyDir == nil) == (v.Secret == nil) {
			t.Errorf("the volume %s is of no kind, or of two", v.Name)
		}
	}
	if len(pod.Spec.Containers) != 1 {
		t.Fatalf("%d containers", len(pod.Spec.Containers))
	}
	worker := pod.Spec.Containers[0]
	for _, c := range append(pod.Spec.InitContainers, worker) {
		for _, m := range c.VolumeMounts {
			if !slices.ContainsFunc(pod.Spec.Volumes, func(v volume) bool { return v.Name == m.Name }) {
				t.Errorf("%s mounts %s, which there is not", c.Name, m.Name)
			}
			paths[m.MountPath] = m.Name
		}
	}
	for _, e := range worker.Env {
		if (e.Value == "") == (e.ValueFrom == nil) {
			t.Errorf("%s has no value, or two", e.Name)
		}
		if strings.HasPrefix(e.Value, "/") && paths["/"+strings.Split(e.Value, "/")[1]] == "" {
			t.Errorf("%s is %s, where nothing is mounted", e.Name, e.Value)
		}
	}
	grace := 0
	for _, a := range worker.Args {
		if text, ok := strings.CutPrefix(a, "--grace="); ok {
			d, err := time.ParseDuration(text)
			if err != nil {
				t.Fatal(err)
			}
			grace = int(d.Seconds())
		}
	}
	if grace == 0 || pod.Spec.TerminationGracePeriodSeconds <= grace {
		t.Errorf("a pod is killed after %d seconds, and its turns may take %d", pod.Spec.TerminationGracePeriodSeconds, grace)
	}
}
