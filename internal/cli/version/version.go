// Package version implements the command version.
package version

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/base/release"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/settings/lock"
	"github.com/terrace-iac/terrace/internal/workdir/flag"
)

// Command declares version.
func Command() command.Command {
	return command.Command{
		Name: "version", Synopsis: "Show the current Terrace version", Usage: "[options]",
		Help: "Displays the version of Terrace and all installed plugins.",
		Prepare: func() (flag.Flags, command.Run) {
			o, ignored := &versionOptions{}, false
			return flag.Flags{
				flag.Bool(&o.json, "json", "Output the version information as a JSON object."),
				flag.Bool(&ignored, "version", "").Or("v").Hide(),
			}, func(ctx context.Context, c *command.Call) int { return runVersion(ctx, c, *o) }
		},
	}
}

// unitLanguage is the version of Terragrunt whose unit files are supported.
const unitLanguage = "1.1.3"

type versionOptions struct{ json bool }

func runVersion(_ context.Context, c *command.Call, o versionOptions) int {
	selections := map[string]string{}
	path := c.Path(lock.Name)
	if _, err := os.Stat(path); err == nil {
		file, ds := lock.Read(c.Files, path)
		if ds.HasErrors() {
			return c.Fail(ds)
		}
		for a, p := range file.Providers {
			selections[a.String()] = p.Version.String()
		}
	}
	platform := runtime.GOOS + "_" + runtime.GOARCH
	if o.json {
		doc, err := json.MarshalIndent(struct {
			Terraform  string            `json:"terraform_version"`
			Terrace    string            `json:"terrace_version"`
			Commit     string            `json:"terrace_commit,omitempty"`
			Platform   string            `json:"platform"`
			Selections map[string]string `json:"provider_selections"`
		}{config.LanguageVersion, release.Version, commit(), platform, selections}, "", "  ")
		if err != nil {
			return 1
		}
		fmt.Fprintf(c.Stdout, "%s\n", doc)
		return 0
	}
	own := fmt.Sprintf("%s v%s (language %s)", view.Product, release.Version, config.LanguageVersion)
	if rev := commit(); rev != "" {
		own = fmt.Sprintf("%s v%s (language %s, commit %s)", view.Product, release.Version, config.LanguageVersion, rev)
	}
	// Wrappers take any version in the output for the version of the tool that they call. If
	// the program is started as another tool, only the JSON contains Terrace's version.
	switch c.CalledAs() {
	case "tofu":
		fmt.Fprintf(c.Stdout, "OpenTofu v%s\non %s\n", config.LanguageVersion, platform)
	case "terraform":
		fmt.Fprintf(c.Stdout, "Terraform v%s\non %s\n", config.LanguageVersion, platform)
	case "terragrunt":
		fmt.Fprintf(c.Stdout, "terragrunt version v%s\n", unitLanguage)
		return 0
	default:
		fmt.Fprintf(c.Stdout, "%s\non %s\n", own, platform)
	}
	var lines []string
	for name, v := range selections {
		lines = append(lines, "+ provider "+name+" v"+v)
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(c.Stdout, line)
	}
	return 0
}

// commit returns the commit from which the program was built, or "" if unknown. It ends with
// "+changes" if files differed from the commit.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return commitOf(info.Settings)
}

func commitOf(settings []debug.BuildSetting) string {
	var rev, changes string
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changes = "+changes"
		}
	}
	if rev == "" {
		return ""
	}
	return rev + changes
}
