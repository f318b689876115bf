package format_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/terrace-iac/terrace/internal/rules/finding"
	"github.com/terrace-iac/terrace/internal/rules/format"
)

func at(file string, line int) hcl.Range {
	return hcl.Range{Filename: file, Start: hcl.Pos{Line: line, Column: 3, Byte: 10 * line}, End: hcl.Pos{Line: line, Column: 9, Byte: 10*line + 6}}
}

// sample has a finding of each kind.
func sample() *format.Report {
	return format.New([]*finding.Finding{
		{Rule: "b", Level: finding.Error, Verdict: finding.Fail, Message: "wrong <&>", Address: "x.y", Path: "z", SetAt: at("dir a/main.tf", 2), Defined: at("dir a/main.tf", 1)},
		{Rule: "b", Level: finding.Warning, Verdict: finding.Fail, Message: "odd", Unit: "live/vpc", SetAt: at("/else/where.hcl", 3), RuleAt: at("a.rules.hcl", 1)},
		{Rule: "c", Level: finding.Advice, Verdict: finding.Fail, Message: "hm", Waived: "because", SetAt: at("main.tf", 4)},
		{Rule: "c", Level: finding.Error, Verdict: finding.Unknown, Message: "later", Address: "q"},
		{Rule: "c", Level: finding.Error, Verdict: finding.Pass, Message: "good", Address: "p"},
	}, []format.Rule{{Name: "a", Finds: "nothing", Level: finding.Error}})
}

// sarifSchema returns the schema of SARIF 2.1.0, which a module of the module proxy contains.
func sarifSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/securego/gosec/v2@v2.30.0").Output()
	if err != nil {
		t.Skipf("the schema of SARIF cannot be downloaded through the Go module proxy: %v", err)
	}
	var mod struct{ Dir string }
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(mod.Dir, "report", "sarif", "testdata", "sarif-schema-2.1.0.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("sarif.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("sarif.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The SARIF of a report conforms to its schema and contains the findings of the report.
func TestSARIF(t *testing.T) {
	t.Parallel()
	s := sarifSchema(t)
	for name, r := range map[string]*format.Report{"sample": sample(), "empty": format.New(nil, nil)} {
		var b bytes.Buffer
		if err := format.SARIF(&b, r, "Terrace", "1.0.0"); err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b.Bytes()))
		if err == nil {
			err = s.Validate(doc)
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
		if name == "sample" {
			for _, want := range []string{`"uri": "dir%20a/main.tf"`, `"uri": "file:///else/where.hcl"`, `"kind": "open"`, `"kind": "pass"`, `"level": "none"`, `"level": "note"`, `"justification": "because"`, `"fullyQualifiedName": "x.y.z"`, `"text": "the rule"`} {
				if !strings.Contains(b.String(), want) {
					t.Errorf("%s is not in\n%s", want, b.String())
				}
			}
		}
	}
}

// A JUnit file has the form that the readers of the Jenkins JUnit plugin expect: the counts of each
// suite are those of its cases, and each case has at most one result.
func TestJUnit(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := format.JUnit(&b, sample(), finding.Error); err != nil {
		t.Fatal(err)
	}
	type result struct {
		Message string `xml:"message,attr"`
	}
	type suite struct {
		Name     string `xml:"name,attr"`
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Errors   int    `xml:"errors,attr"`
		Cases    []struct {
			Name    string   `xml:"name,attr"`
			Class   string   `xml:"classname,attr"`
			Failure []result `xml:"failure"`
			Skipped []result `xml:"skipped"`
			Error   []result `xml:"error"`
		} `xml:"testcase"`
	}
	var doc struct {
		XMLName  xml.Name `xml:"testsuites"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Suites   []suite  `xml:"testsuite"`
	}
	if err := xml.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	tests, failures := 0, 0
	for _, s := range doc.Suites {
		f, k := 0, 0
		for _, c := range s.Cases {
			if c.Name == "" || c.Class != s.Name || len(c.Failure)+len(c.Skipped)+len(c.Error) > 1 {
				t.Errorf("case %+v of %s", c, s.Name)
			}
			f, k = f+len(c.Failure), k+len(c.Skipped)
		}
		if s.Tests != len(s.Cases) || s.Failures != f || s.Skipped != k || s.Tests == 0 {
			t.Errorf("suite %+v", s)
		}
		tests, failures = tests+s.Tests, failures+f
	}
	if doc.Tests != tests || doc.Failures != failures || len(doc.Suites) != 3 || failures != 1 {
		t.Errorf("%d tests, %d failures in\n%s", doc.Tests, doc.Failures, b.String())
	}
	if !strings.Contains(b.String(), `<failure message="wrong &lt;&amp;&gt;"`) || !strings.Contains(b.String(), "exception: because") || !strings.Contains(b.String(), "not yet known: later") {
		t.Errorf("%s", b.String())
	}
}

// A baseline removes the findings that it contains. Moved lines make no difference.
func TestBaseline(t *testing.T) {
	t.Parallel()
	var b, doc bytes.Buffer
	if err := format.WriteBaseline(&b, sample()); err != nil {
		t.Fatal(err)
	}
	if err := format.JSON(&doc, sample()); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"baseline": b.Bytes(), "report": doc.Bytes()} {
		known, err := format.ReadBaseline(text)
		if err != nil {
			t.Fatal(name, err)
		}
		r := sample()
		for _, f := range r.Findings {
			f.SetAt.Start.Line += 7
		}
		r.Findings = append(r.Findings, &finding.Finding{Rule: "new", Level: finding.Error, Verdict: finding.Fail})
		r = format.New(r.Findings, nil)
		r.Without(known)
		if r.Known != 2 || r.Count(finding.Error) != 1 || r.Count(finding.Warning) != 0 || r.Worst() != finding.Error || len(r.Findings) != 4 {
			t.Errorf("%s: %d known, %d findings", name, r.Known, len(r.Findings))
		}
	}
	for text, want := range map[string]string{
		"{": "unexpected end of JSON input", "{}": "it has no list of findings", `{"format_version":"9","findings":[]}`: `its format version is "9", and this program reads "1.0"`,
	} {
		if _, err := format.ReadBaseline([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Equal findings give equal documents, in whichever order they were found.
func TestStable(t *testing.T) {
	t.Parallel()
	write := func(r *format.Report) string {
		var b bytes.Buffer
		for _, err := range []error{format.JSON(&b, r), format.SARIF(&b, r, "p", "v"), format.JUnit(&b, r, finding.Warning), format.WriteBaseline(&b, r)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	a, again := sample(), sample()
	for i, j := 0, len(again.Findings)-1; i < j; i, j = i+1, j-1 {
		again.Findings[i], again.Findings[j] = again.Findings[j], again.Findings[i]
	}
	again = format.New(again.Findings, []format.Rule{{Name: "a", Finds: "nothing", Level: finding.Error}})
	if x, y := write(a), write(again); x != y {
		t.Errorf("the order of the findings changes the documents:\n%s\n%s", x, y)
	}
}
