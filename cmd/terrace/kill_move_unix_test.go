//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
)

// TestMoveKilledInStore kills a move between two states at requests, with both states in a
// service. For the next commands the object is in exactly one of them, a remaining lock can
// be released, and no journal remains. Package cli tests local states.
func TestMoveKilledInStore(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: takes a while; run without -short")
	}
	t.Parallel()
	services := map[string]*servers.HTTPServer{"a": servers.HTTP(t), "b": servers.HTTP(t)}
	mux := http.NewServeMux()
	for name, s := range services {
		mux.Handle("/"+name+"/", http.StripPrefix("/"+name, s))
	}
	requests := &killerAtRequest{service: mux}
	url := requests.start(t)
	k := &commandKiller{killer: killer{t: t, terrace: testkit.Terrace(t)}, root: t.TempDir()}
	k.env = environ("TF_CLI_CONFIG_FILE="+os.DevNull, "TMPDIR="+k.tmp(), "TERRACE_AS=tofu")
	in := func(name string) *commandKiller {
		k.dir = filepath.Join(k.root, name)
		return k
	}
	for name, text := range map[string]string{"a": "resource \"terraform_data\" \"x\" {}\nresource \"terraform_data\" \"y\" {}\n", "b": ""} {
		in(name).write("main.tf", text+fmt.Sprintf("terraform {\n  backend \"http\" {\n    address = \"%[1]s/%[2]s/state\"\n    lock_address = \"%[1]s/%[2]s/lock\"\n    unlock_address = \"%[1]s/%[2]s/lock\"\n    retry_max = 0\n  }\n}\n", url, name))
		in(name).ok("init", "-input=false")
	}
	in("a").ok("apply", "-auto-approve")
	before := services["a"].State()
	args := []string{"state", "mv", "-to=../b", "terraform_data.x", "terraform_data.x"}

	requests.reset(0, false)
	in("a").ok(args...)
	total := len(requests.changes)
	changes := requests.changes
	type moment struct {
		at    int
		after bool
	}
	var moments []moment
	for i, c := range changes {
		moments = append(moments, moment{i + 1, false})
		if c {
			moments = append(moments, moment{i + 1, true})
		}
	}
	if *commandKills >= 0 {
		rand.Shuffle(len(moments), func(i, j int) { moments[i], moments[j] = moments[j], moments[i] })
		moments = moments[:min(len(moments), max(4, *commandKills))]
	}
	moved := 0
	for _, m := range moments {
		services["a"].SetState(before)
		services["b"].SetState("")
		requests.reset(m.at, m.after)
		cmd := in("a").command(args...)
		requests.mu.Lock()
		k.must(cmd.Start())
		requests.process = cmd.Process.Pid
		requests.mu.Unlock()
		_ = cmd.Wait()
		requests.reset(0, false)
		when := fmt.Sprintf("killed at request %d of %d, after it: %t", m.at, total, m.after)
		for name, s := range services {
			if lock := s.Lock(); lock != "" {
				var info struct{ ID string }
				k.must(json.Unmarshal([]byte(lock), &info))
				in(name).ok("force-unlock", "-force", info.ID)
			}
		}
		there := map[string]bool{}
		for name := range services {
			there[name] = strings.Contains(in(name).list(), "terraform_data.x\n")
		}
		if there["a"] == there["b"] {
			t.Errorf("%s: in a %t, in b %t", when, there["a"], there["b"])
		}
		for name := range services { // merges journals permanently
			in(name).ok("plan", "-refresh=false")
			if got := strings.Contains(services[name].State(), `"name":"x"`) || strings.Contains(services[name].State(), `"name": "x"`); got != there[name] {
				t.Errorf("%s: %s shows it: %t, holds it: %t", when, name, there[name], got)
			}
		}
		if !strings.Contains(in("a").list(), "terraform_data.y\n") {
			t.Errorf("%s: what was not moved is lost", when)
		}
		if left, _ := filepath.Glob(filepath.Join(k.root, "*", ".*journal*")); len(left) > 0 {
			t.Errorf("%s: left are %v", when, left)
		}
		if there["b"] {
			moved++
		}
	}
	t.Logf("%d kills, of which %d after the object was moved", len(moments), moved)
}

// list returns the output of state list; "" if there is no state.
func (k *commandKiller) list() string {
	k.t.Helper()
	out, err := k.command("state", "list").CombinedOutput()
	if err != nil && !strings.Contains(string(out), "No state file was found") {
		k.t.Fatalf("state list: %v\n%s", err, out)
	}
	return string(out)
}
