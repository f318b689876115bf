package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
)

// TestCloudScripts runs testdata/cloud: the cloud block and the backend "remote". In addition
// to the commands of TestScripts, scripts have these commands:
//
//	service            starts a service and sets TF_CLOUD_HOSTNAME, TF_CLOUD_ORGANIZATION,
//	                   SSL_CERT_FILE and, in the CLI configuration, the token for it
//	space NAME KEY=VALUE...  creates or changes a workspace: mode, version, lock, tags, dir,
//	                   plain, vcs, deny, var
//	served NAME FILE   writes the state of a workspace to a file; the file is empty for none
//	runs KEY=VALUE...  configures the next runs: log, apply (files), changes, fails, cost,
//	                   policy=STATUS, task=STAGE/STATUS, stuck=STATUS, warning, json, redacted,
//	                   late, queued
//	ran FILE           writes the last run to a file: status, request, files
//	asked FILE         writes the requests since the last call to a file
func TestCloudScripts(t *testing.T) {
	t.Parallel()
	var running sync.Map // string, the script's directory, to *cloudService
	service := func(ts *testscript.TestScript) *cloudService {
		s, ok := running.Load(ts.Getenv("WORK"))
		if !ok {
			ts.Fatalf("no service runs: the command service starts one")
		}
		return s.(*cloudService)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/cloud",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		WorkdirRoot:         scriptRoot(t),
		Setup:               setup,
		Condition: func(cond string) (bool, error) {
			return cond == "tofu" && os.Getenv("TERRACE_TEST_TOFU") != "", nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"scrub":   scrub,
			"tofu":    tofu,
			"codes":   codes,
			"envfile": envfile,
			"service": func(ts *testscript.TestScript, _ bool, _ []string) {
				s := &cloudService{TFEServer: servers.TFE(t)}
				running.Store(ts.Getenv("WORK"), s)
				ts.Setenv("TF_CLOUD_HOSTNAME", s.Host)
				ts.Setenv("TF_VAR_host", s.Host)
				ts.Setenv("TF_CLOUD_ORGANIZATION", "acme")
				ts.Setenv("SSL_CERT_FILE", s.CA)
				rc := ts.Getenv("HOME") + "/cloud.tfrc"
				ts.Check(os.WriteFile(rc, []byte("credentials \""+s.Host+"\" {\n  token = \"planted-token\"\n}\n"), 0o600))
				ts.Setenv("TF_CLI_CONFIG_FILE", rc)
			},
			"space": func(ts *testscript.TestScript, _ bool, args []string) {
				s := service(ts)
				if s.Workspace(args[0]) == nil {
					s.Add(servers.TFEWorkspace{Name: args[0], Mode: "local"})
				}
				s.Change(args[0], func(w *servers.TFEWorkspace) {
					for _, pair := range args[1:] {
						name, value, _ := strings.Cut(pair, "=")
						change(ts, w, name, value)
					}
				})
			},
			"served": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(service(ts).State(args[0])), 0o666))
			},
			"runs": func(ts *testscript.TestScript, _ bool, args []string) {
				s := service(ts)
				s.Runs = func(r *servers.TFERun) {
					for _, pair := range args {
						name, value, _ := strings.Cut(pair, "=")
						script(ts, r, name, value)
					}
				}
			},
			"ran": func(ts *testscript.TestScript, _ bool, args []string) {
				s := service(ts)
				r := s.Run()
				if r == nil {
					ts.Fatalf("there was no run")
				}
				sent, err := json.Marshal(r.Sent)
				ts.Check(err)
				text := "status " + r.Status + "\nsent " + string(sent) + "\n"
				if c := s.Uploaded(); c != nil {
					text += fmt.Sprintf("speculative %v provisional %v\n", c.Speculative, c.Provisional)
					for _, name := range c.Files {
						text += "file " + name + "\n"
					}
				}
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o666))
			},
			"asked": func(ts *testscript.TestScript, _ bool, args []string) {
				s := service(ts)
				all := s.Log()
				ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(all[s.seen:], "\n")), 0o666))
				s.seen = len(all)
			},
		},
	})
}

type cloudService struct {
	*servers.TFEServer
	seen int // position in its log
}

func script(ts *testscript.TestScript, r *servers.TFERun, name, value string) {
	switch name {
	case "log":
		r.PlanLog = ts.ReadFile(value)
	case "apply":
		r.ApplyLog = ts.ReadFile(value)
	case "changes":
		r.Changes = value == "true"
	case "fails":
		r.PlanFails, r.ApplyFails = value == "plan", value == "apply"
	case "cost":
		r.Cost = &servers.TFECost{Prior: "1.0", Proposed: value, Delta: "2.5"}
	case "policy":
		r.Policies = append(r.Policies, servers.TFEPolicy{Status: value, Log: "the policy said " + value + "\n"})
	case "task":
		stage, status, _ := strings.Cut(value, "/")
		r.Stages = append(r.Stages, servers.TFEStage{Stage: stage, Status: status, Task: "scanner"})
	case "stuck":
		r.Stuck = value
	case "warning":
		r.Events = append(r.Events, value)
	case "json":
		r.JSONPlan = ts.ReadFile(value)
	case "redacted":
		r.Redacted = ts.ReadFile(value)
	case "late":
		r.Late = 3
	case "queued":
		r.Queued = 2
	default:
		ts.Fatalf("a run has no %s", name)
	}
}

func change(ts *testscript.TestScript, w *servers.TFEWorkspace, name, value string) {
	switch name {
	case "mode":
		w.Mode = value
	case "version":
		w.Version = value
	case "lock":
		w.LockedBy, w.Reason = value, ""
	case "tags":
		w.Tags = strings.Split(value, ",")
	case "dir":
		w.Dir = value
	case "plain":
		w.Plain = value == "true"
	case "vcs":
		w.VCS = value == "true"
	case "deny":
		w.Deny = append(w.Deny, value)
	case "var":
		k, v, _ := strings.Cut(value, "=")
		w.Vars = append(w.Vars, servers.TFEVar{Key: k, Value: v, Category: "terraform"})
	default:
		ts.Fatalf("a workspace has no %s", name)
	}
}
