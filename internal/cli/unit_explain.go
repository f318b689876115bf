package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/estate"
	"github.com/terrace-iac/terrace/internal/origin"
	"github.com/terrace-iac/terrace/internal/value"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
)

// unitParts are the names that begin the address of a part of a unit. All others
// name something in the unit's module.
var unitParts = []string{
	"inputs", "local", "locals", "import", "include", "feature", "values", "dependency", "dependencies", "terraform",
	"remote_state", "generate", "exclude", "errors", "engine", "download_dir", "prevent_destroy", "iam_role",
	"iam_assume_role_duration", "iam_assume_role_session_name", "iam_web_identity_token", "terraform_binary",
	"terraform_version_constraint", "terragrunt_version_constraint",
}

// explainsUnit finds the address of a part of a unit in the words of explain.
func explainsUnit(args []string) (address string, asJSON, ok bool) {
	for _, a := range args {
		switch {
		case a == "-json" || a == "--json":
			asJSON = true
		case strings.HasPrefix(a, "-"):
			return "", false, false // -var and -state are about the module
		case address != "":
			return "", false, false
		default:
			address = a
		}
	}
	root, _, _ := strings.Cut(address, ".")
	root, _, _ = strings.Cut(root, "[")
	return address, asJSON, slices.Contains(unitParts, root)
}

// explainUnit tells where a part of the unit in the working folder comes from. It
// says no if something in the unit's module is meant: local values may be either's,
// and those of the unit go first.
func (s *session) explainUnit(ctx context.Context, f *unitFlags, args []string) (code int, ok bool) {
	address, asJSON, ok := explainsUnit(args)
	if !ok {
		return 0, false
	}
	o, ds := s.estateOptions(f, "plan", nil, nil)
	if ds.HasErrors() {
		return s.fail(ds), true
	}
	about := ds
	e, u, ds := estate.OpenUnit(ctx, o.Tolerate(), s.unitPath(f), f.module)
	if ds.HasErrors() {
		return s.failWith(e, ds), true
	}
	x, ds := e.Explain(ctx, u, address)
	switch {
	case len(x.Steps) == 0 && strings.HasPrefix(address, "local."):
		return 0, false
	case ds.HasErrors():
		return s.failWith(e, ds), true
	}
	s.aside(about)
	return s.printExplanation(s.explanation(e.Sources(), address, x), asJSON), true
}

func (s *session) printExplanation(x *origin.Explanation, asJSON bool) int {
	if !asJSON {
		_ = x.Print(s.Stdout)
		return 0
	}
	doc, err := json.MarshalIndent(x, "", "  ")
	if err != nil {
		return s.fail(diag.Errorf(nil, "Failed to write JSON", "The explanation cannot be written: %s.", err))
	}
	fmt.Fprintf(s.Stdout, "%s\n", doc)
	return 0
}

// kindOf is the kind of a step, by what it says.
func kindOf(text string) origin.Kind {
	switch {
	case strings.HasPrefix(text, "argument of"):
		return origin.Choice
	case strings.HasPrefix(text, "the condition"):
		return origin.Condition
	case strings.HasPrefix(text, "computed"):
		return origin.Computed
	case strings.HasPrefix(text, "hangs on"):
		return origin.Undecided
	}
	return origin.Argument
}

// explanation is the answer in the form that explain gives everywhere. Lines of
// source that may hold what is secret are left out.
func (s *session) explanation(set *source.Set, address string, x unit.Explanation) *origin.Explanation {
	out := &origin.Explanation{Address: address, Value: cty.NilVal}
	if x.Value != cty.NilVal {
		out.Sensitive = value.ContainsSecret(x.Value)
		if x.Value.IsWhollyKnown() {
			out.Value = value.Redact(x.Value)
		}
	}
	for i, st := range x.Steps {
		at := s.placeOf(set, st, out.Sensitive)
		if n := len(out.Steps); st.Replaced && n > 0 {
			// Of the way of a value that lost, its first place is told.
			if !x.Steps[i-1].Replaced || strings.HasPrefix(st.Text, "replaced: replaced: ") && !strings.HasPrefix(x.Steps[i-1].Text, "replaced: replaced: ") {
				out.Steps[n-1].Replaces = append(out.Steps[n-1].Replaces, *at)
			}
			continue
		}
		out.Steps = append(out.Steps, &origin.Step{Kind: kindOf(st.Text), Text: st.Text, At: at})
	}
	return out
}

func (s *session) placeOf(set *source.Set, st unit.Step, secret bool) *origin.Place {
	at := &origin.Place{File: s.fromHere(st.At.Filename), Line: st.At.Start.Line, Column: st.At.Start.Column, Layer: st.Layer.String()}
	if f := set.File(st.At.Filename); f != nil && !secret {
		at.Source = lineOf(f.Bytes, st.At.Start.Byte)
	}
	return at
}

// lineOf is the line that holds a byte, without blanks around it.
func lineOf(text []byte, at int) string {
	if at > len(text) {
		return ""
	}
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	line, _, _ := bytes.Cut(text[from:], []byte("\n"))
	return strings.TrimSpace(string(line))
}

// fromHere is a path as seen from the working folder.
func (s *session) fromHere(path string) string {
	if rel, err := filepath.Rel(s.Dir, path); err == nil {
		return filepath.ToSlash(rel)
	}
	return path
}
