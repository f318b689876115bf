package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/terrace-iac/terrace/config"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/internal/lock"
)

type versionOptions struct{ json bool }

func versionCommand(ctx context.Context, s *session, args []string) int {
	var o versionOptions
	f := newFlags("version")
	f.BoolVar(&o.json, "json", false, "")
	f.Bool("version", false, "")
	f.Bool("v", false, "")
	if !s.parse(f, args) {
		return 1
	}
	return runVersion(ctx, s, o)
}

func runVersion(_ context.Context, s *session, o versionOptions) int {
	selections := map[string]string{}
	path := s.Path(lock.Name)
	if _, err := os.Stat(path); err == nil {
		file, ds := lock.Read(path)
		if ds.HasErrors() {
			return s.fail(ds)
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
		}{config.LanguageVersion, Version, platform, selections}, "", "  ")
		if err != nil {
			return 1
		}
		fmt.Fprintf(s.Stdout, "%s\n", doc)
		return 0
	}
	fmt.Fprintf(s.Stdout, "%s v%s (language %s)\non %s\n", view.Product, Version, config.LanguageVersion, platform)
	var lines []string
	for name, v := range selections {
		lines = append(lines, "+ provider "+name+" v"+v)
	}
	slices.Sort(lines)
	for _, line := range lines {
		fmt.Fprintln(s.Stdout, line)
	}
	return 0
}

func versionUsage() string {
	return usageText("Usage: "+view.Program+" [global options] version [options]\n\n  Displays the version of "+view.Product+" and all installed plugins.",
		option("-json", "Output the version information as a JSON object."))()
}
