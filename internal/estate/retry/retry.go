// Package retry decides with the errors block of a unit what happens after a failed command:
// whether the failure is ignored, or the command is retried.
//
// Main type: Decision, returned by Decide. The one rule: patterns are matched against the text of
// the errors only, and the first that matches is used.
package retry

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/terrace-iac/terrace/diag"
	"github.com/terrace-iac/terrace/internal/base/atomicfile"
	"github.com/terrace-iac/terrace/internal/unit/functions"
	"github.com/terrace-iac/terrace/unit"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// A Decision is the reaction to a failure. The zero value means that the command fails.
type Decision struct {
	Again  bool
	Sleep  time.Duration // delay before the retry
	Retry  string        // label of the retry block that matched; "" for Terragrunt's default list
	Ignore *unit.Ignore  // block that turns the failure into a success; nil if none
}

// Rule returns the name of the rule that caused a retry, for messages.
func (d Decision) Rule() string {
	if d.Retry == "" {
		return "default list of temporary errors"
	}
	return "retry block " + d.Retry
}

// Decide evaluates an errors block for the text of a failure. A nil block means the default
// block. try is the number of the attempt, starting at 1. off disables retries.
func Decide(block *unit.Errors, text string, try int, off bool) (Decision, diag.List) {
	if block == nil {
		block = &unit.Errors{Retry: []unit.Retry{{RetryableErrors: functions.DefaultRetryableErrors(), MaxAttempts: unit.DefaultMaxAttempts, SleepSeconds: unit.DefaultSleepSeconds}}}
	}
	for i := range block.Ignore {
		ig := &block.Ignore[i]
		hit, err := ignores(ig.IgnorableErrors, text)
		if err != nil {
			return Decision{}, diag.Errorf(diag.CodeEstatePattern, block.At, "Invalid pattern", "A pattern of the ignore block %q is not a regular expression: %s.", ig.Name, err)
		}
		if hit {
			return Decision{Ignore: ig}, nil
		}
	}
	if off {
		return Decision{}, nil
	}
	for _, rt := range block.Retry {
		for _, p := range rt.RetryableErrors {
			re, err := regexp.Compile(p)
			if err != nil {
				return Decision{}, diag.Errorf(diag.CodeEstatePattern, block.At, "Invalid pattern", "The pattern %q of the retry block %q is not a regular expression: %s.", p, rt.Name, err)
			}
			if re.MatchString(text) {
				return Decision{Again: try < rt.MaxAttempts, Retry: rt.Name, Sleep: time.Duration(rt.SleepSeconds) * time.Second}, nil
			}
		}
	}
	return Decision{}, nil
}

// ignores reports whether an ignore block with these patterns ignores a failure. The first
// pattern that matches decides; a leading ! means no.
func ignores(patterns []string, text string) (bool, error) {
	for _, p := range patterns {
		bare, no := strings.CutPrefix(p, "!")
		re, err := regexp.Compile(bare)
		if err != nil {
			return false, err
		}
		if re.MatchString(text) {
			return !no, nil
		}
	}
	return false, nil
}

// WriteSignals writes the signals of an ignore block to a file in the unit's directory.
func WriteSignals(dir string, ig *unit.Ignore) diag.List {
	m := map[string]json.RawMessage{}
	if ig.Signals != cty.NilVal && !ig.Signals.IsNull() {
		for k, v := range ig.Signals.AsValueMap() {
			v, _ = v.UnmarkDeep()
			if b, err := ctyjson.Marshal(v, v.Type()); err == nil {
				m[k] = b
			}
		}
	}
	if len(m) == 0 {
		return nil
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = atomicfile.WriteMode(filepath.Join(dir, "error-signals.json"), b, 0o644) // replaces a symbolic link
	}
	if err != nil {
		return diag.Errorf(diag.CodeFilesWrite, nil, "Failed to write signals", "The file error-signals.json cannot be written into %s: %s.", dir, err)
	}
	return nil
}

// Pause waits before a retry. It returns false if the run ends meanwhile.
func Pause(ctx context.Context, stop <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-stop:
		return false
	case <-ctx.Done():
		return false
	}
}
