//go:build unix

package main_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

const killRounds = `
terraform {
  required_providers {
    test = { source = "terrace/test" }
  }
}

provider "test" {
  record_path = "%s"
  delay_ms    = 10
}

variable "key" {
  type    = string
  default = "first"
}

resource "terraform_data" "n" { input = var.key == "first" ? 2 : 3 }
resource "terraform_data" "key" { input = var.key }

# Created in the first round, so that kills have something to interrupt.
resource "test_record" "new" {
  count = var.key == "first" ? 0 : 20
  name  = "n${count.index}"
}

# Replaced in the first round.
resource "test_record" "now" {
  name = "now"
  lifecycle { replace_triggered_by = [terraform_data.key] }
}

# Replaced in a later round: the number of instances is not known in the first one.
resource "test_record" "many" {
  count = terraform_data.n.output
  name  = "many${count.index}"
  lifecycle { replace_triggered_by = [terraform_data.key] }
}
resource "test_record" "asked" {
  count = terraform_data.n.output > 0 ? 1 : 0
  name  = "asked"
}
`

// destroyedName matches the record of a destroy call.
var destroyedName = regexp.MustCompile(`(?m)^begin\tdestroy\t(\S+)$`)

// secondRound matches the record of a call in the second round.
var secondRound = regexp.MustCompile(`(?m)^begin\t(destroy\t(many|asked)|create\tmany2)`)

// TestRoundsKill9 repeatedly kills an apply in rounds, in which replace_triggered_by and -replace
// replace objects in a later round. The next apply, without -replace, must replace everything that
// the killed one did not, and then nothing is left to do.
func TestRoundsKill9(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIP: takes minutes; run without -short")
	}
	t.Parallel()
	terrace, plugin := testkit.Terrace(t), testkit.TestProvider(t, 6)
	for group := range 2 { // concurrently, because they mostly wait
		t.Run(fmt.Sprint(group), func(t *testing.T) {
			t.Parallel()
			k := &killer{t: t, terrace: terrace, dir: t.TempDir()}
			k.setUp(plugin)
			k.must(os.WriteFile(filepath.Join(k.dir, "main.tf"), fmt.Appendf(nil, killRounds, k.record), 0o644))
			rounds := []string{"apply", "-auto-approve", "-input=false", "-no-color", "-parallelism=2", "-rounds=3", "-rounds-allow=create,update,replace"}
			run := func(status int, args ...string) string {
				t.Helper()
				c := k.command(args...)
				out, _ := c.CombinedOutput()
				if c.ProcessState.ExitCode() != status {
					t.Fatalf("%q ended with %d:\n%s", args, c.ProcessState.ExitCode(), out)
				}
				return string(out)
			}
			killed, early, later := 0, 0, 0
			for n := 0; killed < max(1, *kills/4) && n < *kills/4+100; n++ {
				run(0, rounds...)
				k.must(os.WriteFile(k.record, nil, 0o644))
				k.since = "" // every other kill comes in the second round
				window := 1500
				if n%2 == 1 {
					k.since, window = "destroy\tmany", 300
				}
				if k.kill(k.command(append(rounds, "-var=key=second", "-replace=test_record.asked[0]")...), time.Duration(rand.IntN(window))*time.Millisecond) {
					killed++
					if raw, err := os.ReadFile(k.record); err != nil || secondRound.Match(raw) {
						later++ // in the second round
					} else {
						early++
					}
				}
				run(0, append(rounds, "-var=key=second")...)
				raw, err := os.ReadFile(k.record)
				k.must(err)
				gone := map[string]bool{}
				for _, m := range destroyedName.FindAllSubmatch(raw, -1) {
					gone[string(m[1])] = true
				}
				for _, name := range []string{"now", "many0", "many1", "asked"} {
					if !gone[name] {
						t.Errorf("%s was not replaced:\n%s", name, raw)
					}
				}
				run(0, "plan", "-detailed-exitcode", "-input=false", "-no-color", "-var=key=second")
				if shown := run(0, "show", "-no-color"); regexp.MustCompile(`to be replaced`).MatchString(shown) {
					t.Errorf("something is still to be replaced:\n%s", shown)
				}
				k.reset()
			}
			t.Logf("%d kills: %d before the second round replaced anything, %d after that", killed, early, later)
		})
	}
}
