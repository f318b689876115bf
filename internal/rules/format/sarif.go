package format

import (
	"bytes"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/source"
)

// sarifLog, and the types below, are the parts of SARIF 2.1.0 (OASIS) that a check uses.
type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool       sarifTool     `json:"tool"`
	ColumnKind string        `json:"columnKind"`
	Results    []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version,omitempty"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID      string       `json:"id"`
	Short   *sarifText   `json:"shortDescription,omitempty"`
	Default sarifDefault `json:"defaultConfiguration"`
}

type sarifDefault struct {
	Level string `json:"level"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID       string             `json:"ruleId"`
	RuleIndex    int                `json:"ruleIndex"`
	Kind         string             `json:"kind"`
	Level        string             `json:"level"`
	Message      sarifText          `json:"message"`
	Locations    []sarifLocation    `json:"locations,omitempty"`
	Related      []sarifLocation    `json:"relatedLocations,omitempty"`
	Prints       map[string]string  `json:"partialFingerprints"`
	Suppressions []sarifSuppression `json:"suppressions,omitempty"`
}

type sarifLocation struct {
	ID       *int           `json:"id,omitempty"`
	Physical *sarifPhysical `json:"physicalLocation,omitempty"`
	Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	Message  *sarifText     `json:"message,omitempty"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   sarifRegion   `json:"region"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn"`
	EndLine     int `json:"endLine"`
	EndColumn   int `json:"endColumn"`
}

type sarifLogical struct {
	Name string `json:"fullyQualifiedName"`
}

type sarifSuppression struct {
	Kind          string `json:"kind"`
	Justification string `json:"justification"`
}

const sarifSchema = "https://json.schemastore.org/sarif-2.1.0.json"

// SARIFOptions configures SARIF.
type SARIFOptions struct {
	Program, Version string
	// Path returns the path of a file in a finding relative to the root of the repository, as services expect
	// it. nil means that paths stay as they are.
	Path func(name string) string
	// Text returns the text of a file in a finding, or nil if it is not available. Columns of SARIF count code
	// points, and those of findings characters that a reader sees, which may consist of several. nil
	// means that no text is available.
	Text func(name string) []byte
}

// SARIF writes a report as SARIF 2.1.0.
func SARIF(w io.Writer, r *Report, o SARIFOptions) error {
	program, version := o.Program, o.Version
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: program, Version: version, Rules: []sarifRule{}}}, ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	index := map[string]int{}
	for _, rule := range r.Rules {
		index[rule.Name] = len(run.Tool.Driver.Rules)
		x := sarifRule{ID: rule.Name, Default: sarifDefault{sarifLevel(rule.Level)}}
		if rule.Finds != "" {
			x.Short = &sarifText{rule.Finds}
		}
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, x)
	}
	for i, f := range r.Findings {
		x := sarifResult{
			RuleID: f.Rule, RuleIndex: index[f.Rule], Kind: "fail", Level: sarifLevel(f.Level), Message: sarifText{f.Message},
			Prints: map[string]string{"terrace/v1": r.Prints[i]},
		}
		switch f.Verdict { // a level is only allowed for failures
		case finding.Pass:
			x.Kind, x.Level = "pass", "none"
		case finding.Unknown:
			x.Kind, x.Level = "open", "none"
		}
		where := sarifLocation{Physical: o.physical(f.At())}
		if name := Subject(f); name != "" {
			where.Logical = []sarifLogical{{name}}
		}
		if where.Physical != nil || where.Logical != nil {
			x.Locations = []sarifLocation{where}
		}
		for _, also := range []struct {
			at   source.Range
			text string
		}{{f.Defined, "declared here"}, {f.RuleAt, "the rule"}} {
			if p := o.physical(also.at); p != nil && also.at != f.At() {
				id := len(x.Related) + 1
				x.Related = append(x.Related, sarifLocation{ID: &id, Physical: p, Message: &sarifText{also.text}})
			}
		}
		if f.Waived != "" {
			x.Suppressions = []sarifSuppression{{"inSource", f.Waived}}
		}
		run.Results = append(run.Results, x)
	}
	return write(w, sarifLog{sarifSchema, "2.1.0", []sarifRun{run}})
}

func sarifLevel(l finding.Level) string {
	switch l {
	case finding.Error:
		return "error"
	case finding.Warning:
		return "warning"
	}
	return "note"
}

func (o *SARIFOptions) physical(at source.Range) *sarifPhysical {
	if at.Filename == "" {
		return nil
	}
	name := at.Filename
	if o.Path != nil {
		name = o.Path(name)
	}
	u := url.URL{Path: filepath.ToSlash(name)}
	if filepath.IsAbs(name) {
		u.Scheme = "file"
		if !strings.HasPrefix(u.Path, "/") {
			u.Path = "/" + u.Path
		}
	}
	var text []byte
	if o.Text != nil {
		text = o.Text(at.Filename)
	}
	start, end := max(at.Start.Line, 1), max(at.End.Line, 1)
	return &sarifPhysical{sarifArtifact{u.String()}, sarifRegion{start, codePoints(text, at.Start), end, codePoints(text, at.End)}}
}

// codePoints returns the column of a position in code points; HCL counts characters. Columns begin at 1.
func codePoints(text []byte, at hcl.Pos) int {
	column := max(at.Column, 1)
	if at.Byte > len(text) {
		return column
	}
	line := bytes.LastIndexByte(text[:at.Byte], '\n') + 1
	return hclnative.CodePoints(text[line:], column)
}

// Subject returns the subject of a finding with its unit, such as "live/vpc: aws_x.y.tags".
func Subject(f *finding.Finding) string {
	name := f.Address
	if f.Path != "" && name != "" {
		name += "."
	}
	name += f.Path
	switch {
	case f.Unit == "":
		return name
	case name == "":
		return f.Unit
	}
	return f.Unit + ": " + name
}
