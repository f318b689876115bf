//go:build unix

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
	ctyyaml "github.com/zclconf/go-cty-yaml"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// These tests run the recipes of docs/ci.md: the steps of the GitHub action, the jobs of the GitLab
// template and the steps of the Atlantis workflows, with the built program, against a stand-in of
// the services' APIs.

const (
	ciToken  = "token-of-the-service"
	ciSecret = "hunter2-the-password"
)

// decodeYAML decodes a YAML file of the tree into a Go value by its JSON names.
func decodeYAML(t *testing.T, path string, into any) {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	ty, err := ctyyaml.ImpliedType(src)
	if err != nil {
		t.Fatal(path, err)
	}
	v, err := ctyyaml.Unmarshal(src, ty)
	if err != nil {
		t.Fatal(path, err)
	}
	text, err := ctyjson.Marshal(v, ty)
	if err != nil {
		t.Fatal(path, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(path, err)
	}
}

// ciStep is a step of an action.
type ciStep struct {
	ID, Name, If, Shell, Run, Uses string
	Env                            map[string]string
	With                           map[string]any
}

// ciAction is a composite action.
type ciAction struct {
	Inputs map[string]struct {
		Default  string
		Required bool
	}
	Runs struct {
		Using string
		Steps []ciStep
	}
}

// post is a comment, a note or an issue at a service.
type post struct {
	ID     int      `json:"id"`
	Number int      `json:"number"`
	IID    int      `json:"iid"`
	Title  string   `json:"title"`
	Body   string   `json:"body"`
	Text   string   `json:"description"`
	State  string   `json:"state"`
	Labels []string `json:"-"`
}

// forge is the stand-in of a service: its comments, issues, labels and artifacts.
type forge struct {
	*httptest.Server
	t         *testing.T
	mu        sync.Mutex
	comments  []*post // of the pull request 7
	issues    []*post
	labels    []string
	artifacts map[string][]byte // zip files by name
	readOnly  bool              // the token may not write, as in a workflow for a fork
	calls     []string
}

func newForge(t *testing.T) *forge {
	f := &forge{t: t, artifacts: map[string][]byte{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.Header.Get("Authorization") != "Bearer "+ciToken && r.Header.Get("PRIVATE-TOKEN") != ciToken {
		http.Error(w, "no token", http.StatusUnauthorized)
		return
	}
	var in struct {
		Title, Body, Description, State string
		StateEvent                      string `json:"state_event"`
		Labels                          any
	}
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	f.calls = append(f.calls, r.Method+" "+r.URL.Path)
	if f.readOnly && r.Method != http.MethodGet {
		http.Error(w, "Resource not accessible by integration", http.StatusForbidden)
		return
	}
	reply := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	list := func(all []*post) {
		page, size := 1, 30
		if n, err := strconv.Atoi(r.URL.Query().Get("page")); err == nil {
			page = n
		}
		if n, err := strconv.Atoi(r.URL.Query().Get("per_page")); err == nil {
			size = n
		}
		from := min((page-1)*size, len(all))
		reply(append([]*post{}, all[from:min(from+size, len(all))]...))
	}
	set := func(p *post) {
		p.Body, p.Text = in.Body, in.Description
		if in.Title != "" {
			p.Title = in.Title
		}
		reply(p)
	}
	create := func(all *[]*post) {
		n := len(*all) + 1
		p := &post{ID: 1000 + n, Number: n, IID: n, State: "open"}
		*all = append(*all, p)
		w.WriteHeader(http.StatusCreated)
		set(p)
	}
	find := func(all []*post, id string) *post {
		for _, p := range all {
			if strconv.Itoa(p.ID) == id || strconv.Itoa(p.Number) == id {
				return p
			}
		}
		return &post{}
	}
	open := func() []*post {
		return slices.DeleteFunc(slices.Clone(f.issues), func(p *post) bool { return p.State != "open" })
	}
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/repos/o/r"), "/projects/5")
	last := path[strings.LastIndexByte(path, '/')+1:]
	switch what := r.Method + " " + regexp.MustCompile(`/\d+$`).ReplaceAllString(path, "/N"); what {
	case "GET /issues/7/comments", "GET /merge_requests/7/notes":
		list(f.comments)
	case "POST /issues/7/comments", "POST /merge_requests/7/notes":
		create(&f.comments)
	case "PATCH /issues/comments/N", "PUT /merge_requests/7/notes/N":
		set(find(f.comments, last))
	case "GET /issues/7/labels":
		out := []map[string]string{}
		for _, l := range f.labels {
			out = append(out, map[string]string{"name": l})
		}
		reply(out)
	case "GET /issues":
		list(open())
	case "POST /issues":
		create(&f.issues)
	case "PATCH /issues/N", "PUT /issues/N":
		p := find(f.issues, last)
		if in.State == "closed" || in.StateEvent == "close" {
			p.State = "closed"
			reply(p)
			return
		}
		set(p)
		if in.Labels != nil {
			p.Labels = []string{fmt.Sprint(in.Labels)} // which removes the labels of people
		}
	case "GET /actions/artifacts":
		out := []map[string]any{}
		if name := r.URL.Query().Get("name"); f.artifacts[name] != nil {
			from := func(repository int) map[string]any {
				return map[string]any{"repository_id": 5, "head_repository_id": repository, "head_sha": strings.TrimPrefix(name, "terrace-plan-")[:40]}
			}
			out = append(out,
				map[string]any{"id": 1, "expired": false, "archive_download_url": f.URL + "/repos/o/r/zip/" + name, "workflow_run": from(5)},
				map[string]any{"id": 2, "expired": false, "archive_download_url": f.URL + "/repos/o/r/zip/of-a-fork", "workflow_run": from(6)})
		}
		reply(map[string]any{"artifacts": out})
	default:
		if name, ok := strings.CutPrefix(path, "/zip/"); ok {
			_, _ = w.Write(f.artifacts[name])
			return
		}
		f.t.Errorf("unexpected request %s", what)
		http.NotFound(w, r)
	}
}

// ciJob runs the scripts of a job.
type ciJob struct {
	t    *testing.T
	work string // the checkout
	temp string
	fork bool // the pull request comes from a fork
	env  []string
	log  strings.Builder
}

func newJob(t *testing.T, files string) *ciJob {
	for _, tool := range []string{"bash", "curl", "jq", "unzip", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIP: the recipes need %s: apt-get install bash curl jq unzip git", tool)
		}
	}
	if testing.Short() {
		t.Skip("SKIP: builds the program; run without -short")
	}
	bin, temp := t.TempDir(), t.TempDir()
	if err := os.Symlink(testkit.Terrace(t), filepath.Join(bin, "terrace")); err != nil {
		t.Fatal(err)
	}
	j := &ciJob{t: t, work: testkit.Files(t, files), temp: temp}
	j.env = []string{
		"PATH=" + bin + ":" + os.Getenv("PATH"), "HOME=" + temp, "TF_VAR_password=" + ciSecret, "CHECKPOINT_DISABLE=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_GLOBAL=/dev/null",
	}
	j.git("init", "-q")
	j.commit()
	return j
}

func (j *ciJob) git(args ...string) string {
	j.t.Helper()
	c := exec.CommandContext(j.t.Context(), "git", args...)
	c.Dir, c.Env = j.work, j.env
	out, err := c.Output()
	if err != nil {
		j.t.Fatal(args, err)
	}
	return strings.TrimSpace(string(out))
}

// commit commits the checkout, and returns the commit.
func (j *ciJob) commit() string {
	j.git("add", "-A", "--", ":!*.tfstate*", ":!.terra*", ":!terrace-plan")
	j.git("commit", "-q", "--allow-empty", "-m", "x")
	return j.git("rev-parse", "HEAD")
}

func (j *ciJob) write(name, text string) {
	j.t.Helper()
	if err := os.WriteFile(filepath.Join(j.work, name), []byte(text), 0o600); err != nil {
		j.t.Fatal(err)
	}
}

// run runs a script in a shell.
func (j *ciJob) run(script string, env map[string]string, shell ...string) error {
	c := exec.CommandContext(j.t.Context(), shell[0], append(shell[1:], script)...)
	c.Dir, c.Env = j.work, j.env
	for _, k := range slices.Sorted(maps.Keys(env)) {
		c.Env = append(c.Env, k+"="+env[k])
	}
	out, err := c.CombinedOutput()
	j.log.Write(out)
	return err
}

// harmless fails the test if a text contains a secret.
func (j *ciJob) harmless(what, text string) {
	j.t.Helper()
	for _, s := range []string{ciToken, ciSecret} {
		if strings.Contains(text, s) {
			j.t.Errorf("%s contains the secret %q:\n%s", what, s, text)
		}
	}
}

// lookup evaluates an expression of an action: comparisons of names with texts, joined by &&.
func lookup(expr string, names map[string]string) string {
	if strings.HasPrefix(expr, "hashFiles(") {
		return "hash"
	}
	value := ""
	for _, term := range strings.Split(expr, " && ") {
		name, want, compared := strings.Cut(strings.TrimSpace(term), " == ")
		differs := false
		if !compared {
			name, want, differs = strings.Cut(name, " != ")
		}
		value = names[name]
		if compared || differs {
			value = map[bool]string{true: "true"}[(value == strings.Trim(want, "'")) != differs]
		}
		if value == "" {
			return ""
		}
	}
	return value
}

// action runs the composite action as GitHub does. It returns the outputs of the step run, the
// summary, and whether the action succeeded.
func (j *ciJob) action(f *forge, inputs map[string]string) (outputs map[string]string, summary string, ok bool) {
	j.t.Helper()
	var a ciAction
	decodeYAML(j.t, "ci/github/action.yml", &a)
	if a.Runs.Using != "composite" {
		j.t.Fatal("the action is not composite")
	}
	names := map[string]string{"github.event.pull_request.number": "7", "github.event.pull_request.head.repo.full_name": "o/r", "github.token": ciToken, "runner.os": "Linux"}
	if j.fork {
		names["github.event.pull_request.head.repo.full_name"] = "somebody/r"
	}
	if inputs["mode"] == "drift" {
		delete(names, "github.event.pull_request.number")
	}
	temp := filepath.Join(j.temp, "runner")
	if err := os.RemoveAll(temp); err != nil {
		j.t.Fatal(err)
	}
	if err := os.MkdirAll(temp, 0o700); err != nil {
		j.t.Fatal(err)
	}
	names["runner.temp"] = temp
	fill := func(text string) string {
		return regexp.MustCompile(`\$\{\{ (.*?) \}\}`).ReplaceAllStringFunc(text, func(s string) string { return lookup(s[4:len(s)-3], names) })
	}
	for name, in := range a.Inputs {
		names["inputs."+name] = fill(in.Default)
	}
	for name, v := range inputs {
		if _, known := a.Inputs[name]; !known {
			j.t.Fatalf("the action has no input %s", name)
		}
		names["inputs."+name] = v
	}
	env := map[string]string{"GITHUB_API_URL": f.URL, "GITHUB_REPOSITORY": "o/r", "RUNNER_TEMP": temp}
	for _, name := range []string{"GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH"} {
		env[name] = filepath.Join(temp, name)
	}
	outputs, ok = map[string]string{}, true
	j.log.Reset()
	for _, s := range a.Runs.Steps {
		if !ok || s.If != "" && lookup(s.If, names) == "" {
			continue
		}
		switch {
		case strings.HasPrefix(s.Uses, "actions/cache@"):
			continue
		case strings.HasPrefix(s.Uses, "actions/upload-artifact@"):
			f.upload(fill(s.With["name"].(string)), strings.Fields(fill(s.With["path"].(string)))...)
			continue
		case s.Uses != "" || s.Shell != "bash" || strings.Contains(s.Run, "${{"):
			j.t.Fatalf("the step %q cannot be run, or has an expression in its script", s.Name)
		}
		with := maps.Clone(env)
		for k, v := range s.Env {
			with[k] = fill(v)
		}
		_ = os.WriteFile(env["GITHUB_OUTPUT"], nil, 0o600)
		ok = j.run(s.Run, with, "bash", "--noprofile", "--norc", "-eo", "pipefail", "-c") == nil
		text, _ := os.ReadFile(env["GITHUB_OUTPUT"])
		for line := range strings.Lines(string(text)) {
			k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
			names["steps."+s.ID+".outputs."+k] = v
			outputs[k] = v
		}
	}
	text, _ := os.ReadFile(env["GITHUB_STEP_SUMMARY"])
	j.harmless("the log", j.log.String())
	j.harmless("the summary", string(text))
	return outputs, string(text), ok
}

// upload keeps files as an artifact.
func (f *forge) upload(name string, paths ...string) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			f.t.Fatal(err)
		}
		e, err := w.Create(filepath.Base(p))
		if err != nil {
			f.t.Fatal(err)
		}
		if _, err := io.Copy(e, bytes.NewReader(text)); err != nil {
			f.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.artifacts[name] = b.Bytes()
}

// plan returns the name of the artifact with the plan of a commit. "" means that there is none.
func (f *forge) plan(commit string) string {
	for name := range f.artifacts {
		if strings.HasPrefix(name, "terrace-plan-"+commit+"-") {
			return name
		}
	}
	return ""
}

// ours returns the comments that Terrace wrote.
func (f *forge) ours() (out []*post) {
	for _, p := range f.comments {
		if strings.HasPrefix(p.Body, "<!-- terrace: ") {
			out = append(out, p)
		}
	}
	return out
}

const ciDirectory = `
-- main.tf --
variable "password" { sensitive = true }
resource "terraform_data" "a" { input = [1, var.password] }
`

func TestGitHubAction(t *testing.T) {
	t.Parallel()
	j := newJob(t, ciDirectory)
	f := newForge(t)
	for i := range 120 { // the comment is not on the first page
		f.comments = append(f.comments, &post{ID: i + 1, Number: i + 1, Body: "Looks good."})
	}
	state := filepath.Join(j.work, "terraform.tfstate")
	plan := func() (map[string]string, bool) {
		t.Helper()
		out, summary, ok := j.action(f, map[string]string{"mode": "plan", "all": ""})
		all := f.ours()
		if len(all) != 1 || all[0].Body != summary || len(f.comments) != 121 {
			t.Fatalf("there are %d comments of the action, and %d in all; log:\n%s", len(all), len(f.comments), j.log.String())
		}
		j.harmless("the comment", summary)
		return out, ok
	}
	apply := func(label string) bool {
		t.Helper()
		_, _, ok := j.action(f, map[string]string{"mode": "apply", "all": "", "label": label})
		return ok
	}
	first := j.git("rev-parse", "HEAD")
	out, ok := plan()
	if !ok || out["code"] != "2" || out["changes"] != "true" || f.plan(first) == "" {
		t.Fatalf("plan: %v\n%s", out, j.log.String())
	}
	if !strings.Contains(f.ours()[0].Body, "## Plan: 1 to add") {
		t.Errorf("the comment is %s", f.ours()[0].Body)
	}

	// A pull request that is updated has the same comment.
	j.write("main.tf", "variable \"password\" { sensitive = true }\nresource \"terraform_data\" \"a\" { input = [2, var.password] }\nresource \"terraform_data\" \"b\" {}\n")
	second := j.commit()
	if apply("") || !strings.Contains(j.log.String(), "There is no plan for the directory . at the commit "+second) {
		t.Errorf("a commit without a plan was applied:\n%s", j.log.String())
	}
	plan()
	if !strings.Contains(f.ours()[0].Body, "## Plan: 2 to add") {
		t.Errorf("the comment is %s", f.ours()[0].Body)
	}

	// Nothing is applied without the label, or from the plan of another commit.
	if apply("approved") || !strings.Contains(j.log.String(), "does not have the label approved") {
		t.Errorf("applied without the label:\n%s", j.log.String())
	}
	f.labels = []string{"docs", "approved"}
	right := f.artifacts[f.plan(second)]
	f.artifacts[f.plan(second)] = f.artifacts[f.plan(first)]
	if apply("approved") || !strings.Contains(j.log.String(), "The plan is for the commit "+first) {
		t.Errorf("applied the plan of another commit:\n%s", j.log.String())
	}
	if _, err := os.Stat(state); err == nil {
		t.Fatal("something was applied")
	}
	f.artifacts[f.plan(second)] = right
	if !apply("approved") {
		t.Fatalf("the approved plan was not applied:\n%s", j.log.String())
	}
	text, err := os.ReadFile(state)
	if err != nil || !strings.Contains(string(text), `"name": "b"`) {
		t.Errorf("the state is %s (%v)", text, err)
	}
	if apply("approved") { // the state has changed
		t.Errorf("the plan was applied twice:\n%s", j.log.String())
	}

	// A plan without changes can be applied, too.
	if out, ok := plan(); !ok || out["code"] != "0" || !apply("approved") {
		t.Errorf("the plan without changes was not applied: %v\n%s", out, j.log.String())
	}

	// A plan that fails updates the comment, and the job fails, also if init fails.
	for _, text := range []string{"locals { a = local.b }\n", "locals {\n"} {
		j.write("broken.tf", text)
		if _, ok := plan(); ok || !strings.Contains(f.ours()[0].Body, "## Plan failed") {
			t.Errorf("the comment of a failed plan is %s", f.ours()[0].Body)
		}
		f.ours()[0].Body = strings.Replace(f.ours()[0].Body, "## Plan failed", "", 1)
	}
	if err := os.Remove(filepath.Join(j.work, "broken.tf")); err != nil {
		t.Fatal(err)
	}

	// One issue about drift is opened, updated and closed.
	drift := func() string {
		t.Helper()
		_, _, ok := j.action(f, map[string]string{"mode": "drift", "all": ""})
		if !ok {
			t.Fatalf("drift failed:\n%s", j.log.String())
		}
		text := ""
		for _, p := range f.issues {
			text += p.State + " " + p.Title + "\n"
			j.harmless("the issue", p.Body)
		}
		return text
	}
	if got := drift(); got != "" {
		t.Errorf("without drift there are the issues %s", got)
	}
	j.write("output.tf", "output \"o\" { value = 1 }\n")
	title := "Drift: only outputs changed in " + filepath.Base(j.work) + "\n"
	for range 2 {
		if got := drift(); got != "open "+title {
			t.Errorf("the issues are %s", got)
		}
		f.issues[0].Labels = []string{"urgent"} // a person sets a label
	}
	if got := drift(); !slices.Equal(f.issues[0].Labels, []string{"urgent"}) {
		t.Error(got)
		t.Errorf("an update removed the labels of people: %s", f.issues[0].Labels)
	}
	j.write("output.tf", "")
	if got := drift(); got != "closed "+title {
		t.Errorf("the issues are %s", got)
	}
}

const ciEstate = `
-- live/a/terragrunt.hcl --
terraform { source = "../../m" }
-- live/b/terragrunt.hcl --
terraform { source = "../../m" }
-- m/main.tf --
variable "password" { sensitive = true }
resource "terraform_data" "a" { input = var.password }
`

func TestGitHubActionEstate(t *testing.T) {
	t.Parallel()
	j := newJob(t, ciEstate)
	f := newForge(t)
	for range 2 {
		out, _, ok := j.action(f, map[string]string{"mode": "plan", "directory": "live", "arguments": "--parallelism 1"})
		if !ok || out["changes"] != "true" || len(f.comments) != 1 || !strings.Contains(f.comments[0].Body, "2 of 2 units with changes") {
			t.Fatalf("plan: %v %v\n%s", out, f.comments, j.log.String())
		}
	}
	if _, _, ok := j.action(f, map[string]string{"mode": "apply", "directory": "live"}); !ok {
		t.Fatalf("the approved plan was not applied:\n%s", j.log.String())
	}
	out, _, ok := j.action(f, map[string]string{"mode": "plan", "directory": "live"})
	if !ok || out["code"] != "0" || !strings.Contains(f.comments[0].Body, "no changes") {
		t.Fatalf("plan: %v %v\n%s", out, f.comments, j.log.String())
	}
	if _, _, ok := j.action(f, map[string]string{"mode": "drift", "directory": "live"}); !ok || len(f.issues) > 0 {
		t.Errorf("drift:\n%s", j.log.String())
	}
}

// TestGitHubActionDirectories plans and applies two estates of one repository whose directories have the
// same name, in one job, and a directory in two workspaces.
func TestGitHubActionDirectories(t *testing.T) {
	t.Parallel()
	j := newJob(t, `
-- eu/live größe/a/terragrunt.hcl --
terraform { source = "../../../m" }
inputs = { v = "europe" }
-- us/live größe/a/terragrunt.hcl --
terraform { source = "../../../m" }
inputs = { v = "america" }
-- m/main.tf --
variable "v" { default = "alone" }
resource "terraform_data" "a" { input = var.v }
`)
	f := newForge(t)
	run := func(mode, dir, all, workspace string) {
		t.Helper()
		env := j.env
		if workspace != "" {
			j.env = append(slices.Clip(env), "TF_WORKSPACE="+workspace)
		}
		defer func() { j.env = env }()
		if _, _, ok := j.action(f, map[string]string{"mode": mode, "directory": dir, "all": all}); !ok {
			t.Fatalf("%s of %s:\n%s", mode, dir, j.log.String())
		}
		if mode == "apply" && !strings.Contains(j.log.String(), "Apply complete! Resources: 1 added") {
			t.Errorf("%s of %s:\n%s", mode, dir, j.log.String())
		}
	}
	for range 2 {
		run("plan", "eu/live größe", "true", "")
		run("plan", "us/live größe", "true", "")
		run("plan", "m", "", "")
		run("plan", "m", "", "prod")
	}
	var marks []string
	for _, p := range f.comments {
		first, _, _ := strings.Cut(p.Body, "\n")
		marks = append(marks, first)
	}
	want := []string{"<!-- terrace: plan of eu/live größe -->", "<!-- terrace: plan of us/live größe -->", "<!-- terrace: plan of m -->", "<!-- terrace: plan of m (prod) -->"}
	if !slices.Equal(marks, want) || len(f.artifacts) != 4 {
		t.Errorf("the comments are %q, with %d artifacts", marks, len(f.artifacts))
	}
	run("apply", "eu/live größe", "true", "")
	run("apply", "us/live größe", "true", "")
	run("apply", "m", "", "prod")
	if _, err := os.Stat(filepath.Join(j.work, "m/terraform.tfstate.d/prod/terraform.tfstate")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(j.work, "m/terraform.tfstate")); err == nil {
		t.Error("the plan of a workspace was applied in another one")
	}

	// An estate whose init fails in the same job has the comment of its own errors.
	j.write("us/live größe/a/terragrunt.hcl", "terraform {\n")
	if _, _, ok := j.action(f, map[string]string{"mode": "plan", "directory": "us/live größe"}); ok || !strings.Contains(f.comments[1].Body, "## Plan failed") || len(f.comments) != 4 {
		t.Errorf("the comments are %v\n%s", f.comments, j.log.String())
	}
}

// TestGitHubActionRemovedUnit destroys the objects of a unit that a pull request removes.
func TestGitHubActionRemovedUnit(t *testing.T) {
	t.Parallel()
	j := newJob(t, strings.ReplaceAll(ciEstate, "var.password", `"x"`))
	f := newForge(t)
	run := func(mode, arguments string) bool {
		t.Helper()
		_, _, ok := j.action(f, map[string]string{"mode": mode, "directory": "live", "arguments": arguments})
		return ok
	}
	base := j.git("rev-parse", "HEAD")
	if !run("plan", "") || !run("apply", "") {
		t.Fatal(j.log.String())
	}
	j.git("rm", "-q", "live/a/terragrunt.hcl")
	j.commit()
	if !run("plan", "--affected "+base) || !strings.Contains(f.comments[0].Body, "Warning: Units removed") {
		t.Errorf("the comment is %s\n%s", f.comments[0].Body, j.log.String())
	}
	filter := "--filter [" + base + "...HEAD]"
	if !run("plan", filter) || !strings.Contains(f.comments[0].Body, "## Plan: 0 to add, 0 to change, 1 to destroy") {
		t.Errorf("the comment is %s\n%s", f.comments[0].Body, j.log.String())
	}
	if run("apply", "") || !strings.Contains(j.log.String(), "--filter-allow-destroy") {
		t.Errorf("applied without the flag:\n%s", j.log.String())
	}
	if !run("apply", filter+" --filter-allow-destroy") || !strings.Contains(j.log.String(), "0 added, 0 changed, 1 destroyed") {
		t.Errorf("the objects were not destroyed:\n%s", j.log.String())
	}
}

// TestGitHubActionCheck does not keep a plan that fails the check.
func TestGitHubActionCheck(t *testing.T) {
	t.Parallel()
	for files, in := range map[string]map[string]string{
		ciDirectory: {"all": "", "check": `jq -e '.resource_changes | length == 2' "$PLAN_JSON" >/dev/null`},
		ciEstate:    {"directory": "live", "check": `jq -e '[.units[].plan.resource_changes[]] | length == 3' "$PLAN_JSON" >/dev/null`},
	} {
		j := newJob(t, files)
		f := newForge(t)
		in["mode"] = "plan"
		if _, _, ok := j.action(f, in); ok || len(f.artifacts) > 0 || len(f.comments) != 1 {
			t.Errorf("the plan failed the check, and there are %d artifacts:\n%s", len(f.artifacts), j.log.String())
		}
		in["check"] = strings.NewReplacer("== 2", "== 1", "== 3", "== 2").Replace(in["check"])
		if _, _, ok := j.action(f, in); !ok || len(f.artifacts) != 1 {
			t.Errorf("the plan passed the check, and there are %d artifacts:\n%s", len(f.artifacts), j.log.String())
		}
		if found, err := filepath.Glob(filepath.Join(j.temp, "runner/terrace/*.json")); len(found) > 0 || err != nil {
			t.Errorf("the plan as JSON was not removed: %v %v", found, err)
		}
	}
}

// TestGitHubActionFork plans a pull request of a fork, whose token can only read.
func TestGitHubActionFork(t *testing.T) {
	t.Parallel()
	j := newJob(t, ciDirectory)
	f := newForge(t)
	f.readOnly = true
	if _, _, ok := j.action(f, map[string]string{"mode": "plan", "all": ""}); ok {
		t.Errorf("a comment that failed is no error:\n%s", j.log.String())
	}
	j.fork = true
	_, summary, ok := j.action(f, map[string]string{"mode": "plan", "all": ""})
	if !ok || !strings.Contains(summary, "## Plan: 1 to add") || !strings.Contains(j.log.String(), "The plan is in the summary of the job.") {
		t.Errorf("the summary is %s; the log:\n%s", summary, j.log.String())
	}
}

// TestGitHubActionKilled fails the job if the program is killed.
func TestGitHubActionKilled(t *testing.T) {
	t.Parallel()
	j := newJob(t, ciDirectory)
	f := newForge(t)
	if _, _, ok := j.action(f, map[string]string{"mode": "plan", "all": ""}); !ok {
		t.Fatal(j.log.String())
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "terrace"), []byte("#!/bin/sh\nif [ \"$1\" != init ]; then kill -9 $$; fi\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	j.env[0] = "PATH=" + bin + ":" + os.Getenv("PATH")
	for _, mode := range []string{"plan", "apply", "drift"} {
		if out, _, ok := j.action(f, map[string]string{"mode": mode, "all": ""}); ok || out["code"] != "1" {
			t.Errorf("%s was killed, and the job succeeded: %v\n%s", mode, out, j.log.String())
		}
	}
	for _, name := range []string{"terrace-plan", "terrace-drift"} {
		if err := j.gitlab(f, name, map[string]string{"TERRACE_RUN": ""}); err == nil {
			t.Errorf("%s was killed, and the job succeeded:\n%s", name, j.log.String())
		}
	}
	if len(f.issues) > 0 {
		t.Errorf("there is an issue %v", f.issues[0])
	}
}

// gitlab runs a job of the template.
func (j *ciJob) gitlab(f *forge, name string, env map[string]string) error {
	j.t.Helper()
	var file map[string]json.RawMessage
	decodeYAML(j.t, "ci/gitlab/terrace.gitlab-ci.yml", &file)
	var job struct{ Script []string }
	with := map[string]string{}
	for _, part := range []struct {
		text json.RawMessage
		into any
	}{{file["variables"], &with}, {file[name], &job}} {
		if err := json.Unmarshal(part.text, part.into); err != nil {
			j.t.Fatal(err)
		}
	}
	maps.Copy(with, map[string]string{
		"CI_PROJECT_DIR": j.work, "CI_API_V4_URL": f.URL, "CI_PROJECT_ID": "5", "CI_MERGE_REQUEST_IID": "7",
		"CI_COMMIT_SHA": j.git("rev-parse", "HEAD"), "TERRACE_TOKEN": ciToken,
	})
	maps.Copy(with, env)
	j.log.Reset()
	err := j.run(strings.Join(job.Script, "\n"), with, "bash", "-eo", "pipefail", "-c")
	j.harmless("the log", j.log.String())
	return err
}

func TestGitLabTemplate(t *testing.T) {
	t.Parallel()
	j := newJob(t, ciEstate)
	f := newForge(t)
	in := map[string]string{"TERRACE_DIRECTORY": "live"}
	for i := range 120 { // the note is not on the first page
		f.comments = append(f.comments, &post{ID: i + 1, Number: i + 1, Body: "Looks good."})
	}
	for range 2 {
		if err := j.gitlab(f, "terrace-plan", in); err != nil || len(f.comments) != 121 || !strings.Contains(f.comments[120].Body, "2 of 2 units with changes") {
			t.Fatalf("plan: %v %v\n%s", err, f.comments, j.log.String())
		}
	}
	j.harmless("the note", f.comments[120].Body)
	report, err := os.ReadFile(filepath.Join(j.work, "terrace-plan/report.json"))
	if err != nil || strings.TrimSpace(string(report)) != `{"create":2,"update":0,"delete":0}` {
		t.Errorf("the report is %s (%v)", report, err)
	}
	if err := j.gitlab(f, "terrace-apply", map[string]string{"TERRACE_DIRECTORY": "live", "CI_COMMIT_SHA": "another"}); err == nil || !strings.Contains(j.log.String(), "and this is another") {
		t.Errorf("applied the plan of another commit:\n%s", j.log.String())
	}
	if err := j.gitlab(f, "terrace-apply", nil); err == nil || !strings.Contains(j.log.String(), "and this job is for .") {
		t.Errorf("applied the plan of another directory:\n%s", j.log.String())
	}
	if err := j.gitlab(f, "terrace-apply", in); err != nil {
		t.Fatalf("the approved plan was not applied: %v\n%s", err, j.log.String())
	}
	if err := j.gitlab(f, "terrace-drift", in); err != nil || len(f.issues) > 0 {
		t.Errorf("drift: %v\n%s", err, j.log.String())
	}

	// In a single directory.
	j = newJob(t, ciDirectory)
	f = newForge(t)
	in = map[string]string{"TERRACE_RUN": ""}
	for _, name := range []string{"terrace-plan", "terrace-apply"} {
		if err := j.gitlab(f, name, in); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, j.log.String())
		}
	}
	j.write("output.tf", "output \"o\" { value = 1 }\n")
	for range 2 {
		if err := j.gitlab(f, "terrace-drift", in); err != nil || len(f.issues) != 1 || f.issues[0].State != "open" || !strings.HasPrefix(f.issues[0].Text, "<!-- terrace: drift of ") {
			t.Fatalf("drift: %v %v\n%s", err, f.issues, j.log.String())
		}
	}
	f.issues[0].Labels = []string{"urgent"} // a person sets a label
	if err := j.gitlab(f, "terrace-drift", in); err != nil || !slices.Equal(f.issues[0].Labels, []string{"urgent"}) {
		t.Errorf("drift: %v %v\n%s", err, f.issues[0].Labels, j.log.String())
	}
	j.write("output.tf", "")
	if err := j.gitlab(f, "terrace-drift", in); err != nil || f.issues[0].State != "closed" {
		t.Errorf("drift: %v %v\n%s", err, f.issues, j.log.String())
	}
	for _, text := range []string{"locals { a = local.b }\n", "locals {\n"} { // init fails, too
		j.write("broken.tf", text)
		if err := j.gitlab(f, "terrace-plan", in); err == nil || !strings.Contains(f.comments[0].Body, "## Plan failed") {
			t.Errorf("the note of a failed plan is %s", f.comments[0].Body)
		}
		f.comments[0].Body = strings.Replace(f.comments[0].Body, "## Plan failed", "", 1)
	}

	// The pipeline of a fork has no token.
	j.write("broken.tf", "")
	before := len(f.calls)
	if err := j.gitlab(f, "terrace-plan", map[string]string{"TERRACE_RUN": "", "TERRACE_TOKEN": ""}); err != nil || len(f.calls) != before {
		t.Errorf("a plan without a token: %v\n%s", err, j.log.String())
	}
}

// atlantisStep is a step of a workflow of Atlantis: a script, or a variable that is set for the later steps.
type atlantisStep struct {
	Run string
	Env struct{ Name, Value, Command string }
}

// atlantisSteps returns the steps of a stage of a workflow.
func atlantisSteps(t *testing.T, workflow, stage string) []atlantisStep {
	t.Helper()
	var file struct {
		Workflows map[string]map[string]struct{ Steps []atlantisStep }
	}
	decodeYAML(t, "ci/atlantis/repos.yaml", &file)
	out := file.Workflows[workflow][stage].Steps
	if len(out) == 0 {
		t.Fatalf("the workflow %s has no %s", workflow, stage)
	}
	return out
}

// atlantis runs a stage of a workflow as Atlantis does. It returns the output.
func (j *ciJob) atlantis(workflow, stage string, env map[string]string) (string, error) {
	j.t.Helper()
	env = maps.Clone(env)
	j.log.Reset()
	for _, s := range atlantisSteps(j.t, workflow, stage) {
		switch {
		case s.Run != "":
			if err := j.run(s.Run, env, "sh", "-c"); err != nil {
				return j.log.String(), err
			}
		case s.Env.Command != "":
			c := exec.CommandContext(j.t.Context(), "sh", "-c", s.Env.Command)
			c.Dir, c.Env = j.work, j.env
			for k, v := range env {
				c.Env = append(c.Env, k+"="+v)
			}
			out, err := c.Output()
			if err != nil {
				return s.Env.Command, err
			}
			env[s.Env.Name] = strings.TrimSuffix(string(out), "\n")
		default:
			env[s.Env.Name] = s.Env.Value
		}
	}
	j.harmless("the log", j.log.String())
	return j.log.String(), nil
}

// commentArguments returns the variable COMMENT_ARGS for arguments in a comment.
func commentArguments(args ...string) string {
	for i, a := range args {
		args[i] = regexp.MustCompile(`.`).ReplaceAllString(a, `\$0`)
	}
	return strings.Join(args, ",")
}

func TestAtlantisWorkflow(t *testing.T) {
	t.Parallel()
	for workflow, files := range map[string]string{"terrace": ciDirectory, "terrace-estate": ciEstate} {
		j := newJob(t, files)
		dir := j.work
		env := map[string]string{
			"WORKSPACE": "default", "PLANFILE": filepath.Join(dir, "default.tfplan"), "SHOWFILE": filepath.Join(dir, "default.json"), "DIR": dir,
			"BASE_REPO_NAME": "r", "PULL_NUM": "7", "HEAD_COMMIT": "x", "COMMENT_ARGS": "", "ATLANTIS_TERRAFORM_VERSION": "1.12.6",
		}
		run := func(stage string) string {
			t.Helper()
			out, err := j.atlantis(workflow, stage, env)
			if err != nil {
				t.Fatalf("%s of %s: %v\n%s", stage, workflow, err, out)
			}
			return out
		}
		run("plan")
		run("apply")
		if _, err := os.Stat(env["PLANFILE"]); err == nil {
			t.Errorf("%s: the applied plan is still there", workflow)
		}
		if out := run("plan"); !strings.Contains(out, "No changes") {
			t.Errorf("%s: after the apply the plan is\n%s", workflow, out)
		}
		env["COMMENT_ARGS"] = commentArguments("-refresh=false", "-no-such-flag")
		if out, err := j.atlantis(workflow, "plan", env); err == nil || !strings.Contains(out, "no-such-flag") {
			t.Errorf("%s: with the arguments of the comment the plan is\n%s", workflow, out)
		}
	}

	// The arguments of the comment reach the program as they are; so does the file of variables of the
	// workspace.
	j := newJob(t, `
-- main.tf --
variable "l" { type = list(string) }
variable "m" {}
resource "terraform_data" "a" { input = join(":", concat(var.l, [var.m])) }
resource "terraform_data" "old" { input = 1 }
-- env/staging.tfvars --
m = "from the file"
`)
	env := map[string]string{"WORKSPACE": "staging", "PLANFILE": filepath.Join(j.work, "staging.tfplan"), "COMMENT_ARGS": commentArguments(`-var=l=["a b","*",",","$(exit 1)"]`)}
	out, err := j.atlantis("terrace", "plan", env)
	if err != nil || !strings.Contains(out, `"a b:*:,:$(exit 1):from the file"`) {
		t.Errorf("the plan is %v\n%s", err, out)
	}
	if out, err = j.atlantis("terrace", "apply", env); err != nil {
		t.Errorf("apply: %v\n%s", err, out)
	}
	env["COMMENT_ARGS"] = commentArguments("terraform_data.old")
	if out, err = j.atlantis("terrace", "state_rm", env); err != nil || !strings.Contains(out, "Removed terraform_data.old") {
		t.Errorf("state_rm: %v\n%s", err, out)
	}
	env["COMMENT_ARGS"] = commentArguments(`-var=l=["a"]`, "terraform_data.old", "some-id")
	if out, err = j.atlantis("terrace", "import", env); err != nil || !strings.Contains(out, "Import successful") {
		t.Errorf("import: %v\n%s", err, out)
	}
}

// TestShellOfRecipes checks the scripts of the recipes with shellcheck.
func TestShellOfRecipes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("SKIP: shellcheck is not installed: apt-get install shellcheck")
	}
	scripts := map[string]string{}
	var a ciAction
	decodeYAML(t, "ci/github/action.yml", &a)
	for _, s := range a.Runs.Steps {
		if s.Run != "" {
			scripts["action: "+s.Name] = s.Run
		}
	}
	var file map[string]json.RawMessage
	decodeYAML(t, "ci/gitlab/terrace.gitlab-ci.yml", &file)
	for name, text := range file {
		var job struct{ Script []string }
		if json.Unmarshal(text, &job) == nil && len(job.Script) > 0 {
			scripts["GitLab: "+name] = strings.Join(job.Script, "\n")
		}
	}
	for _, workflow := range []string{"terrace", "terrace-estate"} {
		for _, s := range append(atlantisSteps(t, workflow, "plan"), atlantisSteps(t, workflow, "apply")...) {
			scripts["Atlantis: "+workflow] += s.Run + "\n" + s.Env.Command + "\n"
		}
	}
	if len(scripts) < 10 {
		t.Errorf("only %d scripts were found", len(scripts))
	}
	for name, text := range scripts {
		// SC2154: variables of the environment. SC2086: the arguments of Atlantis are several words.
		shell, exclude, first := "bash", "SC2154", "set -eo pipefail\n"
		if !strings.HasPrefix(name, "action") {
			shell, first = "sh", "set -e\n"
		}
		if strings.HasPrefix(name, "Atlantis") {
			exclude += ",SC2086"
		}
		c := exec.CommandContext(t.Context(), "shellcheck", "--shell="+shell, "--exclude="+exclude, "-")
		c.Stdin = strings.NewReader(first + text)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %s", name, fmt.Sprint(string(out), err))
		}
	}
}
