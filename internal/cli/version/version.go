// Package version is version.
package version

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/terrace-iac/terrace/internal/cli/project"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/cli/command"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lock"
)

// Command declares version.
func Command() command.Command {
	return command.Command{
		Name: "version", Synopsis: "Show the current Terrace version", Usage: "[options]",
		Help: "Displays the version of Terrace and all installed plugins.",
		Prepare: func() (command.Flags, command.Run) {
			o, ignored := &versionOptions{}, false
			return command.Flags{
				command.Bool(&o.json, "json", "Output the version information as a JSON object."),
				command.Bool(&ignored, "version", "").Or("v").Hide(),
			}, func(ctx context.Context, c *command.Call) int { return runVersion(ctx, c, *o) }
		},
	}
}

type versionOptions struct{ json bool }

func runVersion(_ context.Context, c *command.Call, o versionOptions) int {
	selections := map[string]string{}
	path := c.Path(lock.Name)
	if _, err := os.Stat(path); err == nil {
		file, ds := lock.Read(path)
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
			Platform   string            `json:"platform"`
			Selections map[string]string `json:"provider_selections"`
		}{config.LanguageVersion, project.Version, platform, selections}, "", "  ")
		if err != nil {
			return 1
		}
		fmt.Fprintf(c.Stdout, "%s\n", doc)
		return 0
	}
	fmt.Fprintf(c.Stdout, "%s v%s (language %s)\non %s\n", view.Product, project.Version, config.LanguageVersion, platform)
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
