//go:build unix

package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// A hub is the stand-in of GitHub for a server of Atlantis: its API, and git over HTTPS.
type hub struct {
	*httptest.Server
	t        *testing.T
	bare     string // directory of the repositories
	mu       sync.Mutex
	comments []string
}

func (h *hub) rev(name string) string {
	out, err := exec.Command("git", "-C", filepath.Join(h.bare, "o/r.git"), "rev-parse", name).Output()
	if err != nil {
		h.t.Error(err)
	}
	return strings.TrimSpace(string(out))
}

type object = map[string]any

func (h *hub) repository() object {
	return object{"id": 1, "name": "r", "full_name": "o/r", "owner": object{"login": "o"}, "html_url": h.URL + "/o/r", "clone_url": h.URL + "/o/r.git", "default_branch": "main"}
}

func (h *hub) pull() object {
	side := func(ref string) object {
		return object{"ref": ref, "sha": h.rev(ref), "user": object{"login": "o"}, "repo": h.repository()}
	}
	return object{
		"number": 7, "state": "open", "html_url": h.URL + "/o/r/pull/7", "url": h.URL + "/api/v3/repos/o/r/pulls/7", "title": "t", "user": object{"login": "dev"},
		"mergeable": true, "mergeable_state": "clean", "head": side("change"), "base": side("main"),
	}
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v3/repos/o/r")
	answer := func(status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body) // the client may have gone
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/o/r.git"):
		git, _ := exec.LookPath("git")
		(&cgi.Handler{Path: git, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + h.bare, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}}).ServeHTTP(w, r)
	case path == "/pulls/7":
		answer(200, h.pull())
	case path == "/pulls/7/files":
		out, err := exec.Command("git", "-C", filepath.Join(h.bare, "o/r.git"), "diff", "--name-only", "main", "change").Output()
		if err != nil {
			h.t.Error(err)
		}
		files := []object{}
		for _, name := range strings.Fields(string(out)) {
			files = append(files, object{"filename": name, "status": "modified"})
		}
		answer(200, files)
	case path == "/pulls/7/reviews":
		answer(200, []object{{"id": 1, "user": object{"login": "boss"}, "state": "APPROVED", "submitted_at": "2026-01-02T03:04:05Z", "commit_id": h.rev("change")}})
	case path == "/issues/7/comments" && r.Method == http.MethodPost:
		var c struct{ Body string }
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			h.t.Error(err)
		}
		h.mu.Lock()
		h.comments = append(h.comments, c.Body)
		h.mu.Unlock()
		answer(201, object{"id": 1, "body": c.Body})
	case path == "/issues/7/comments":
		answer(200, []object{})
	case strings.HasPrefix(path, "/statuses/"):
		answer(201, object{"id": 1, "state": "success"})
	case strings.HasSuffix(path, "/status"):
		answer(200, object{"state": "success", "statuses": []object{}, "total_count": 0})
	case strings.HasSuffix(path, "/reactions"):
		answer(201, object{"id": 1, "content": "eyes"})
	case strings.HasSuffix(r.URL.Path, "/graphql"):
		rules := object{"nodes": []object{}, "pageInfo": object{"hasNextPage": false, "endCursor": nil}}
		answer(200, object{"data": object{"repository": object{"pullRequest": object{
			"reviewDecision": "APPROVED", "mergeable": "MERGEABLE", "mergeStateStatus": "CLEAN",
			"baseRef": object{"branchProtectionRule": nil, "rules": rules}, "commits": object{"nodes": []object{{"commit": object{"statusCheckRollup": nil}}}},
		}}}})
	default:
		answer(404, object{"message": "Not Found"})
	}
}

// comment waits for the next comment and returns it.
func (h *hub) comment(log *os.File) string {
	h.t.Helper()
	for range 1800 {
		h.mu.Lock()
		if len(h.comments) > 0 {
			out := h.comments[0]
			h.comments = h.comments[1:]
			h.mu.Unlock()
			return out
		}
		h.mu.Unlock()
		time.Sleep(100 * time.Millisecond)
	}
	text, _ := os.ReadFile(log.Name())
	h.t.Fatalf("there is no comment; the log of the server:\n%s", text)
	return ""
}

// atlantisRun is a server of Atlantis with a pull request.
type atlantisRun struct {
	*ciJob
	comment func() string            // waits for the next comment of the server
	push    func(action string)      // pushes the branch of the pull request
	say     func(text string) string // comments on the pull request, and waits for the answer
	expect  func(text string, want ...string)
}

// startAtlantis starts a server with a pull request that changes a directory and an estate. policies is
// added to the configuration of the server.
func startAtlantis(t *testing.T, policies string, flags ...string) atlantisRun {
	t.Helper()
	program, err := exec.LookPath("atlantis")
	if err != nil {
		t.Skip("SKIP: atlantis is not on the PATH: go install github.com/runatlantis/atlantis@latest")
	}
	j := newJob(t, `
-- atlantis.yaml --
version: 3
projects:
  - dir: network
  - dir: network
    workspace: staging
  - dir: live
    workflow: terrace-estate
    autoplan:
      when_modified: ["**/*.hcl", "../modules/**/*.tf"]
-- network/env/staging.tfvars --
size = "from the file of staging"
-- network/main.tf --
variable "password" { sensitive = true }
variable "size" { default = "small" }
output "size" { value = var.size }
resource "terraform_data" "x" { input = "one" }
resource "terraform_data" "secret" { input = var.password }
-- modules/m/main.tf --
variable "v" {}
resource "terraform_data" "u" { input = var.v }
-- live/a/terragrunt.hcl --
terraform { source = "../../modules/m" }
inputs = { v = "one" }
`)
	j.git("branch", "-M", "main")
	j.git("checkout", "-q", "-b", "change")
	for _, name := range []string{"network/main.tf", "live/a/terragrunt.hcl"} {
		path := filepath.Join(j.work, name)
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(strings.ReplaceAll(string(text), `"one"`, `"two"`)), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	j.commit()
	h := &hub{t: t, bare: t.TempDir()}
	j.git("clone", "-q", "--bare", ".", filepath.Join(h.bare, "o/r.git"))
	h.Server = httptest.NewTLSServer(h)
	t.Cleanup(h.Close)
	certificate := filepath.Join(j.temp, "cert.pem")
	if err := os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().(*net.TCPAddr)
	_ = l.Close()
	if err := os.Symlink("terrace", filepath.Join(filepath.SplitList(strings.TrimPrefix(j.env[0], "PATH="))[0], "tofu")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../ci/atlantis/repos.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(j.temp, "repos.yaml")
	if err := os.WriteFile(config, append(text, policies...), 0o600); err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(h.URL, "https://")
	name, _, _ := strings.Cut(host, ":")
	log, err := os.Create(filepath.Join(j.temp, "atlantis.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	server := exec.CommandContext(t.Context(), program, append([]string{"server"}, append(flags, "--gh-user=a", "--gh-token="+ciToken, "--gh-webhook-secret=s", "--gh-hostname="+host, "--repo-allowlist="+name+"/o/*",
		"--repo-config="+config, "--data-dir="+filepath.Join(j.temp, "data"), fmt.Sprintf("--port=%d", at.Port), "--atlantis-url=http://"+at.String(), "--default-tf-distribution=opentofu", "--allow-commands=all")...)...)
	server.Env = append(j.env[:len(j.env):len(j.env)], "SSL_CERT_FILE="+certificate, "GIT_SSL_CAINFO="+certificate)
	server.Stdout, server.Stderr = log, log
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
	})

	post := func(event string, payload object) {
		t.Helper()
		body, err := json.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		sign := hmac.New(sha256.New, []byte("s"))
		sign.Write(body)
		for range 300 { // until the server listens
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+at.String()+"/events", strings.NewReader(string(body)))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-Github-Event", event)
			r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sign.Sum(nil)))
			if resp, err := http.DefaultClient.Do(r); err == nil {
				text, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != 200 {
					t.Fatalf("%s: %s", resp.Status, text)
				}
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Fatal("the server does not listen")
	}
	expect := func(text string, want ...string) {
		t.Helper()
		j.harmless("the comment", text)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("the comment does not contain %q:\n%s", w, text)
			}
		}
	}
	push := func(action string) {
		t.Helper()
		j.git("push", "-q", "-f", filepath.Join(h.bare, "o/r.git"), "change")
		post("pull_request", object{"action": action, "number": 7, "pull_request": h.pull(), "repository": h.repository(), "sender": object{"login": "dev"}})
	}
	say := func(text string) string {
		t.Helper()
		issue := object{"number": 7, "user": object{"login": "dev"}, "pull_request": object{"url": h.URL + "/api/v3/repos/o/r/pulls/7"}}
		said := object{"action": "created", "issue": issue, "comment": object{"id": 9, "body": text, "user": object{"login": "boss"}}, "repository": h.repository(), "sender": object{"login": "boss"}}
		post("issue_comment", said)
		for {
			if text := h.comment(log); !strings.Contains(text, "is currently locked by") {
				return text
			}
			time.Sleep(100 * time.Millisecond) // the server writes a comment before it ends the command
			post("issue_comment", said)
		}
	}
	return atlantisRun{ciJob: j, comment: func() string { return h.comment(log) }, push: push, say: say, expect: expect}
}

// TestAtlantisServer runs the workflows with a real server of Atlantis: for a pull request it plans a
// directory and an estate in one comment, and applies the plans on a comment.
func TestAtlantisServer(t *testing.T) {
	t.Parallel()
	a := startAtlantis(t, "")
	a.push("opened")
	a.expect(a.comment(), "Ran Plan for 3 projects", "Plan: 2 to add, 0 to change, 0 to destroy.", "# Unit a", "Plan: 1 to add, 0 to change, 0 to destroy.", "# a/terragrunt.hcl:2", `"from the file of staging"`, "3 projects, 3 with changes, 0 with no changes, 0 failed")
	a.expect(a.say("atlantis apply"), "Ran Apply for 3 projects", "Apply complete! Resources: 2 added, 0 changed, 0 destroyed.", "Apply complete! Resources: 1 added, 0 changed, 0 destroyed.", "3 projects, 3 successful, 0 failed")

	// A plan is applied once.
	a.expect(a.say("atlantis apply"), "Ran Apply for 0 projects")
	a.expect(a.say("atlantis plan"), "3 projects, 0 with changes, 3 with no changes, 0 failed")

	// The arguments of a comment are those of the command.
	a.expect(a.say("atlantis plan -d network -- -target=terraform_data.x"), "Resource targeting is in effect")
	a.expect(a.say("atlantis plan -d live -- -refresh=false -replace=terraform_data.u"), "terraform_data.u will be replaced, as requested")
	a.expect(a.say("atlantis apply -d live"), "Apply complete! Resources: 1 added, 0 changed, 1 destroyed.")
	a.expect(a.say("atlantis state -d network rm terraform_data.x"), "Removed terraform_data.x")
	a.expect(a.say("atlantis import -d network terraform_data.x some-id"), "Import successful!")

	// Errors are in the comment, and nothing is applied.
	a.write("network/broken.tf", "resource {\n")
	a.write("live/a/terragrunt.hcl", "terraform {\n")
	a.commit()
	a.push("synchronize")
	a.expect(a.comment(), "on broken.tf line 1", "on a/terragrunt.hcl line 1", "3 projects, 0 with changes, 0 with no changes, 3 failed")
	a.expect(a.say("atlantis apply"), "errored and cannot be applied")
}

// TestAtlantisPolicies checks the plans of a directory and of an estate with Conftest in Atlantis.
func TestAtlantisPolicies(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("conftest"); err != nil {
		t.Skip("SKIP: conftest is not on the PATH: go install github.com/open-policy-agent/conftest@v0.71.1")
	}
	dir := testkit.Files(t, `
-- main.rego --
package main

import rego.v1

deny contains message if {
	some change in input.resource_changes
	change.change.after.input == "two"
	message := sprintf("%s is two", [change.address])
}

deny contains message if {
	some unit in input.units
	some change in unit.plan.resource_changes
	change.change.after.input == "two"
	message := sprintf("%s: %s is two", [unit.name, change.address])
}
`)
	a := startAtlantis(t, `
policies:
  owners:
    users: [boss]
  policy_sets:
    - name: ours
      path: `+dir+`
      source: local
`, "--enable-policy-checks")
	a.push("opened")
	a.expect(a.comment(), "3 projects, 3 with changes, 0 with no changes, 0 failed")
	a.expect(a.comment(), "main - terraform_data.x is two", "main - a: terraform_data.u is two")
	a.expect(a.say("atlantis apply"), "All policies must pass for project before running apply", "0 successful, 3 failed")
}
