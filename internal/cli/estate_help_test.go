package cli

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var helpFlag = regexp.MustCompile(`(?m)^  --([a-z-]+)`)

func helped(usage string) []string {
	var out []string
	for _, m := range helpFlag.FindAllStringSubmatch(usage, -1) {
		out = append(out, m[1])
	}
	return out
}

// The help of run lists each flag that does something, once, and no other.
func TestRunUsageIsComplete(t *testing.T) {
	var want []string
	for _, s := range (&unitFlags{}).specs() {
		if s.name != "a" { // it stands behind --all
			want = append(want, s.name)
		}
	}
	got := helped(runUsage())
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("--%s is not in the help", name)
		}
	}
	for i, name := range got {
		if !slices.Contains(want, name) || slices.Contains(got[:i], name) {
			t.Errorf("--%s is in the help, and there is no such flag, or twice", name)
		}
	}
}

// Commands that look at units list no flag that they have no use for.
func TestChoiceOptionsAreOfUse(t *testing.T) {
	for _, name := range helped(strings.Join(choiceOptions(), "\n")) {
		if !slices.Contains(strings.Fields(everywhere+" "+choosing), name) {
			t.Errorf("--%s is in the help of commands that have no use for it", name)
		}
	}
}
