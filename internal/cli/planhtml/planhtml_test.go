package planhtml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/internal/base/digraph"
	"github.com/terrace-iac/terrace/internal/cli/view"
	"github.com/terrace-iac/terrace/plan"
)

const hostile = `</script><script>window.hacked=1</script><!--<script>&amp;"'{{script}}` + "\u2028\u202e"

// sample returns an estate of n units in layers, with units in every state.
func sample(n int) *Page {
	p := &Page{Title: fmt.Sprintf("Plan of %d units in <live>", n), Command: "run --all plan", Made: "today", Program: "Terrace 1"}
	for i := range n {
		u := Box{Name: fmt.Sprintf("live/region-%d/unit-%04d", i%7, i), State: Planned, Summary: "no changes"}
		if i >= n/5 && i > 0 {
			u.Needs = []int{i / 3, i / 5}
		}
		u.Inputs = []Input{
			{Name: "name", Value: fmt.Sprintf("%q", u.Name), Steps: []Step{{Text: "inputs.name", File: u.Name + "/terragrunt.hcl", Line: 7, Column: 3, Role: "unit file"}}},
			{Name: "tags", Value: "{}", Steps: []Step{{Text: "merged", File: u.Name + "/terragrunt.hcl", Line: 9, Column: 3, Role: "unit file"}, {Text: "replaced", File: "live/root.hcl", Line: 2, Column: 1, Role: `include "root"`, Replaced: true}}},
		}
		add := Change{Resource, "create", "\n  # test_thing.a will be created\n  + resource \"test_thing\" \"a\" {\n      + id = (known after apply)\n    }\n", nil}
		switch i % 10 {
		case 0:
			u.Summary, u.Counts, u.Changes = "plan: 1 to add", plan.Counts{Add: 1}, []Change{add, {Output, "", "\n  + id = (known after apply)\n", nil}}
		case 1:
			u.Summary, u.Counts = "plan: 1 to change", plan.Counts{Change: 1}
			u.Changes = []Change{{Resource, "update", fmt.Sprintf("\n  # test_thing.b[%d] will be updated in-place\n  ~ resource \"test_thing\" \"b\" {\n      ~ size = 1 -> %d\n    }\n", i, i), []view.LineCause{{Line: 3, Text: fmt.Sprintf("common.hcl:%d", i%20)}}}}
		case 2:
			u.Summary, u.Counts = "plan: 1 to add, 1 to destroy", plan.Counts{Add: 1, Destroy: 1}
			u.Changes = []Change{{Resource, "delete-create", "\n  # test_thing.c must be replaced\n-/+ resource \"test_thing\" \"c\" {\n    }\n", nil}}
		case 3:
			u.Summary, u.Waits = "1 deferred", []Wait{{What: "test_thing.late", Why: "which instances there are is not known yet", At: "main.tf:3", For: []Source{{Unit: p.Units[0].Name, Ref: "dependency.a.outputs.id", Input: "ids", At: "x.hcl:4"}}}}
		case 4:
			u.State, u.Summary, u.Messages = Failed, "failed: No", []Message{{true, "\nError: No\n\n  on main.tf line 1:\n"}, {false, "\nWarning: Odd\n"}}
		case 5:
			u.State, u.Summary = NotRun, "not run: it needs another, which failed"
		case 6:
			u.State, u.Summary = Excluded, "excluded: exclude block"
		case 7:
			u.Name = fmt.Sprintf("live/%d/%s", i, hostile)
			u.Changes, u.Counts = []Change{add, {Drift, "", "\nNote: Objects have changed outside\n\n  # x has changed\n", nil}}, plan.Counts{Add: 1}
		case 8:
			u.State, u.Summary = Outside, "outside of the estate"
		}
		p.Units = append(p.Units, u)
	}
	return p
}

func written(t *testing.T, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func between(t *testing.T, text, from, to string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, from)
	inside, _, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("the page has nothing between %q and %q", from, to)
	}
	return inside
}

const dataTag = `<script type="application/json" id="data">`

// TestFrame checks that names cannot end the data element, that the page refers to no external
// resource, and that its policy matches its script and style.
func TestFrame(t *testing.T) {
	p := sample(30)
	p.Title = hostile
	text := written(t, p)
	for what, want := range map[string]int{"<script": 2, "</script": 2, "<!--": 0, "<style": 1, "\u2028": 0, "\u202e": 0} {
		if n := strings.Count(strings.ToLower(text), what); n != want {
			t.Errorf("%q stands %d times in the page, want %d", what, n, want)
		}
	}
	for _, m := range regexp.MustCompile(`(?i)https?://[^"' ]*|@import|\bsrc\s*=|\bhref\s*=|innerHTML|outerHTML|insertAdjacent|\beval\b|url\([^#]`).FindAllString(text, -1) {
		if m != "http://www.w3.org/2000/svg" {
			t.Errorf("the page has %q in it", m)
		}
	}
	policy := between(t, text, `Content-Security-Policy" content="`, `"`)
	for _, part := range []string{between(t, text, "<style>", "</style>"), between(t, text, "<script>", "</script>")} {
		if !strings.Contains(policy, digest([]byte(part))) {
			t.Errorf("the policy %s does not allow what begins with %.40q", policy, part)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none';") {
		t.Errorf("the policy is %s", policy)
	}
}

// TestData decodes the data in the same way as the page's script.
func TestData(t *testing.T) {
	p := sample(30)
	var got document
	if err := json.Unmarshal([]byte(between(t, written(t, p), dataTag, "</script>")), &got); err != nil {
		t.Fatal(err)
	}
	spots := map[[2]int]bool{}
	for i, u := range got.Units {
		want := &p.Units[i]
		back := Box{Name: u.Name, State: u.State, Summary: got.Texts[u.Summary], Needs: u.Needs}
		if back.State == "" {
			back.State = Planned
		}
		for k, m := range u.Messages {
			back.Messages = append(back.Messages, Message{slices.Contains(u.Errors, k), "\n" + got.join(m) + "\n"})
		}
		for k, n := range u.Changes {
			c := got.Changes[n]
			if c.Kind != Resource {
				c.Op = ""
			}
			lines := strings.Split(got.join(c.Lines), "\n")
			var causes []view.LineCause
			if u.Causes != nil {
				for x, list := 0, got.Causes[u.Causes[k]]; x < len(list); x += 2 {
					causes = append(causes, view.LineCause{Line: list[x] + 1, Text: got.Texts[list[x+1]]}) // below the empty line
				}
			}
			back.Changes = append(back.Changes, Change{c.Kind, c.Op, "\n" + strings.Join(lines, "\n") + "\n", causes})
		}
		for _, w := range u.Waits {
			x := Wait{What: got.Texts[w.What], Why: got.Texts[w.Why], At: got.Texts[w.At]}
			for _, f := range w.For {
				x.For = append(x.For, Source{Unit: got.Units[f[0]].Name, Ref: got.Texts[f[1]], Input: got.Texts[f[2]], At: got.Texts[f[3]]})
			}
			back.Waits = append(back.Waits, x)
		}
		for _, in := range u.Inputs {
			x := Input{Name: got.Texts[in.Name], Value: got.Texts[in.Value]}
			for _, n := range in.Steps {
				s := got.Steps[n]
				x.Steps = append(x.Steps, Step{got.Texts[s[0]], got.Texts[s[1]], s[2], s[3], got.Texts[s[4]], s[5] == 1})
			}
			back.Inputs = append(back.Inputs, x)
		}
		if c := u.Counts; c != nil {
			back.Counts = plan.Counts{Add: c[0], Change: c[1], Destroy: c[2], Import: c[3], Forget: c[4]}
		}
		clone := *want
		clone.Name = digraph.Clean(want.Name)
		clone.Inputs = nil
		for _, in := range want.Inputs {
			in.Value = digraph.Clean(in.Value)
			in.Steps = append([]Step{}, in.Steps...)
			for k := range in.Steps {
				in.Steps[k].File = digraph.Clean(in.Steps[k].File)
			}
			clone.Inputs = append(clone.Inputs, in)
		}
		if diff := cmp.Diff(clone, back); diff != "" {
			t.Errorf("unit %d came back otherwise (-want +got):\n%s", i, diff)
		}
		if spots[u.At] {
			t.Errorf("two units stand at %v", u.At)
		}
		spots[u.At] = true
		for _, n := range u.Needs {
			if n != i && got.Units[n].At[0] >= u.At[0] {
				t.Errorf("unit %d stands in column %d, and %d, which it needs, in %d", i, u.At[0], n, got.Units[n].At[0])
			}
		}
	}
	if n := len(got.Changes); n != 7 { // the others are equal
		t.Errorf("there are %d different changes, want 7", n)
	}
}

func (d *document) join(lines []int) string {
	var all []string
	last := 0
	for _, n := range lines {
		if n >= 0 {
			last = n
			all = append(all, d.Texts[n])
		}
		for ; n < 0; n++ {
			last++
			all = append(all, d.Texts[last])
		}
	}
	return strings.Join(all, "\n")
}

// TestLines checks that a long text that is adjacent in the table needs two numbers, and that
// equal pages are equal byte by byte.
func TestLines(t *testing.T) {
	e := &encoder{texts: map[string]int{}}
	e.text("")
	var long []string
	for i := range 2000 {
		long = append(long, fmt.Sprint("line ", i))
	}
	if got := e.linesOf(long); !slices.Equal(got, []int{1, -1999}) {
		t.Errorf("new lines are %v", got)
	}
	changed := slices.Clone(long)
	changed[1000] = "other"
	if got := e.linesOf(changed); !slices.Equal(got, []int{1, -999, 2001, 1002, -998}) {
		t.Errorf("changed lines are %v", got)
	}
	if got := e.linesOf([]string{"line 3", "line 3", "line 2"}); !slices.Equal(got, []int{4, 4, 3}) {
		t.Errorf("lines in another order are %v", got)
	}
	if first, second := written(t, sample(50)), written(t, sample(50)); first != second {
		t.Error("the same page is written in two ways")
	}
}

// TestTitles checks the titles of changes.
func TestTitles(t *testing.T) {
	for _, c := range []struct {
		in        Change
		title, op string
	}{
		{Change{Resource, "update", "\n  # a.b will be updated\n  ~ resource", nil}, "a.b will be updated", "update"},
		{Change{Output, "", "\n  - old = \"x\" -> null\n", nil}, "old", "delete"},
		{Change{Output, "", "\n  ~ list = [\n      + 1,\n    ]\n", nil}, "list", "update"},
		{Change{Drift, "", "\nNote: Objects\n", nil}, "objects changed outside", ""},
		{Change{Resource, "read", "odd", nil}, "odd", "read"},
	} {
		lines := strings.Split(strings.Trim(c.in.Text, "\n"), "\n")
		if title, op := titleOf(c.in, lines); title != c.title || op != c.op {
			t.Errorf("%q is called %q, %q", c.in.Text, title, op)
		}
	}
}

// TestSize checks that text that units share is written once.
func TestSize(t *testing.T) {
	small, large := len(written(t, sample(10))), len(written(t, sample(1000)))
	if each := (large - small) / 990; each > 400 {
		t.Errorf("a unit takes %d bytes of the page", each)
	}
}

func TestWrong(t *testing.T) {
	if err := Write(&bytes.Buffer{}, &Page{Units: []Box{{Name: "a", Needs: []int{1}}}}); err == nil {
		t.Error("a unit that is not there can be needed")
	}
	if written(t, &Page{}) == "" {
		t.Error("an estate without units has no page")
	}
}

func TestSharedFolder(t *testing.T) {
	for _, c := range []struct{ want, names string }{
		{"", "a"}, {"", "a b"}, {"live/", "live/a live/b"}, {"live/eu/", "live/eu/a live/eu/west/b"}, {"", "live/a ../x"}, {"", "l/a live/b"}, {"x/", "x/a x/a/b"},
	} {
		var units []Box
		for name := range strings.FieldsSeq(c.names) {
			units = append(units, Box{Name: name})
		}
		if got := sharedFolder(units); got != c.want {
			t.Errorf("%s share %q, want %q", c.names, got, c.want)
		}
	}
}
