package unitflags

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/unitlog"
)

// TestFlagsDocumented checks that docs/terragrunt-flags.md names every flag.
func TestFlagsDocumented(t *testing.T) {
	b, err := os.ReadFile("../../../docs/terragrunt-flags.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	var names []string
	for _, f := range (&Flags{}).Declare() {
		names = append(names, f.Name)
	}
	for _, n := range names {
		if !strings.Contains(page, "`--"+n+"`") {
			t.Errorf("docs/terragrunt-flags.md does not name --%s", n)
		}
	}
}

// TestEveryFlag sets each flag of Terragrunt 1.1.3, and its variable. None may be unknown, and
// flags without effect must cause a warning.
func TestEveryFlag(t *testing.T) {
	const switches = "all graph source-update tf-forward-stdout inputs-debug no-auto-init no-auto-retry no-auto-approve fail-fast queue-ignore-errors " +
		"queue-ignore-dag-order queue-include-external filter-affected filter-allow-destroy no-filters-file summary-disable summary-per-unit " +
		"destroy-dependencies-check no-dependency-outputs no-hooks no-stack-generate no-discovery-auth-provider-cmd provider-cache no-auto-provider-cache-dir " +
		"strict-mode backend-bootstrap backend-require-bootstrap disable-bucket-update non-interactive log-disable log-show-abs-paths"
	const values = "profile-cpu=x profile-mem=x profile-goroutine=x profile-dir=x graph-root=x config=x download-dir=x source=x source-map=a=b parallelism=2 queue-include-dir=x queue-exclude-dir=x queue-excludes-file=x " +
		"queue-include-units-reading=x units-that-include=x filter=x filters-file=x feature=a=b out-dir=x json-out-dir=x report-file=x report-format=csv " +
		"report-schema-file=x auth-provider-cmd=x iam-assume-role=x iam-assume-role-duration=900 iam-assume-role-session-name=x " +
		"iam-assume-role-web-identity-token=x provider-cache-dir=x experiment=cas strict-control=bare-include working-dir=x log-level=debug log-format=json " +
		"log-custom-format=%msg"
	const satisfied = "queue-exclude-external queue-strict-include disable-command-validation no-destroy-dependencies-check dependency-fetch-output-from-state " +
		"use-partial-parse-config-cache no-engine experiment-mode no-tips no-tip=x"
	const idle = "tf-path=x no-dependency-fetch-output-from-state provider-cache-hostname=x " +
		"provider-cache-port=1 provider-cache-token=x provider-cache-registry-names=x cas-clone-depth=1 no-cas version-manager-file-name=x engine-cache-path=x " +
		"engine-skip-check engine-log-level=x experimental-engine"
	const no = "discovery-boundary=x" // fails without its experiment
	for _, group := range []struct {
		flags        string
		warns, fails bool
	}{{switches, false, false}, {values, false, false}, {satisfied, false, false}, {idle, true, false}, {no, false, true}} {
		for _, fl := range strings.Fields(group.flags) {
			name, value, _ := strings.Cut(fl, "=")
			if value == "" {
				value = "true"
			}
			env := sys.Env{"TG_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "=" + value}
			for _, from := range []struct {
				args []string
				env  sys.Env
			}{{[]string{"--" + fl, "plan"}, nil}, {[]string{"plan"}, env}} {
				f, rest, err := Take(from.args, from.env)
				switch {
				case group.fails != (err != nil):
					t.Errorf("%q %q: %v", from.args, from.env, err)
				case err != nil:
				case len(rest) != 1:
					t.Errorf("%q %q: rest %q", from.args, from.env, rest)
				case group.warns != (len(f.WithoutEffect()) > 0):
					t.Errorf("%q %q: %v", from.args, from.env, f.WithoutEffect())
				}
			}
		}
	}
}

// TestTakeUnitFlags checks how flags and variables are parsed.
func TestTakeUnitFlags(t *testing.T) {
	tests := []struct {
		args string
		env  sys.Env
		want func(f *Flags) bool
		rest string
		err  string
	}{
		{args: "--all plan -out=x", want: func(f *Flags) bool { return f.All }, rest: "plan -out=x"},
		{args: "-a --filter a --filter=b", env: sys.Env{"TG_FILTER=c"}, want: func(f *Flags) bool { return len(f.Filters) == 2 && f.Many() }},
		{env: sys.Env{"TG_FILTER=c,d"}, want: func(f *Flags) bool { return len(f.Filters) == 2 }},
		{env: sys.Env{"TERRAGRUNT_EXCLUDE_DIR=a,b", "TERRAGRUNT_IGNORE_DEPENDENCY_ERRORS=1"}, want: func(f *Flags) bool { return slices.Equal(f.ExcludeDirs, []string{"a", "b"}) && f.IgnoreErrors }},
		{env: sys.Env{"TERRAGRUNT_DOWNLOAD=d", "TERRAGRUNT_IAM_ROLE=r"}, want: func(f *Flags) bool { return f.DownloadDir == "d" && f.Role == "r" }},
		{env: sys.Env{"TERRAGRUNT_AUTO_INIT=false", "TERRAGRUNT_AUTO_RETRY=true"}, want: func(f *Flags) bool { return f.NoAutoInit && !f.NoRetry }},
		{env: sys.Env{"TERRAGRUNT_AUTO_INIT=maybe"}, err: "TERRAGRUNT_AUTO_INIT"},
		{env: sys.Env{"TERRAGRUNT_PARALLELISM=3"}, want: func(f *Flags) bool { return f.Parallelism == 3 }},
		{args: "--parallelism 2", env: sys.Env{"TG_PARALLELISM=3"}, want: func(f *Flags) bool { return f.Parallelism == 2 }},
		{args: "--fail-fast=false", env: sys.Env{"TG_FAIL_FAST=true"}, want: func(f *Flags) bool { return !f.FailFast }},
		{args: "--tf-path /bin/tofu plan", want: func(*Flags) bool { return true }, rest: "plan"},
		{args: "plan -- --all", want: func(f *Flags) bool { return !f.All }, rest: "plan --all"},
		{args: "--parallelism 0", err: "whole number from 1 on"},
		{args: "--parallelism", err: "needs an argument"},
		{args: "--all=maybe", err: "true or false"},
		{args: "--log-level loud", err: "one of stderr"},
		{args: "--source-map x", err: "FROM=TO"},
		{args: "--experiment x", err: "no such experiment"},
		{args: "--strict-control x", err: "no such control"},
		{args: "--strict-mode --queue-strict-include", err: "is deprecated"},
		{args: "--queue-strict-include", want: func(*Flags) bool { return true }},
		{env: sys.Env{"TERRAGRUNT_ALL=1", "TG_STRICT_CONTROL=terragrunt-prefix-env-vars"}, err: "is deprecated"},
		{env: sys.Env{"TG_FAIL_FAST=x"}, err: "TG_FAIL_FAST"},
		{args: "--discovery-boundary x", err: "requires the experiment bounded-discovery"},
		{args: "--discovery-boundary x --experiment bounded-discovery", want: func(f *Flags) bool { return f.Boundary == "x" }},
		{args: "--experiment-mode", env: sys.Env{"TG_DISCOVERY_BOUNDARY=x"}, want: func(f *Flags) bool { return f.Boundary == "x" }},
		{env: sys.Env{"TG_DISCOVERY_BOUNDARY=x"}, err: "requires the experiment bounded-discovery"},
		{args: "--log-custom-format %xyz", err: "no placeholder"},
	}
	for _, tt := range tests {
		f, rest, err := Take(strings.Fields(tt.args), tt.env)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%q %v: the error is %v", tt.args, tt.env, err)
			}
		case err != nil:
			t.Errorf("%q %v: %v", tt.args, tt.env, err)
		case !tt.want(f) || strings.Join(rest, " ") != tt.rest:
			t.Errorf("%q %v: %+v, rest %q", tt.args, tt.env, f, rest)
		}
	}
}

// TestUnitLog checks each format of log lines.
func TestUnitLog(t *testing.T) {
	now := func() time.Time { return time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC) }
	tests := []struct{ flags, level, want string }{
		{"", "info", "[a/b] x\n[a/b] y\n"},
		{"--log-level error", "info", ""},
		{"--log-level error", "stdout", "[a/b] x\n[a/b] y\n"},
		{"--log-disable", "info", ""},
		{"--log-disable", "stdout", "x\ny\n"},
		{"--tf-forward-stdout", "stdout", "x\ny\n"},
		{"--log-show-abs-paths", "info", "[/root/a/b] x\n[/root/a/b] y\n"},
		{"--log-format bare", "info", "INFO[0000] x prefix=a/b\nINFO[0000] y prefix=a/b\n"},
		{"--log-format pretty", "warn", "07:08:09.000 WARN   [a/b] x\n07:08:09.000 WARN   [a/b] y\n"},
		{"--log-format key-value", "info", "time=2024-05-06T07:08:09Z level=info prefix=a/b tf-path=terrace msg=x\ntime=2024-05-06T07:08:09Z level=info prefix=a/b tf-path=terrace msg=y\n"},
		{"--log-format json", "info", `{"time":"2024-05-06T07:08:09Z","level":"info","working-dir":"a/b","tf-path":"terrace","tf-command-args":["plan"],"msg":"x\ny"}` + "\n"},
		{"--log-custom-format %time(format=Y-m-d)|%level(case=upper,width=6)|%prefix(prefix=<,suffix=>)|%msg%%%t.", "info", "2024-05-06|INFO  |<a/b>|x%\t.\n2024-05-06|INFO  |<a/b>|y%\t.\n"},
		{"--log-custom-format %level(format=tiny,align=right,width=3)%interval%tf-command%msg(case=capitalize)", "info", "  i0000planX\n  i0000planY\n"},
	}
	for _, tt := range tests {
		f, _, err := Take(strings.Fields(tt.flags), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.flags, err)
			continue
		}
		l, err := unitlog.New(f.Log(), "/root", now)
		if err != nil {
			t.Fatal(err)
		}
		l.Command = []string{"plan"}
		if got := l.Lines(tt.level, "a/b", "x\ny\n"); got != tt.want {
			t.Errorf("%s: %q", tt.flags, got)
		}
	}
}
