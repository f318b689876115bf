package statefile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/addr"
	"github.com/terrace-iac/terrace/state"
	"github.com/zclconf/go-cty/cty"
	"golang.org/x/tools/txtar"
)

func parse(t testing.TB, b []byte) *state.State {
	t.Helper()
	s, ds := Parse("in.json", b)
	if len(ds) > 0 {
		t.Fatalf("%s: %s", ds[0].Summary, ds[0].Detail)
	}
	return s
}

func written(t testing.TB, s *state.State, indent bool) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, s, indent); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func file(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The golden files are OpenTofu 1.12.6's output for full.json: the compact one from "state
// pull", the indented one from moving a resource to another address and back (with the serial
// reset).
func TestEveryFieldAsOpenTofuWritesIt(t *testing.T) {
	for _, in := range []string{"full.json", "full.compact.golden", "full.indented.golden"} {
		s := parse(t, file(t, in))
		if diff := cmp.Diff(string(file(t, "full.compact.golden")), written(t, s, false)); diff != "" {
			t.Errorf("%s compact: %s", in, diff)
		}
		if diff := cmp.Diff(string(file(t, "full.indented.golden")), written(t, s, true)); diff != "" {
			t.Errorf("%s indented: %s", in, diff)
		}
	}
}

func TestOlderVersionsAsOpenTofuReadsThem(t *testing.T) {
	for _, name := range []string{"v1.txtar", "v2.txtar", "v3.txtar"} {
		a := txtar.Parse(file(t, name))
		if diff := cmp.Diff(string(a.Files[1].Data), written(t, parse(t, a.Files[0].Data), false)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestTaintedObjectsOfVersion1AreNotLost(t *testing.T) {
	s := parse(t, []byte(`{"version":1,"serial":1,"modules":[{"path":["root"],"resources":{
		"a_b.x":{"type":"a_b","primary":{"id":"1"},"tainted":[{"id":"2"},{"id":"3"}]},
		"a_b.y":{"type":"a_b","tainted":[{"id":"4"},{"id":"5"}]}}}]}`))
	var got []string
	for a, o := range s.Objects() {
		got = append(got, fmt.Sprint(a, " ", o.Flat["id"], " ", o.Tainted))
	}
	want := []string{"a_b.x 1 false", "a_b.x (deposed object 00000001) 2 true", "a_b.x (deposed object 00000002) 3 true", "a_b.y 5 true", "a_b.y (deposed object 00000001) 4 true"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestModelOfFull(t *testing.T) {
	s := parse(t, file(t, "full.json"))
	full := addr.AbsResource{Resource: addr.Resource{Type: "a_b", Name: "full"}}
	o, p, ok := s.Object(addr.Object{Instance: full.Instance(addr.Int(0))})
	if !ok || p.String() != `module.a.provider["registry.terraform.io/hashicorp/aws"].alias` {
		t.Fatalf("%v %v", ok, p)
	}
	want := &state.Object{
		Tainted: true, SchemaVersion: 4, Private: []byte("null"),
		JSON: []byte(`{"zz":1,"a":"\u003cx\u003e\u003c\u2028 \" é \/ \ud83d\ude00","f":1.50e+3,"tags":{"k":"v"},"list":[0,1,{"x":0}],"e":{},"l":[]}`),
		Sensitive: []cty.Path{
			cty.GetAttrPath("tags").IndexString("k"), cty.GetAttrPath("list").IndexInt(2).GetAttr("x"),
			cty.GetAttrPath("set").Index(cty.ObjectVal(map[string]cty.Value{"x": cty.NumberIntVal(1)})),
		},
		Dependencies: []addr.ConfigResource{
			{Resource: addr.Resource{Mode: addr.Data, Type: "x", Name: "y"}}, {Module: "module.q", Resource: addr.Resource{Type: "a_b", Name: "c"}}, {Resource: addr.Resource{Type: "a_b", Name: "x"}},
		},
		CreateBeforeDestroy: true, SkipDestroy: true, Identity: []byte(`{"z":1,"a":2}`), IdentityVersion: 3,
	}
	if !o.Equal(want) {
		t.Errorf("got %+v\nwant %+v", o, want)
	}
	_, p, _ = s.Object(addr.Object{Instance: addr.AbsResource{Resource: addr.Resource{Type: "a_b", Name: "keyed"}}.Instance(addr.Str("q2")), Deposed: "0a1b2c3d"})
	if p.String() != `provider["registry.opentofu.org/hashicorp/aws"].al["k2"]` {
		t.Errorf("keyed provider: %s", p)
	}
	translated := s.TranslateProviders(nil, true)
	if _, p, _ := translated.Object(addr.Object{Instance: full.Instance(addr.Int(0))}); p.Provider.Host != addr.DefaultHost {
		t.Errorf("not translated: %s", p)
	}
	keep := map[addr.Provider]bool{{Host: addr.OtherDefaultHost, Namespace: "hashicorp", Type: "aws"}: true}
	if s.TranslateProviders(keep, true) != s {
		t.Error("a provider that is to be kept was translated")
	}
}

const provider = `"provider":"provider[\"registry.opentofu.org/hashicorp/aws\"]"`

func withResource(r string) string {
	return `{"version":4,"terraform_version":"1.5.0","serial":7,"lineage":"lin","outputs":{},"resources":[` + r + `]}`
}

func withInstance(i string) string {
	return withResource(`{"mode":"managed","type":"a_b","name":"k",` + provider + `,"instances":[` + i + `]}`)
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct{ in, at, want string }{
		{` `, "1:2", "the document ends"},
		{`tfstate`, "", "binary format"},
		{`x`, "1:1", "a value is needed"},
		{`[]`, "1:1", "something else"},
		{`{}`, "1:1", `no "version" property`},
		{`{"encrypted_data":"x","encryption_version":"v0"}`, "1:1", "encryption block"},
		{`{"version":0}`, "1:12", "format version 0"},
		{`{"version":5,"terraform_version":"9.9.9"}`, "1:1", `version 5 (written by version "9.9.9")`},
		{`{"version":-1}`, "1:12", "whole number from 1 to 4"},
		{`{"version":"4"}`, "1:12", "whole number from 1 to 4"},
		{`{"version":4} x`, "1:15", "text after the end"},
		{"{\"version\":4,\n  \"serial\":-1}", "2:12", "serial of the state is -1"},
		{`{"version":4,"serial":1.5}`, "1:23", "serial of the state is 1.5"},
		{`{"version":4,"lineage":7}`, "1:24", "a string is needed"},
		{`{"version":4,"outputs":{"a":{"value":1,"type":"what"}}}`, "1:29", `type of the output "a"`},
		{`{"version":4,"outputs":{"a":{"value":"s3cret","type":"number"}}}`, "1:29", `value of the output "a"`},
		{`{"version":4,"outputs":{"a":{"value":["x",1],"type":["list","dynamic"]}}}`, "1:29", `value of the output "a"`},
		{`{"version":4,"outputs":{"a":{"type":"number"}}}`, "1:29", `no value or no type`},
		{`{"version":4,"outputs":{"a":{"value":1}}}`, "1:29", `no value or no type`},
		{withResource(`{"mode":"managed","type":"a_b","name":"k","instances":[{"attributes":{}}]}`), "1:95", "names no provider"},
		{withResource(`{"mode":"ephemeral","type":"a_b","name":"k",` + provider + `,"instances":[]}`), "1:95", `mode of a resource is "ephemeral"`},
		{withResource(`{"mode":"managed","type":"a_b",` + provider + `,"instances":[]}`), "1:95", "no type or no name"},
		{withResource(`{"module":"module.a.b","mode":"managed","type":"a_b","name":"k",` + provider + `}`), "1:95", `module address "module.a.b" is not valid`},
		{withResource(`{"mode":"managed","type":"a_b","name":"k","provider":"provider[\"a/b/c/d\"]"}`), "1:95", "invalid provider address"},
		{withInstance(`{},{}`), "1:216", "a_b.k is in the state more than once"},
		{withInstance(`{"deposed":"0000aaaa"},{"deposed":"0000aaaa"}`), "1:236", "deposed object 0000aaaa of a_b.k is in the state more than once"},
		{withInstance(`{"deposed":"zz"}`), "1:224", `"zz"`},
		{withInstance(`{"status":"odd"}`), "1:223", `"odd"`},
		{withInstance(`{"index_key":1.5}`), "1:226", "1.5 is not a whole number"},
		{withInstance(`{"index_key":-1}`), "1:226", "-1 is not a whole number"},
		{withInstance(`{"index_key":true}`), "1:226", "string or a whole number"},
		{withInstance(`{"index_key":99999999999999999999}`), "1:226", "not a whole number"},
		{withInstance(`{"schema_version":-1}`), "1:231", "schema version"},
		{withInstance(`{"dependencies":["x..y"]}`), "1:230", `"x..y"`},
		{withInstance(`{"private":"%%"}`), "1:224", "base64"},
		{withInstance(`{"attributes":{"a":}}`), "1:232", "a value is needed"},
		{withInstance(`{"attributes_flat":{"a":1}}`), "1:237", "a string is needed"},
		{withInstance(`{"sensitive_attributes":[[{"type":"what","value":"x"}]]}`), "1:239", `"what"`},
		{withInstance(`{"sensitive_attributes":[[{"type":"get_attr","value":1}]]}`), "1:239", "no name"},
		{withInstance(`{"sensitive_attributes":[[{"type":"index","value":{"value":1,"type":"x"}}]]}`), "1:239", "no valid index"},
		{withResource(`{"mode":"managed","type":"a_b","name":"k",` + provider + `,"instances":[{"provider":"provider[\"registry.opentofu.org/hashicorp/gcp\"].al[\"k\"]"}]}`), "1:213", "differ in the key"},
		{`{"version":3,"modules":[{"path":["x"]}]}`, "1:1", "starts at the root"},
		{`{"version":3,"modules":[{"path":["root","a b"]}]}`, "1:1", "module path"},
		{`{"version":3,"modules":[{"path":["root"],"resources":{"x":{}}}]}`, "1:1", `"x" is not the name of a resource`},
		{`{"version":3,"modules":[{"path":["root"],"resources":{"a.b":{"provider":"a b"}}}]}`, "1:1", "invalid provider address"},
		{`{"version":3,"modules":[{"path":["root"],"resources":{"a.b":{"primary":{"meta":{"schema_version":"x"}}}}}]}`, "1:1", "schema version of a.b"},
		{`{"version":3,"modules":7}`, "1:1", "not its form"},
		{`{"version":3,"modules":[}`, "1:25", "a value is needed"},
	} {
		s, ds := Parse("f", []byte(c.in))
		if !ds.HasErrors() || s != nil {
			t.Errorf("%s: no error", c.in)
			continue
		}
		m := ds.Errors()[0]
		at := ""
		if m.At != nil {
			at = fmt.Sprintf("%d:%d", m.At.Start.Line, m.At.Start.Column)
		}
		if !strings.Contains(m.Detail, c.want) || at != c.at {
			t.Errorf("%s\nat %s: %s\nwant at %s: …%s…", c.in, at, m.Detail, c.at, c.want)
		}
		if strings.HasSuffix(m.Detail, "..") {
			t.Errorf("two periods: %s", m.Detail)
		}
		if strings.Contains(m.Detail, "s3cret") {
			t.Errorf("a value is in the message: %s", m.Detail)
		}
	}
}

func TestEmptyIsNoState(t *testing.T) {
	if s, ds := Parse("x", nil); s != nil || ds != nil {
		t.Errorf("%v %v", s, ds)
	}
}

func TestManyMistakesGiveFewMessages(t *testing.T) {
	_, ds := Parse("x", []byte(withInstance(strings.Repeat(`{"status":"odd"},`, 10000)+`{}`)))
	if len(ds) == 0 || len(ds) > maxMessages {
		t.Errorf("%d messages", len(ds))
	}
}

func TestHugeNumbersAreRefused(t *testing.T) {
	for _, n := range []string{"1e99999999", "1e-99999999", "1e99999999999999999999", strings.Repeat("9", 30000)} {
		for _, out := range []string{`{"value":` + n + `,"type":"number"}`, `{"value":{"value":[` + n + `],"type":["list","number"]},"type":"dynamic"}`, `{"value":"` + n + `","type":"number"}`} {
			if _, ds := Parse("x", []byte(`{"version":4,"outputs":{"a":`+out+`}}`)); !ds.HasErrors() {
				t.Errorf("%.60s was taken", out)
			}
		}
	}
	s := parse(t, []byte(`{"version":4,"outputs":{"a":{"value":1e9999,"type":"number"},"b":{"value":1e-9999,"type":"number"}}}`))
	if !parse(t, []byte(written(t, s, false))).Equal(s) {
		t.Error("the numbers did not come back")
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"full.json", "full.indented.golden"} {
		f.Add(file(f, name))
	}
	for _, name := range []string{"v1.txtar", "v2.txtar", "v3.txtar"} {
		f.Add(txtar.Parse(file(f, name)).Files[0].Data)
	}
	f.Add([]byte(`{"version":4,"outputs":{"a":{"value":["x",1],"type":["list","dynamic"]},"b":{"value":{"value":1,"type":"number"},"type":"dynamic"},"c":{"value":{"a":1},"type":["object",{"a":"number","b":"string"},["b"]]}}}`))
	f.Add([]byte(`{"Version":4,"version":4,"serial":18446744073709551615}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, ds := Parse("x", b)
		if ds.HasErrors() || s == nil {
			return
		}
		first := written(t, s, true)
		again := parse(t, []byte(first))
		if !again.Equal(s) {
			t.Fatalf("what was written is not what was read: %v", state.Diff(s, again))
		}
		if second := written(t, again, true); second != first {
			t.Fatalf("first:\n%s\nthen:\n%s", first, second)
		}
	})
}

func FuzzParseChange(f *testing.F) {
	f.Add([]byte(`{"mode":"managed","type":"a","name":"b","provider":"provider[\"a/b/c\"]","instance":{"index_key":1,"attributes":{}}}`))
	f.Add([]byte(`{"mode":"data","type":"a","name":"b","remove":{"index_key":"x","deposed":"00000000"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParseChange(b)
		if err != nil {
			return
		}
		out, err := AppendChange(nil, c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseChange(out)
		if err != nil || again.Object != c.Object || again.Provider != c.Provider || !again.New.Equal(c.New) {
			t.Fatalf("%v: %s", err, out)
		}
	})
}

func sample(n int) *state.State {
	d := (&state.State{Lineage: "l", Serial: 1}).Edit()
	deps := []addr.ConfigResource{{Resource: addr.Resource{Type: "terraform_data", Name: "other"}}, {Module: "module.net", Resource: addr.Resource{Type: "terraform_data", Name: "vpc"}}}
	for i := range n {
		d.Apply(state.Change{
			Object:   addr.Object{Instance: addr.Instance{Resource: addr.Resource{Type: "terraform_data", Name: fmt.Sprintf("r%d", i)}}},
			Provider: addr.ProviderConfig{Provider: addr.BuiltIn},
			New: &state.Object{
				JSON:         []byte(`{"id":"0f5b9b4e-6f7e-4c42-9a5e-2d6a8c3f8f10","input":{"value":{"name":"server","size":3,"tags":{"env":"prod","team":"x"}},"type":["object",{"name":"string","size":"number","tags":["object",{"env":"string","team":"string"}]}]},"output":{"value":{"name":"server","size":3,"tags":{"env":"prod","team":"x"}},"type":["object",{"name":"string","size":"number","tags":["object",{"env":"string","team":"string"}]}]},"triggers_replace":null}`),
				Dependencies: deps,
			},
		})
	}
	return d.Freeze()
}

func BenchmarkWrite(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		s := sample(n)
		for _, indent := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/indent=%v", n, indent), func(b *testing.B) {
				for b.Loop() {
					var out bytes.Buffer
					if err := Write(&out, s, indent); err != nil {
						b.Fatal(err)
					}
					b.SetBytes(int64(out.Len()))
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/instance")
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		in := []byte(written(b, sample(n), true))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				parse(b, in)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/instance")
		})
	}
}

// A run over many units reads many small states concurrently: the memory for reading a state
// must be proportional to its size.
func TestStreamOfSmallState(t *testing.T) {
	text := `{"version":4,"terraform_version":"1.9.0","serial":1,"lineage":"l","outputs":{},"resources":[{"mode":"managed","type":"x_thing","name":"a","provider":"provider[\"registry.opentofu.org/x/x\"]","instances":[{"schema_version":0,"attributes":{"id":"1"},"sensitive_attributes":[]}]}]}`
	res := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			if _, ok := ParseStream(strings.NewReader(text), false); !ok {
				b.Fatal("the state was not read")
			}
		}
	})
	if n := res.AllocedBytesPerOp(); res.N == 0 || n > 48<<10 {
		t.Errorf("%d bytes were allocated for a state of %d", n, len(text))
	}
}
