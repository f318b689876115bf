package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"
)

// entry is one unit in a run report, in Terragrunt's schema v4.
type entry struct {
	Name    string
	Started time.Time
	Ended   time.Time
	Result  string
	Reason  string   `json:",omitempty"`
	Cause   string   `json:",omitempty"`
	Ref     string   `json:",omitempty"`
	Cmd     string   `json:",omitempty"`
	Args    []string `json:",omitempty"`
}

// Options configures a report.
type Options struct {
	Format  string // "csv" or "json"
	Command string
	Args    []string
	Root    string               // directory that names are relative to; "" means the root of the run
	Errors  func(*Result) string // returns the messages of a failed unit, as its cause; nil means that Result.Cause is used
}

// Make returns the report of a run.
func Make(results []*Result, o Options) ([]byte, error) {
	var entries []entry
	for _, r := range results {
		name := cmp.Or(r.Unit.Commit.Name, r.Unit.Name)
		if rel, err := filepath.Rel(o.Root, r.Unit.ID); err == nil && o.Root != "" {
			name = filepath.ToSlash(rel)
		}
		if name == "." { // Terragrunt's name of the unit in the working directory
			name = filepath.Base(r.Unit.Dir)
		}
		cause := r.Cause
		if r.Status == Failed && o.Errors != nil {
			cause = cmp.Or(o.Errors(r), cause)
		}
		entries = append(entries, entry{Name: name, Started: r.Started, Ended: r.Ended, Result: string(r.Status), Reason: r.Reason, Cause: cause, Ref: r.Unit.Commit.Ref, Cmd: o.Command, Args: o.Args})
	}
	switch o.Format {
	case "json":
		if entries == nil {
			entries = []entry{}
		}
		b, err := json.MarshalIndent(entries, "", "  ")
		return append(b, '\n'), err
	case "csv":
		return reportCSV(entries)
	}
	return nil, fmt.Errorf("there is no report format %q: csv and json are known", o.Format)
}

func reportCSV(entries []entry) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	rows := [][]string{{"Name", "Started", "Ended", "Result", "Reason", "Cause", "Ref", "Cmd", "Args"}}
	for _, e := range entries {
		rows = append(rows, []string{e.Name, e.Started.Format(time.RFC3339), e.Ended.Format(time.RFC3339), e.Result, e.Reason, e.Cause, e.Ref, e.Cmd, strings.Join(e.Args, "|")})
	}
	err := w.WriteAll(rows)
	return b.Bytes(), err
}

// Schema returns the JSON schema of reports in JSON.
func Schema() []byte {
	text := func(format string) map[string]any {
		m := map[string]any{"type": "string"}
		if format != "" {
			m["format"] = format
		}
		return m
	}
	doc := map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "description": "The units of a run, as Terragrunt's schema v4 has them", "type": "array", "title": "Run report",
		"items": map[string]any{
			"type": "object", "additionalProperties": false, "required": []string{"Name", "Started", "Ended", "Result"},
			"properties": map[string]any{
				"Name": text(""), "Started": text("date-time"), "Ended": text("date-time"),
				"Result": map[string]any{"type": "string", "enum": []Status{Succeeded, Failed, EarlyExit, Excluded}},
				"Reason": map[string]any{"type": "string", "enum": []string{"retry succeeded", "error ignored", "run error", "exclude block", "ancestor error"}},
				"Cause":  text(""), "Ref": text(""), "Cmd": text(""), "Args": map[string]any{"type": "array", "items": text("")},
			},
		},
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return []byte("{}\n") // unreachable: JSON can represent the document
	}
	return append(b, '\n')
}
