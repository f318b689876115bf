package planfile

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hashicorp/hcl/v2"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/plan"
	"github.com/terrace-iac/terrace/source"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
)

var compare = []cmp.Option{
	cmp.Comparer(func(a, b cty.Value) bool {
		return a == cty.NilVal && b == cty.NilVal || a != cty.NilVal && b != cty.NilVal && a.RawEquals(b)
	}),
	cmp.Comparer(func(a, b cty.Path) bool { return a.Equals(b) }),
	cmp.Comparer(func(a, b *state.State) bool {
		return a == nil && b == nil || a != nil && b != nil && a.Equal(b) && a.Lineage == b.Lineage && a.Serial == b.Serial
	}),
	cmpopts.EquateEmpty(),
}

func instance(name string, k addr.Key) addr.Instance {
	return addr.Instance{Module: addr.ModuleInstance("").Child("m", addr.Str("k")), Resource: addr.Resource{Type: "terraform_data", Name: name}, Key: k}
}

func sample() *File {
	s := cty.StringVal
	obj := cty.ObjectVal(map[string]cty.Value{
		"id": cty.UnknownVal(cty.String).RefineNotNull(), "n": cty.MustParseNumberVal("1.25"), "l": cty.ListVal([]cty.Value{s("a"), cty.UnknownVal(cty.String)}),
		"d": cty.DynamicVal, "z": cty.NullVal(cty.DynamicPseudoType), "m": cty.MapVal(map[string]cty.Value{"x": cty.True}), "s": cty.SetVal([]cty.Value{s("b")}),
		"t": cty.TupleVal([]cty.Value{s("x"), cty.Zero}),
	})
	a, b := instance("a", addr.Key{}), instance("b", addr.Int(3))
	builtin := addr.ProviderConfig{Module: "module.m", Provider: addr.BuiltIn, Alias: "x", Key: addr.Str("k")}
	path := cty.Path{cty.GetAttrStep{Name: "l"}, cty.IndexStep{Key: cty.NumberIntVal(1)}}
	prior := (&state.State{Lineage: "l", Serial: 4, Outputs: map[string]*state.Output{"o": {Value: s("v")}}}).WithMeta("l", 4, "1.12.6")
	return &File{
		Plan: &plan.Plan{
			Mode: plan.Destroy,
			Changes: []*plan.Change{
				{Addr: a, Prev: b, Provider: builtin, Op: plan.Update, Reason: plan.ReplaceTainted, Before: obj, After: obj,
					BeforeSensitive: []cty.Path{path}, AfterSensitive: []cty.Path{path[:1]}, ReplacePaths: []cty.Path{path},
					Import: &plan.Import{ID: "i", Identity: obj, GeneratedConfig: "g"}, BeforeIdentity: obj,
					Handling: plan.Handling{Private: []byte{1, 2}, Dependencies: []addr.ConfigResource{a.Config()}, ForcedCBD: true, SkipDestroy: true}},
				{Addr: b, Prev: b, Deposed: "12345678", Provider: builtin, Op: plan.Delete, Before: obj, After: cty.NullVal(obj.Type())},
			},
			Drift: []*plan.Change{{Addr: a, Prev: a, Op: plan.Delete, Before: obj, After: cty.NullVal(obj.Type())}},
			Reads: plan.Reads{Objects: 7, Spared: 5, Recent: 1, Data: 3, Kept: 2}, Transfers: []plan.Transfer{{Addr: addr.Instance{Resource: addr.Resource{Type: "t", Name: "n"}}, Unit: "../db", Other: addr.Instance{Resource: addr.Resource{Type: "t", Name: "m"}, Key: addr.Int(2)}, Out: true}}, Deferred: []*plan.Deferred{{Addr: "module.x", Reason: plan.InstancesUnknown, At: source.Range{Filename: "main.tf", Start: hcl.Pos{Line: 2, Column: 3, Byte: 9}, End: hcl.Pos{Line: 2, Column: 5, Byte: 11}}, Variables: []string{"a", "b"}}},
			Outputs: []*plan.OutputChange{{Name: "o", Op: plan.Create, Before: cty.NullVal(cty.DynamicPseudoType), After: s("x"), AfterSensitive: true, Deprecated: "d"}},
			Actions: []plan.Action{{Kind: plan.StepUpdate, Change: 0}, {Kind: plan.StepJoin, Change: -1, Needs: []int{0}}, {Kind: plan.StepDeleteDeposed, Change: 1, Needs: []int{0, 1}}},
			Checks:  []state.CheckResult{{Kind: state.CheckBlock, Addr: "check.c", Status: state.CheckFail, Objects: []state.CheckObject{{Addr: "check.c", Status: state.CheckFail, Failures: []string{"f"}}}}, {Kind: state.CheckOutput, Addr: "output.o", Status: state.CheckPass}},
			Prior:   prior,
			PrevRun: state.New().WithMeta("l", 3, "1.12.6"),
			Request: plan.Request{
				Variables: map[string]cty.Value{"v": obj, "w": s("w")}, Ephemeral: []string{"e"},
				Targets: []addr.Target{{Module: "module.m"}}, Excludes: []addr.Target{{Resource: a.Resource, Key: addr.Int(1), HasKey: true}},
				Replace: []addr.Instance{b},
			},
			Relevant:  []plan.RelevantAttr{{Resource: a, Path: path}},
			Timestamp: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Errored: true, Workspace: "w",
		},
		Config:  map[string][]byte{"main.tf": []byte("a"), "../../m/main.tf": []byte("b"), ".terraform/modules/modules.json": []byte("{}")},
		Lock:    []byte("# lock"),
		Backend: Backend{Type: "local", Config: obj, Workspace: "w"},
	}
}

func written(t testing.TB, f *File) []byte {
	var b bytes.Buffer
	if err := Write(&b, f, "1.0.0"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	f := sample()
	src := written(t, f)
	if !bytes.Equal(src, written(t, f)) {
		t.Error("two files of one plan differ")
	}
	if !IsPlan(src) {
		t.Error("not recognized")
	}
	got, err := Read(bytes.NewReader(src), int64(len(src)), "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, got, compare...); diff != "" {
		t.Error(diff)
	}
}

func TestRefused(t *testing.T) {
	src := written(t, sample())
	read := func(src []byte, version string) error {
		_, err := Read(bytes.NewReader(src), int64(len(src)), version)
		return err
	}
	if err := read(src, "1.0.1"); !errors.Is(err, ErrVersion) {
		t.Errorf("other version: %v", err)
	}
	if err := read([]byte("nonsense"), "1.0.0"); !errors.Is(err, ErrNotPlan) {
		t.Errorf("no zip: %v", err)
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	m, _ := z.Create("tfplan")
	_, _ = m.Write([]byte("\x08\x03"))
	z.Close()
	if err := read(b.Bytes(), "1.0.0"); !errors.Is(err, ErrNotPlan) {
		t.Errorf("a peer's plan: %v", err)
	}
	body, err := encodePlan(sample().Plan, Backend{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range body {
		if _, _, err := decodePlan(body[:n]); err == nil {
			t.Fatalf("a plan torn after %d bytes was taken", n)
		}
	}
}

func FuzzDecode(f *testing.F) {
	body, err := encodePlan(sample().Plan, sample().Backend)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, src []byte) {
		p, b, err := decodePlan(src)
		if err != nil {
			return
		}
		again, err := encodePlan(p, b)
		if err != nil {
			t.Skip() // a value that cannot be encoded, such as an unusual number
		}
		if _, _, err := decodePlan(again); err != nil {
			t.Fatalf("what was read cannot be read again: %v", err)
		}
	})
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, sample()))
	f.Add([]byte("PK\x03\x04"))
	f.Fuzz(func(t *testing.T, src []byte) {
		_, _ = Read(bytes.NewReader(src), int64(len(src)), "1.0.0")
	})
}

func large(n int) *File {
	f := sample()
	str := cty.StringVal
	var changes []*plan.Change
	var actions []plan.Action
	for i := range n {
		a := addr.Instance{Resource: addr.Resource{Type: "terraform_data", Name: fmt.Sprint("r", i)}}
		after := cty.ObjectVal(map[string]cty.Value{"id": cty.UnknownVal(cty.String).RefineNotNull(), "input": str(strings.Repeat("v", 20) + fmt.Sprint(i)), "output": cty.UnknownVal(cty.String), "triggers_replace": cty.NullVal(cty.DynamicPseudoType)})
		changes = append(changes, &plan.Change{Addr: a, Prev: a, Provider: addr.ProviderConfig{Provider: addr.BuiltIn}, Op: plan.Create, Before: cty.NullVal(cty.EmptyObject), After: after})
		act := plan.Action{Kind: plan.StepCreate, Change: i}
		if i > 0 {
			act.Needs = []int{i - 1}
		}
		actions = append(actions, act)
	}
	f.Plan.Changes, f.Plan.Actions = changes, actions
	return f
}

func BenchmarkPlanFile(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		f := large(n)
		src := written(b, f)
		b.Run(fmt.Sprint("write/", n), func(b *testing.B) {
			for b.Loop() {
				written(b, f)
			}
		})
		b.Run(fmt.Sprint("read/", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Read(bytes.NewReader(src), int64(len(src)), "1.0.0"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
