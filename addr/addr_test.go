package addr

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"pgregory.net/rapid"
)

func TestParseTarget(t *testing.T) {
	tests := map[string]Target{
		"a.b":                 {Resource: Resource{Managed, "a", "b"}},
		"resource.a.b":        {Resource: Resource{Managed, "a", "b"}},
		"data.a.b[0]":         {Resource: Resource{Data, "a", "b"}, Key: Int(0), HasKey: true},
		`ephemeral.a.b["k"]`:  {Resource: Resource{Ephemeral, "a", "b"}, Key: Str("k"), HasKey: true},
		"module.m":            {Module: "module.m"},
		"module.m[3]":         {Module: "module.m[3]", ModuleKey: true},
		`module.m["x"].a.b`:   {Module: `module.m["x"]`, ModuleKey: true, Resource: Resource{Managed, "a", "b"}},
		"module.m.module.n":   {Module: "module.m.module.n"},
		`a.b["q\"uo\\te"]`:    {Resource: Resource{Managed, "a", "b"}, Key: Str(`q"uo\te`), HasKey: true},
		`a.b["$${x} %%{y}"]`:  {Resource: Resource{Managed, "a", "b"}, Key: Str("${x} %{y}"), HasKey: true},
		`a.b["line\nbreak"]`:  {Resource: Resource{Managed, "a", "b"}, Key: Str("line\nbreak"), HasKey: true},
		`a.b["ünï.[0]"]`:      {Resource: Resource{Managed, "a", "b"}, Key: Str("ünï.[0]"), HasKey: true},
		"a.b[1099511627776]":  {Resource: Resource{Managed, "a", "b"}, Key: Int(1 << 40), HasKey: true},
		"  a.b":               {Resource: Resource{Managed, "a", "b"}},
		"data.data.data":      {Resource: Resource{Data, "data", "data"}},
		"module.module.x.y":   {Module: "module.module", Resource: Resource{Managed, "x", "y"}},
		"a.b[00]":             {Resource: Resource{Managed, "a", "b"}, Key: Int(0), HasKey: true},
		"module.a.data.b.c":   {Module: "module.a", Resource: Resource{Data, "b", "c"}},
		"resource.module.a":   {Resource: Resource{Managed, "module", "a"}},
		"module.a[0].b.c[12]": {Module: "module.a[0]", ModuleKey: true, Resource: Resource{Managed, "b", "c"}, Key: Int(12), HasKey: true},
	}
	for in, want := range tests {
		got, err := ParseTarget(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", in, diff)
		}
	}
}

func TestParseTargetRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":               "",
		"a":              "needs a type and a name",
		"a.":             "",
		"a.b.c":          "more steps",
		"a.b[0].c":       "more steps",
		"a.b[0][1]":      "more steps",
		"a.b[*]":         "",
		"a.b.*":          "",
		"a.b[true]":      "",
		"a.b[-1]":        "",
		"a.b[1.5]":       "not a whole number",
		"a.b[1e30]":      "not a whole number",
		"a.b[c]":         "",
		`a.b["${c}"]`:    "",
		"module":         "must be followed",
		"module[0]":      "must be followed",
		"module.m[*]":    "",
		"data.a":         "needs a type and a name",
		"a[0].b":         "needs a type and a name",
		"module.m[0][1]": "there is an index where",
		"a.b;c":          "",
		strings.Repeat("module.m.", 10000) + "a.b": "longer than",
	} {
		got, err := ParseTarget(in)
		if err == nil {
			t.Errorf("%.50s gave %+v", in, got)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%.50s: %v, want %q", in, err, want)
		}
	}
}

func TestParseKinds(t *testing.T) {
	if _, err := ParseInstance("module.m"); err == nil {
		t.Error("a module passed for an instance")
	}
	if _, err := ParseModuleInstance("a.b"); err == nil {
		t.Error("a resource passed for a module")
	}
	if _, err := ParseConfigResource("module.m"); err == nil {
		t.Error("a module passed for a resource")
	}
	if m, err := ParseModuleInstance(""); m != "" || err != nil {
		t.Errorf("the root is %q, %v", m, err)
	}
	if r, err := ParseConfigResource(`module.m["k"].data.a.b`); err != nil || r.String() != "module.m.data.a.b" {
		t.Errorf("got %v, %v", r, err)
	}
	i, err := ParseInstance(`module.m["k"].module.n[0].a.b["x"]`)
	if err != nil || i.Abs().String() != `module.m["k"].module.n[0].a.b` || i.Config().String() != "module.m.module.n.a.b" {
		t.Errorf("got %v, %v", i, err)
	}
	if o := (Object{i, "1a2b3c4d"}); o.String() != i.String()+" (deposed object 1a2b3c4d)" || (Object{Instance: i}).String() != i.String() {
		t.Errorf("object %s", o)
	}
}

func TestContains(t *testing.T) {
	tests := []struct {
		target, instance string
		want             bool
	}{
		{"a.b", "a.b[0]", true},
		{"a.b[0]", "a.b[0]", true},
		{"a.b[0]", "a.b[1]", false},
		{"a.b[0]", `a.b["0"]`, false},
		{"a.b", "module.m.a.b", false},
		{"module.m", "module.m.a.b", true},
		{"module.m", "module.m[0].a.b", true},
		{"module.m", "module.m[0].module.n.a.b", true},
		{"module.m[0]", "module.m[1].a.b", false},
		{"module.m", "module.mm.a.b", false},
		{"module.m.a.b", `module.m["k"].a.b[3]`, true},
		{"module.m.a.b", "module.m.module.n.a.b", false},
		{"module.m.module.n", "module.m.a.b", false},
	}
	for _, tt := range tests {
		target, err := ParseTarget(tt.target)
		if err != nil {
			t.Fatal(err)
		}
		i, err := ParseInstance(tt.instance)
		if err != nil {
			t.Fatal(err)
		}
		if got := target.Contains(i); got != tt.want {
			t.Errorf("%s contains %s: %v, want %v", tt.target, tt.instance, got, tt.want)
		}
		if tt.want && !target.ContainsConfig(i.Config()) {
			t.Errorf("%s contains %s, but not its block", tt.target, tt.instance)
		}
	}
}

func TestParseProvider(t *testing.T) {
	for in, want := range map[string]string{
		"time":                           "registry.opentofu.org/hashicorp/time",
		"acme/time":                      "registry.opentofu.org/acme/time",
		"Example.COM/Acme/Time":          "example.com/acme/time",
		"localhost/a/b":                  "localhost/a/b",
		"example.com:8080/a/b":           "example.com:8080/a/b",
		"terraform":                      "terraform.io/builtin/terraform",
		"terraform.io/builtin/terraform": "terraform.io/builtin/terraform",
		"a-b/c_d":                        "registry.opentofu.org/a-b/c_d",
	} {
		p, err := ParseProvider(in)
		if err != nil || p.String() != want {
			t.Errorf("%s: %s, %v, want %s", in, p, err, want)
		}
	}
	for _, in := range []string{"", "/", "a/b/c/d", "host/a/b", "example.com:/a/b", "example.com:x/a/b", "-a/b", "a--b/c", "a/b-", "a b/c", "a/terraform-provider-b", "exa mple.com/a/b", ".com/a/b", "a/b/"} {
		if p, err := ParseProvider(in); err == nil {
			t.Errorf("%q gave %s", in, p)
		}
	}
	if p := DefaultProvider("terraform"); !p.IsBuiltIn() || p.IsZero() {
		t.Errorf("terraform is %s", p)
	}
	if p := DefaultProvider("x"); p.Display() != "hashicorp/x" || !(Provider{}).IsZero() {
		t.Errorf("x is %s", p.Display())
	}
}

func TestParseProviderConfig(t *testing.T) {
	for _, in := range []string{
		`provider["registry.opentofu.org/hashicorp/time"]`,
		`provider["registry.opentofu.org/hashicorp/time"].west`,
		`module.a.module.b.provider["example.com/x/y"].west["k"]`,
		`module.a.provider["example.com/x/y"].west[0]`,
	} {
		p, err := ParseProviderConfig(in)
		if err != nil || p.String() != in {
			t.Errorf("%s became %s, %v", in, p, err)
		}
	}
	for in, want := range map[string]ProviderConfig{
		"provider.time":               {Provider: Provider{DefaultHost, "-", "time"}},
		"module.a.provider.time.west": {Module: "module.a", Provider: Provider{DefaultHost, "-", "time"}, Alias: "west"},
	} {
		if got, err := ParseProviderConfig(in); err != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "provider", "x.y", "provider[0]", `provider["a/b/c/d"]`, `module.a[0].provider["a/b"]`, `provider["a/b"][0]`, `provider["a/b"].c.d`, `provider["a/b"].c[0].d`} {
		if got, err := ParseProviderConfig(in); err == nil {
			t.Errorf("%q gave %+v", in, got)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, k := range []Key{Int(0), Int(7), Str(""), Str("0"), Str("a")} {
		got, err := KeyFromValue(k.Value())
		if err != nil || got != k {
			t.Errorf("%v became %v, %v", k, got, err)
		}
		if got, err := KeyFromValue(k.Value().Mark("m")); err != nil || got != k {
			t.Errorf("%v with a mark became %v, %v", k, got, err)
		}
	}
	for _, v := range []cty.Value{cty.NullVal(cty.String), cty.UnknownVal(cty.Number), cty.True, cty.NumberFloatVal(0.5), cty.NumberIntVal(-1), cty.EmptyObjectVal, cty.DynamicVal} {
		if k, err := KeyFromValue(v); err == nil {
			t.Errorf("%#v became %v", v, k)
		}
	}
	order := []Key{{}, Int(0), Int(2), Int(10), Str(""), Str("0"), Str("a")}
	if !slices.IsSortedFunc(order, Key.Compare) {
		t.Error("keys are not ordered: none, numbers, strings")
	}
	if (Key{}).Value() != cty.NilVal || (Key{}).String() != "" {
		t.Error("the zero Key has a value or a text")
	}
}

func TestModulePaths(t *testing.T) {
	m := ModuleInstance("").Child("a", Key{}).Child("b", Str(`x.y]["`)).Child("c", Int(3))
	if want := `module.a.module.b["x.y][\""].module.c[3]`; string(m) != want {
		t.Fatalf("path %s, want %s", m, want)
	}
	if s := m.Static(); s != "module.a.module.b.module.c" || s.Key() != "a.b.c" || len(s.Calls()) != 3 {
		t.Errorf("static %s", s)
	}
	parent, last, ok := m.Parent()
	if !ok || last != (Step{"c", Int(3)}) || parent != ModuleFromSteps(m.Steps()[:2]) {
		t.Errorf("parent %s, %v, %v", parent, last, ok)
	}
	if _, _, ok := ModuleInstance("").Parent(); ok {
		t.Error("the root has a parent")
	}
	if !parent.Contains(m) || m.Contains(parent) || !ModuleInstance("").Contains(m) || ModuleInstance("module.a").Contains("module.ab") || ModuleInstance("module.a").Contains("module.a[0]") {
		t.Error("Contains is wrong")
	}
	order := []ModuleInstance{"", "module.a", "module.a.module.z", "module.a[2]", "module.a[10]", `module.a["a"]`, "module.b"}
	if !slices.IsSortedFunc(order, ModuleInstance.Compare) {
		t.Error("modules are not ordered step by step")
	}
}

// names are valid names in HCL.
var names = []string{"a", "b_c", "d-e", "ünï", "module", "data", "each", "x1"}

func drawKey(t *rapid.T) Key {
	switch rapid.IntRange(0, 2).Draw(t, "kind") {
	case 0:
		return Key{}
	case 1:
		return Int(rapid.IntRange(0, 1<<40).Draw(t, "int"))
	}
	text := rapid.StringOf(rapid.SampledFrom([]rune("a.[]\"\\$%{}\n\t\r\x01\x7fü🙂 "))).Draw(t, "text")
	return Str(cty.StringVal(text).AsString()) // in the normal form of values
}

// A formatted address can be parsed, with the same result.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names)
		var steps []Step
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			steps = append(steps, Step{name.Draw(t, "call"), drawKey(t)})
		}
		module := ModuleFromSteps(steps)
		if got := module.Steps(); !slices.Equal(got, steps) {
			t.Fatalf("%s has the steps %v, want %v", module, got, steps)
		}
		typ := rapid.SampledFrom([]string{"t", "aws_instance", "t-t"}).Draw(t, "type")
		mode := Mode(rapid.IntRange(0, 2).Draw(t, "mode"))
		i := Instance{module, Resource{mode, typ, name.Draw(t, "name")}, drawKey(t)}
		got, err := ParseInstance(i.String())
		if err != nil || got != i {
			t.Fatalf("%s became %s, %v", i, got, err)
		}
		if m, err := ParseModuleInstance(string(module)); err != nil || m != module {
			t.Fatalf("%s became %s, %v", module, m, err)
		}
		if c, err := ParseConfigResource(i.Config().String()); err != nil || c != i.Config() {
			t.Fatalf("%s became %s, %v", i.Config(), c, err)
		}
		p := ProviderConfig{module.Static(), Provider{"example.com", "a", "b"}, name.Draw(t, "alias"), drawKey(t)}
		if got, err := ParseProviderConfig(p.String()); err != nil || got != p {
			t.Fatalf("%s became %s, %v", p, got, err)
		}
	})
}

// The formatted form of every parsed address is parsed to the same address.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a.b", `module.m["x"].data.a.b[0]`, `ephemeral.a.b["$${x}\n"]`, "module.m[1].module.n", `provider["a/b"].c`, "a.b[*]", `a.b["`, "registry.example.com/a/b", "a.b[0x1]", `module.a["\u00fc"].b.c`, "module.m.module.n.data.a-b._c", "a.b.", "resource.a.b.c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkPlain(t, s)
		if target, err := ParseTarget(s); err == nil {
			again, err := ParseTarget(target.String())
			if err != nil || again != target {
				t.Errorf("%q: %s became %+v, %v; was %+v", s, target, again, err, target)
			}
			target.Contains(Instance{Module: target.Module, Resource: target.Resource})
		}
		if p, err := ParseProviderConfig(s); err == nil {
			if again, err := ParseProviderConfig(p.String()); err != nil || again != p {
				t.Errorf("%q: %s became %+v, %v", s, p, again, err)
			}
		}
		if p, err := ParseProvider(s); err == nil {
			if again, err := ParseProvider(p.String()); err != nil || again != p {
				t.Errorf("%q: %s became %+v, %v", s, p, again, err)
			}
		}
	})
}

// checkPlain checks that parsePlain and HCL's parser return the same address.
func checkPlain(t *testing.T, s string) (plain bool) {
	t.Helper()
	got, ok := parsePlain(s)
	if !ok {
		return false
	}
	steps, err := parseTraversal(s)
	if err != nil {
		t.Fatalf("%q: parsePlain accepts it, and HCL's parser reports: %s", s, err)
	}
	if want, err := TargetFromTraversal(steps); err != nil || got != want {
		t.Errorf("%q became %+v, want %+v, %v", s, got, want, err)
	}
	return true
}

// parsePlain accepts exactly the valid addresses of ASCII names.
func TestParsePlain(t *testing.T) {
	words := []string{"a", "_b-1", "module", "data", "ephemeral", "resource", "true", "for", "", "1", "ü", "a[0]"}
	var all func(prefix string, depth int)
	accepted := 0
	all = func(prefix string, depth int) {
		if checkPlain(t, prefix) {
			accepted++
		} else if _, err := ParseTarget(prefix); err == nil && !strings.ContainsAny(prefix, "ü[") {
			t.Errorf("%q is left to HCL's parser", prefix)
		}
		if depth == 0 {
			return
		}
		for _, w := range words {
			all(strings.TrimPrefix(prefix+"."+w, "."), depth-1)
		}
	}
	all("", 4)
	if accepted < 100 {
		t.Errorf("it accepts only %d of the addresses", accepted)
	}
}
