package randconfig_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/dev/randconfig"
	"github.com/terrace-iac/terrace/internal/dev/testkit"
)

// TestBesideTerragrunt runs random estates with Terrace and with Terragrunt, each in its
// own directory. After each step it compares the status, the states with their outputs, and
// the output of hooks. After each apply, Terrace also plans Terragrunt's estate, which must
// not have more changes than its own. Intended differences are counted by their reason (see
// estatePurposes). TERRACE_TEST_SEEDS is FIRST:COUNT.
func TestBesideTerragrunt(t *testing.T) {
	terragrunt, tofu := os.Getenv("TERRACE_TEST_TERRAGRUNT"), os.Getenv("TERRACE_TEST_TOFU")
	if terragrunt == "" || tofu == "" {
		t.Skip("TERRACE_TEST_TERRAGRUNT and TERRACE_TEST_TOFU name no binaries to compare with")
	}
	terrace := os.Getenv("TERRACE_TEST_TERRACE")
	if terrace == "" {
		terrace = testkit.Terrace(t)
	}
	first, count, _ := seeds(t)
	sum := &summary{reasons: map[string]int{}, classes: map[string]int{}}
	t.Run("seeds", func(t *testing.T) {
		for seed := first; seed < first+count; seed++ {
			t.Run(strconv.FormatInt(seed, 10), func(t *testing.T) {
				t.Parallel()
				p := &estatePair{t: t, e: randconfig.MakeEstate(seed), found: map[string]bool{}, classes: map[string]bool{}}
				p.ours = &estateCopy{t: t, dir: folder(t, p.e.Files), bin: terrace, env: []string{"TERRACE_AS=terragrunt"}}
				p.theirs = &estateCopy{t: t, dir: folder(t, p.e.Files), bin: terragrunt, env: []string{"TG_TF_PATH=" + tofu}}
				p.compare()
				t.Log(sum.add(p.found, p.classes))
			})
		}
	})
	t.Log(sum)
}

// An estateCopy is an estate in the directory of one of the programs.
type estateCopy struct {
	t        *testing.T
	dir, bin string
	env      []string
}

// estateOutcome is the compared result of a step.
type estateOutcome struct {
	Status int
	States map[string]string // by unit
	Hooks  map[string]string // by unit: the output of its hooks
	text   string
}

// run runs a command below dir, which is relative to the estate.
func (c *estateCopy) run(units []string, dir string, args ...string) estateOutcome {
	cmd := exec.CommandContext(c.t.Context(), c.bin, args...)
	cmd.Dir = filepath.Join(c.dir, dir)
	cmd.Env = append([]string{"HOME=" + c.dir, "PATH=" + os.Getenv("PATH"), "TF_IN_AUTOMATION=1", "TF_INPUT=0", "TG_NO_COLOR=true", "NO_COLOR=1", "TG_TELEMETRY_TRACE_EXPORTER=none"}, c.env...)
	out, err := cmd.CombinedOutput()
	o := estateOutcome{States: map[string]string{}, Hooks: map[string]string{}, text: string(out)}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		o.Status = exit.ExitCode()
	} else if err != nil {
		c.t.Fatal(err)
	}
	for _, u := range units {
		o.States[u] = withoutSensitivity(state(c.t, filepath.Join(c.dir, u, "terraform.tfstate")))
		log := filepath.Join(c.dir, u, "hooks.log")
		raw, err := os.ReadFile(log)
		if err == nil {
			err = os.Remove(log)
		}
		if err != nil && !os.IsNotExist(err) {
			c.t.Fatal(err)
		}
		o.Hooks[u] = string(raw)
	}
	return o
}

var emptyState = regexp.MustCompile(`^(null|\{\})\n$`)

// withoutSensitivity removes from a state which outputs are sensitive. In Terrace, outputs
// that depend on sensitive outputs of other units are sensitive too. An empty state counts
// as none.
func withoutSensitivity(text string) string {
	if emptyState.MatchString(text) {
		return ""
	}
	return strings.ReplaceAll(text, `"sensitive":true,`, "")
}

type estatePair struct {
	t              *testing.T
	e              randconfig.Estate
	ours, theirs   *estateCopy
	was            map[string]string // Terrace's states before the step
	found, classes map[string]bool
}

// all runs a command on all units with both programs, and compares.
func (p *estatePair) all(command ...string) (same bool) {
	args := append([]string{"run", "--all", "--non-interactive", "--"}, command...)
	return p.settle("run --all "+strings.Join(command, " "), p.ours.run(p.e.Units, ".", args...), p.theirs.run(p.e.Units, ".", args...))
}

// settle compares two outcomes of a step.
func (p *estatePair) settle(step string, ours, theirs estateOutcome) (same bool) {
	defer func(states map[string]string) { p.was = states }(ours.States)
	if p.diff(ours, theirs) == "" {
		return true
	}
	for _, purpose := range estatePurposes {
		if purpose.known(p, step, &ours, &theirs) {
			p.found[purpose.reason] = true
		}
	}
	diff := p.diff(ours, theirs)
	if diff == "" {
		return false
	}
	p.classes[step] = true
	text := ""
	if ours.Status != theirs.Status {
		text = "\nTerrace:\n" + wrong(ours.text) + "\nTerragrunt:\n" + wrong(theirs.text)
	}
	p.t.Errorf("seed %s, %s: -Terragrunt +Terrace:\n%s%s", filepath.Base(p.t.Name()), step, diff, text)
	return false
}

// changed reports whether a step changed the state of a unit.
func (p *estatePair) changed(o *estateOutcome) bool {
	return slices.ContainsFunc(p.e.Units, func(u string) bool { return o.States[u] != p.was[u] })
}

// diff returns the differences between two outcomes, line by line.
func (p *estatePair) diff(ours, theirs estateOutcome) string {
	lines := func(o estateOutcome) []string {
		out := []string{fmt.Sprint("status ", o.Status)}
		for _, of := range []map[string]string{o.States, o.Hooks} {
			for _, u := range slices.Sorted(maps.Keys(of)) {
				for line := range strings.Lines(of[u]) {
					out = append(out, u+": "+strings.TrimSpace(line))
				}
			}
		}
		return out
	}
	a, b := lines(theirs), lines(ours)
	var out strings.Builder
	for _, line := range a {
		if !slices.Contains(b, line) {
			fmt.Fprintln(&out, "- "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			fmt.Fprintln(&out, "+ "+line)
		}
	}
	if out.Len() == 0 && !slices.Equal(a, b) {
		return cmp.Diff(a, b)
	}
	return start(out.String())
}

// start returns the beginning of a text.
func start(text string) string {
	const most = 3000
	return text[:min(len(text), most)]
}

// wrong returns the errors that a program printed.
func wrong(text string) string {
	var out []string
	left := 0
	for line := range strings.Lines(text) {
		if strings.Contains(line, "Error: ") || strings.Contains(line, "ERROR") {
			left = 8
		}
		if left--; left >= 0 && len(out) < 60 {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// compare runs the steps: plan, apply and output of the first version, plan, apply and plan
// of the second, and finally destroy.
func (p *estatePair) compare() {
	last := p.e.Units[len(p.e.Units)-1]
	p.all("plan")
	if !p.all("apply", "-auto-approve") {
		p.adopt()
	}
	p.outputs(last)
	p.unchanged()
	write(p.t, p.ours.dir, p.e.Change)
	write(p.t, p.theirs.dir, p.e.Change)
	p.all("plan", "-detailed-exitcode")
	if !p.all("apply", "-auto-approve") {
		p.adopt()
	}
	p.all("plan", "-detailed-exitcode")
	args := []string{"plan", "-detailed-exitcode"}
	p.settle("plan -detailed-exitcode in a unit", p.ours.run(p.e.Units, last, args...), p.theirs.run(p.e.Units, last, args...))
	p.unchanged()
	p.all("destroy", "-auto-approve")
}

// outputs compares the result of the command output in a unit.
func (p *estatePair) outputs(unit string) {
	ours, theirs := p.ours.run(p.e.Units, unit, "output", "-json"), p.theirs.run(p.e.Units, unit, "output", "-json")
	for _, o := range []*estateOutcome{&ours, &theirs} {
		_, after, _ := strings.Cut("\n"+o.text, "\n{")
		after = strings.ReplaceAll(after, `"sensitive": true`, `"sensitive": false`) // see withoutSensitivity
		o.States["output"] = chance[2].what.ReplaceAllString("{"+after, chance[2].with)
	}
	p.settle("output -json in "+unit, ours, theirs)
}

// unchanged plans Terragrunt's estate with Terrace. The result must equal a plan of
// Terrace's own estate.
func (p *estatePair) unchanged() {
	args := []string{"run", "--all", "--non-interactive", "--", "plan", "-detailed-exitcode"}
	theirs := *p.ours
	theirs.dir = p.theirs.dir
	p.settle("plan of what the other applied", theirs.run(p.e.Units, ".", args...), p.ours.run(p.e.Units, ".", args...))
}

// adopt continues with Terragrunt's states.
func (p *estatePair) adopt() {
	for _, u := range p.e.Units {
		from, to := filepath.Join(p.theirs.dir, u, "terraform.tfstate"), filepath.Join(p.ours.dir, u, "terraform.tfstate")
		raw, err := os.ReadFile(from)
		if os.IsNotExist(err) {
			err = os.Remove(to)
			if os.IsNotExist(err) {
				err = nil
			}
		} else if err == nil {
			err = os.WriteFile(to, raw, 0o600)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

// An estatePurpose is an intended difference. Its function removes the difference from both
// outcomes, and reports whether there was one.
type estatePurpose struct {
	reason string
	known  func(p *estatePair, step string, ours, theirs *estateOutcome) bool
}

var estatePurposes = []estatePurpose{
	{"a plan reads planned outputs where a unit was never applied, or not since it has them", func(_ *estatePair, step string, ours, theirs *estateOutcome) bool {
		if !strings.HasPrefix(step, "run --all plan") || theirs.Status != 1 || ours.Status == 1 || !missingOutput.MatchString(theirs.text) {
			return false
		}
		ours.Status, ours.Hooks = theirs.Status, theirs.Hooks
		return true
	}},
	{"output and plan in a unit need no outputs of units that were never applied", func(_ *estatePair, step string, ours, theirs *estateOutcome) bool {
		if !strings.Contains(step, " in ") || ours.Status == 1 || theirs.Status != 1 || !missingOutput.MatchString(theirs.text) {
			return false
		}
		*ours = *theirs
		return true
	}},
	{"a string in an input is no template", func(p *estatePair, _ string, ours, theirs *estateOutcome) bool {
		if ours.Status == 1 || theirs.Status != 1 || !strings.Contains(theirs.text, "Invalid template control keyword") {
			return false
		}
		*ours = *theirs
		return true
	}},
	{"sensitive outputs of another unit stay sensitive", func(p *estatePair, _ string, ours, theirs *estateOutcome) bool {
		if !p.e.Secret || ours.Status != 2 || theirs.Status != 0 || !sensitivityAlone(ours.text) {
			return false
		}
		ours.Status = theirs.Status
		return true
	}},
	{"outputs of a dependency are read where they are used", func(p *estatePair, step string, ours, theirs *estateOutcome) bool {
		if !strings.HasPrefix(step, "run --all apply") || ours.Status != 0 || theirs.Status != 1 || !strings.Contains(theirs.text, "detected no outputs") {
			return false
		}
		for u, was := range p.was {
			if theirs.States[u] != was && theirs.States[u] != ours.States[u] {
				return false
			}
		}
		*ours = *theirs
		return true
	}},
	{"what was never applied, or is destroyed, needs no inputs to be destroyed", func(p *estatePair, step string, ours, theirs *estateOutcome) bool {
		if !strings.HasPrefix(step, "run --all destroy") || ours.Status != 0 || theirs.Status != 1 || !missingOutput.MatchString(theirs.text) {
			return false
		}
		*theirs = *ours
		return true
	}},
	{"mock outputs of a disabled dependency are for the commands that may use mock outputs", func(p *estatePair, _ string, ours, theirs *estateOutcome) bool {
		if ours.Status != 1 || theirs.Status == 1 || !strings.Contains(strings.Join(strings.Fields(ours.text), " "), "is disabled, and its mock_outputs_allowed_terraform_commands does not name the command") || p.changed(ours) {
			return false
		}
		*ours = *theirs
		return true
	}},
	{"a mistake that shows before anything runs keeps all units from running", func(p *estatePair, step string, ours, theirs *estateOutcome) bool {
		if !strings.HasPrefix(step, "run --all") || ours.Status != 1 || theirs.Status == 0 || strings.Contains(ours.text, "Run Summary") || p.changed(ours) {
			return false
		}
		*ours = *theirs
		return true
	}},
}

var (
	changed   = regexp.MustCompile(`^ +(?:[-+~]|-/\+|\+/-|-/\+) `)
	container = regexp.MustCompile(`^ +~ .*[{[(]$`)
)

// sensitivityAlone reports whether a plan only changes which values are sensitive.
func sensitivityAlone(text string) bool {
	_, text, ok := strings.Cut(text, "Resource actions are indicated")
	above, marks := "", 0
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case !changed.MatchString(line) || strings.HasSuffix(line, "(current -> planned)") || container.MatchString(line):
		case strings.HasSuffix(above, "The value is unchanged."):
			marks++
		default:
			return false
		}
		above = line
	}
	return ok && marks > 0
}

// missingOutput matches Terragrunt's messages about a unit whose dependency lacks the
// outputs that it reads.
var missingOutput = regexp.MustCompile(`detected no outputs|This object does not have an attribute named`)

func TestMakeEstateIsTheSameForASeed(t *testing.T) {
	for seed := range int64(50) {
		e := randconfig.MakeEstate(seed)
		if diff := cmp.Diff(e, randconfig.MakeEstate(seed)); diff != "" {
			t.Fatal(diff)
		}
		if len(e.Units) < 2 || len(slices.Collect(maps.Keys(e.Files))) < 2*len(e.Units) {
			t.Fatalf("seed %d: %d units", seed, len(e.Units))
		}
	}
}
