package funcs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/lang/hclnative"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// TestPeer evaluates every expression in testdata/answers.txt with OpenTofu's console and
// compares the output with that of the functions here. Texts of errors are only listed.
func TestPeer(t *testing.T) {
	tofu := os.Getenv("TERRACE_TEST_TOFU")
	if tofu == "" {
		t.Skip("SKIP: TERRACE_TEST_TOFU does not name an OpenTofu 1.12 binary")
	}
	dir := answersFolder(t)
	ctx := answersContext(dir)
	var ask []string
	for _, q := range questions(t) {
		if !q.differs {
			ask = append(ask, strings.ReplaceAll(q.expr, "$DIR", dir))
		}
	}
	theirs := peerAnswers(t, tofu, dir, ask)
	for i, expr := range ask {
		ours := answer(ctx, expr)
		if strings.HasPrefix(theirs[i], errorMark+"There is no ") && strings.Contains(theirs[i], "function named") { // the peer is older
			t.Logf("%s: not compared", expr)
			continue
		}
		if failed(ours) && failed(theirs[i]) {
			if ours != theirs[i] {
				t.Logf("%s\n  ours   %s\n  theirs %s", expr, ours, theirs[i])
			}
			continue
		}
		if ours != theirs[i] {
			t.Errorf("%s\nours\n%s\ntheirs\n%s", expr, ours, theirs[i])
		}
	}
}

// peerAnswers starts one process for each error, since a console that reads from a pipe ends
// with the first.
func peerAnswers(t *testing.T, tofu, dir string, ask []string) []string {
	const sep = "@@@"
	var answers []string
	for len(answers) < len(ask) {
		var in bytes.Buffer
		for _, expr := range ask[len(answers):min(len(ask), len(answers)+100)] {
			fmt.Fprintf(&in, "%s\n%q\n", expr, sep)
		}
		cmd := exec.Command(tofu, "console", "-lock=false", "-no-color")
		cmd.Dir, cmd.Stdin = dir, &in
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull, "HOME="+home)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		failed := cmd.Run() != nil
		parts := strings.Split(out.String(), strconv.Quote(sep)+"\n")
		for _, part := range parts[:len(parts)-1] {
			answers = append(answers, strings.TrimSuffix(part, "\n"))
		}
		if failed {
			answers = append(answers, errorMark+flat(errs.String()))
		} else if len(parts) == 1 {
			t.Fatalf("%s console says nothing: %s", tofu, errs.String())
		}
	}
	return answers
}

// flat removes the frame from a printed error.
func flat(s string) string {
	s = strings.NewReplacer("│", "", "╷", "", "╵", "", "Error: ", "").Replace(s)
	s = strings.Join(strings.Fields(s), " ")
	_, s, _ = strings.Cut(s, "(source code not available) ")
	return s
}

// TestPeerSignatures compares names, types and nullability of parameters and the types of
// results with the signatures that OpenTofu reports.
func TestPeerSignatures(t *testing.T) {
	tofu := os.Getenv("TERRACE_TEST_TOFU")
	if tofu == "" {
		t.Skip("SKIP: TERRACE_TEST_TOFU does not name an OpenTofu 1.12 binary")
	}
	cmd := exec.Command(tofu, "metadata", "functions", "-json")
	cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull)
	text, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	type parameter struct {
		Name     string `json:"name"`
		Nullable bool   `json:"is_nullable"`
		Type     any    `json:"type"`
	}
	type signature struct {
		Return any         `json:"return_type"`
		Params []parameter `json:"parameters"`
		Rest   *parameter  `json:"variadic_parameter"`
	}
	var theirs struct {
		Signatures map[string]signature `json:"function_signatures"`
	}
	if err := json.Unmarshal(text, &theirs); err != nil {
		t.Fatal(err)
	}
	asJSON := func(ty cty.Type) (v any) {
		if ty.Equals(hclnative.TypeArgument()) {
			return "type"
		}
		b, err := ty.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(b, &v)
		}
		if err != nil {
			v = "dynamic" // the type of an expression argument
		}
		return v
	}
	describe := func(p function.Parameter) parameter { return parameter{p.Name, p.AllowNull, asJSON(p.Type)} }
	table := Table(Config{})
	for name, want := range theirs.Signatures {
		f, ok := table[name]
		if !ok {
			t.Errorf("%s is missing", name)
			continue
		}
		var have signature
		var types []cty.Type
		for _, p := range f.Params() {
			have.Params = append(have.Params, describe(p))
			types = append(types, p.Type)
		}
		if p := f.VarParam(); p != nil {
			rest := describe(*p)
			have.Rest = &rest
			types = append(types, p.Type)
		}
		ret, err := f.ReturnType(types)
		if err != nil {
			ret = cty.DynamicPseudoType
		}
		have.Return = asJSON(ret)
		if strings.TrimPrefix(name, "core::") == "contains" {
			want.Params[1].Nullable = have.Params[1].Nullable // accepts null here
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
