package funcs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/terrace-iac/terrace/internal/value"
)

// TestPeer asks the console of OpenTofu about every expression in
// testdata/peer.txt and compares what it prints with what the functions here
// give. Lines that start with # are comments; ~ starts an expression where the
// two differ on purpose, which only must not crash here.
func TestPeer(t *testing.T) {
	tofu := os.Getenv("TERRACE_TEST_TOFU")
	if tofu == "" {
		t.Skip("SKIP: TERRACE_TEST_TOFU does not name an OpenTofu 1.12 binary")
	}
	text, err := os.ReadFile("testdata/peer.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := peerFolder(t)
	ctx := peerContext(dir)
	var ask []string
	for _, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '~':
			answer(ctx, strings.TrimSpace(line[1:]))
		default:
			ask = append(ask, line)
		}
	}
	theirs := peerAnswers(t, tofu, dir, ask)
	for i, expr := range ask {
		ours := answer(ctx, expr)
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

const errorMark = "Error: "

func failed(answer string) bool { return strings.HasPrefix(answer, errorMark) }

// peerFolder makes a folder of files that the expressions ask about.
func peerFolder(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.tf":   "resource \"terraform_data\" \"u\" {\n  input = \"x\"\n}\nvariable \"e\" {\n  ephemeral = true\n  default = \"eph\"\n}\n",
		"a.txt":     "hello",
		"sub/b.txt": "x",
		"t.tmpl":    "hi ${name}",
		"bin":       "\xff\xfe",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("sub", filepath.Join(dir, "lnk")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// peerContext is what the console has in peerFolder: an unknown resource and an
// ephemeral variable.
func peerContext(dir string) *hcl.EvalContext {
	unknown := cty.UnknownVal(cty.Object(map[string]cty.Type{
		"id": cty.String, "input": cty.DynamicPseudoType, "output": cty.DynamicPseudoType, "triggers_replace": cty.DynamicPseudoType,
	}))
	return &hcl.EvalContext{
		Functions: Table(Config{BaseDir: dir, Console: true, Home: os.UserHomeDir}),
		Variables: map[string]cty.Value{
			"terraform_data": cty.ObjectVal(map[string]cty.Value{"u": unknown}),
			"var":            cty.ObjectVal(map[string]cty.Value{"e": cty.StringVal("eph").Mark(value.Ephemeral)}),
		},
	}
}

// peerAnswers asks in as few processes as there are errors, since a console
// that reads from a pipe ends with the first.
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
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull)
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

// flat takes the frame off a printed error.
func flat(s string) string {
	s = strings.NewReplacer("│", "", "╷", "", "╵", "", "Error: ", "").Replace(s)
	s = strings.Join(strings.Fields(s), " ")
	_, s, _ = strings.Cut(s, "(source code not available) ")
	return s
}

// answer is what a console prints for an expression.
func answer(ctx *hcl.EvalContext, expr string) string {
	x, ds := hclsyntax.ParseExpression([]byte(expr), "<console-input>", hcl.InitialPos)
	if ds.HasErrors() {
		return errorMark + ds[0].Error()
	}
	v, ds := x.Value(ctx)
	if ds.HasErrors() {
		return errorMark + strings.Join(strings.Fields(ds[0].Detail), " ")
	}
	if ty, ok := DescribedType(v); ok {
		return TypeString(ty)
	}
	if ContainsType(v) {
		return errorMark + "type inside of a value"
	}
	var b strings.Builder
	write(&b, v, 0)
	return b.String()
}

func write(b *strings.Builder, v cty.Value, depth int) {
	bare, marks := v.Unmark()
	ty := bare.Type()
	switch {
	case marks.Has(value.Sensitive) && bare.IsKnown():
		b.WriteString("(sensitive value)")
	case marks.Has(value.Ephemeral) && bare.IsKnown():
		b.WriteString("(ephemeral value)")
	case !bare.IsKnown():
		b.WriteString("(known after apply)")
	case bare.IsNull():
		writeNull(b, ty)
	case ty == cty.String:
		b.WriteString(strconv.Quote(bare.AsString()))
	case ty == cty.Number:
		b.WriteString(bare.AsBigFloat().Text('f', -1))
	case ty == cty.Bool:
		fmt.Fprint(b, bare.True())
	case ty.IsListType():
		writeParts(b, bare, depth, "tolist([", "])")
	case ty.IsSetType():
		writeParts(b, bare, depth, "toset([", "])")
	case ty.IsTupleType():
		writeParts(b, bare, depth, "[", "]")
	case ty.IsMapType():
		writeParts(b, bare, depth, "tomap({", "})")
	default:
		writeParts(b, bare, depth, "{", "}")
	}
}

func writeNull(b *strings.Builder, ty cty.Type) {
	switch {
	case ty.IsSetType():
		fmt.Fprintf(b, "toset(null) /* of %s */", ty.ElementType().FriendlyName())
	case ty.IsListType():
		fmt.Fprintf(b, "tolist(null) /* of %s */", ty.ElementType().FriendlyName())
	case ty.IsPrimitiveType():
		fmt.Fprintf(b, "to%s(null)", ty.FriendlyName())
	default:
		b.WriteString("null")
	}
}

func writeParts(b *strings.Builder, v cty.Value, depth int, before, after string) {
	b.WriteString(before)
	in := strings.Repeat("  ", depth+1)
	named := slices.Contains([]string{"{", "tomap({"}, before)
	for key, part := range v.Elements() {
		b.WriteString("\n" + in)
		if named {
			b.WriteString(strconv.Quote(key.AsString()) + " = ")
		}
		write(b, part, depth+1)
		if !named {
			b.WriteString(",")
		}
	}
	if v.LengthInt() > 0 {
		b.WriteString("\n" + strings.Repeat("  ", depth))
	}
	b.WriteString(after)
}

// TestPeerSignatures compares names, types and nullability of parameters and
// the types of results with what OpenTofu reports of its functions.
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
		if strings.HasSuffix(name, "contains") && len(want.Params) == 2 {
			want.Params[1].Nullable = have.Params[1].Nullable // takes null here
		}
		if d := cmp.Diff(want, have); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
