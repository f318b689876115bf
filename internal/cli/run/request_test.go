package run

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/report"
	"github.com/terrace-iac/terrace/internal/cli/unitflags"
	"github.com/terrace-iac/terrace/internal/estate/request"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// TestRequest checks that every flag of units, and every flag of the commands that workers run,
// reaches the other side of a run in the request.
func TestRequest(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"plan", "apply", "destroy", "drift", "validate", "init"} {
		sent := testRun(t, name)
		setAll(t, sent.f.Declare())
		setAll(t, OverOf(name).Flags(&sent.op.Request).Without("target-file", "exclude-file"))
		sent.selected.targets, sent.selected.excludes = nil, nil
		sent.aged, sent.planFile, sent.words = true, "FILE", request.Words{Args: []string{"-x"}, Added: []string{"-y"}, Environ: 1, EnvironVars: 1}
		q, ds := sent.request()
		if ds.HasErrors() {
			t.Fatal(ds.Err())
		}
		text, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		var got request.Request
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		c := testRun(t, name).Call
		View(c, got.View)
		r := requested(c, &unitflags.Flags{Units: got.Units}, got)
		sent.op.Scope.Targets, sent.op.Scope.Excludes = nil, nil
		for what, pair := range map[string][2]any{
			"units": {sent.f, r.f}, "command": {sent.op.Request, r.op.Request}, "view": {sent.Report.Options, r.Report.Options},
			"words": {sent.words, r.words}, "run": {[]any{sent.name, sent.aged, sent.planFile}, []any{r.name, r.aged, r.planFile}},
		} {
			if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
				t.Errorf("%s: the %s differ: %s", name, what, diff)
			}
		}
	}
}

// testRun returns a run without options.
func testRun(t *testing.T, name string) *estateRun {
	t.Helper()
	c := command.New(t.Context(), sys.Test(t.TempDir()).System, nil, nil)
	c.Report.Options = report.Options{NoColor: true, Concise: true, Deprecation: "module:none"}
	return newRun(c, &unitflags.Flags{}, name)
}

// setAll sets each flag to a value that is not its default.
func setAll(t *testing.T, fs flag.Flags) {
	t.Helper()
	for _, f := range fs {
		word := "-"
		if f.Two {
			word = "--"
		}
		word += f.Name
		switch values := slices.Concat(f.Choices, []string{"7", "7s", "x=y", "7777", "create"}); {
		case f.Switch():
			word += "=" + map[bool]string{true: "false", false: "true"}[f.Default == "true"]
			if _, err := fs.Take([]string{word}, true); err != nil {
				t.Fatalf("%s: %v", word, err)
			}
		default:
			if !slices.ContainsFunc(values, func(v string) bool {
				_, err := fs.Take([]string{word + "=" + v}, true)
				return err == nil
			}) {
				t.Fatalf("%s: no value is valid", word)
			}
		}
	}
}
