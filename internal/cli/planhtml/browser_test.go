package planhtml

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/plan"
)

// browser returns the path of a browser: that of TERRACE_TEST_BROWSER, or one in PATH.
func browser(t *testing.T) string {
	t.Helper()
	if name := os.Getenv("TERRACE_TEST_BROWSER"); name != "" {
		return name
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chrome-headless-shell"} {
		if found, err := exec.LookPath(name); err == nil {
			return found
		}
	}
	t.Skip("there is no chromium or chrome in PATH, and TERRACE_TEST_BROWSER names none")
	return ""
}

// dump opens a page and returns the document after its scripts have ended.
func dump(t *testing.T, program, page string, flags ...string) string {
	t.Helper()
	dir := workshop(t)
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute)
	defer cancel()
	args := append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
		"--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1500,900", "--user-data-dir=" + filepath.Join(dir, "profile"), "--dump-dom",
	}, flags...)
	cmd := exec.CommandContext(ctx, program, append(args, "file://"+filepath.ToSlash(file))...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_CACHE_HOME="+dir)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %s\n%s", program, err, errs.String())
	}
	return out.String()
}

// workshop returns a directory for a browser. The cleanup retries, since a process of the
// browser may still write there after the others have ended.
func workshop(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "picture")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			if err := os.RemoveAll(dir); err == nil {
				return
			} else if time.Now().After(end) {
				t.Error(err)
				return
			}
		}
	})
	return dir
}

// walked is the result of testdata/walk.js.
type walked struct {
	Errors, Path                                         []string
	Dark, Right, Back, Hacked                            bool
	Rows, Boxes, Overlap, Cleared, ByAddress, ByInput    int
	Deferred, Dimmed, All, Kinds, Signs, Tiles, TabStops int
	Scripts, Asked, Views, ByFile, ByChange, Marked      int
	Smallest                                             float64
	Begin, Found, Where, Warnings, Triangles             string
	Causes                                               []string
	Hidden                                               bool
	Faint                                                map[string]string
}

var large = flag.Bool("large", false, "open the page of 1,000 units in a browser, too")

// TestBrowser operates the page by keyboard in a real browser, at several sizes, light and
// dark. It checks that all text is readable and that the page sends no requests.
func TestBrowser(t *testing.T) {
	program := browser(t)
	walk, err := os.ReadFile("testdata/walk.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		units int
		dark  bool
	}{{10, true}, {100, false}, {1000, true}} {
		t.Run(fmt.Sprintf("%d dark=%v", c.units, c.dark), func(t *testing.T) {
			t.Parallel()
			if c.units > 100 && !*large {
				t.Skip("SKIP: takes a minute; -large runs it")
			}
			page := written(t, sample(c.units))
			page = strings.Replace(page, "script-src '", "script-src '"+digest(walk)+"' '", 1)
			page = strings.Replace(page, "</body>", "<script>"+string(walk)+"</script></body>", 1)
			text := dump(t, program, page, map[bool]string{true: "--blink-settings=preferredColorScheme=0", false: "--blink-settings=preferredColorScheme=1"}[c.dark])
			var got walked
			if err := json.Unmarshal([]byte(html.UnescapeString(between(t, text, `<pre id="seen">`, "</pre>"))), &got); err != nil {
				t.Fatal(err)
			}
			got.check(t, c.units, c.dark)
		})
	}
}

func (got *walked) check(t *testing.T, units int, dark bool) {
	t.Helper()
	for what, bad := range map[string]bool{
		"there were errors": len(got.Errors) > 0, "the scheme is another": got.Dark != dark, "a name ran as a script": got.Hacked,
		"there are more scripts than three": got.Scripts != 3, "something was asked for": got.Asked != 0,
		"the list is not whole": got.Rows != units || got.Cleared != units || got.All != units, "the map is not whole": got.Boxes != units || got.Tiles != units,
		"text lies over text": got.Overlap > 0, "text is faint": len(got.Faint) > 0, "text is tiny": got.Smallest < 12,
		"right does not lead to the right": !got.Right || !got.Back, "deferred is not found by address": got.ByAddress != units/10,
		"inputs are not found": got.ByInput != units, "files are not found": got.ByFile != units || got.Where != "input tags",
		"what stands in changes is not found": got.ByChange != units/5 || got.Marked == 0, "boxes lie over each other": got.Views != 3, "deferred is not filtered": got.Deferred != units/10 || got.Dimmed != units-units/10,
		"kinds share signs": got.Kinds != 9 || got.Signs != got.Kinds, "there is not one tab stop each for map and list": got.TabStops != 2,
		"a click shows no cause":          len(got.Causes) != 1 || !strings.HasPrefix(got.Causes[0], "# common.hcl:1") || !got.Hidden,
		"warnings are not merged":         got.Warnings != fmt.Sprintf("in %d units", units/10) && (units != 10 || !strings.HasSuffix(got.Warnings, "unit-0004")),
		"a closed group looks open":       got.Triangles != "" && got.Triangles != `"▾""▸"`,
		"the search found something else": !strings.HasPrefix(got.Found, "1 of "),
	} {
		if bad {
			t.Error(what)
		}
	}
	want := []string{
		"slash: q | The whole estate", "down: list 1 | ~live/region-1/unit-0001", "enter: chosen | ~live/region-1/unit-0001",
		"out of details: list 1 | ~live/region-1/unit-0001", fmt.Sprintf("out of unit: list 1 | 1 unit of %d", units), "to the map: map 1 | The whole estate",
	}
	for i, w := range want {
		if i >= len(got.Path) || got.Path[i] != w {
			t.Errorf("step %d led elsewhere than to %q", i, w)
		}
	}
	if t.Failed() {
		t.Logf("%+v", *got)
	}
}

// TestBrowserPolicy checks that the page's own security policy allows its script.
func TestBrowserPolicy(t *testing.T) {
	text := dump(t, browser(t), written(t, sample(10)))
	if n := strings.Count(text, `role="option"`); n != 10 {
		t.Errorf("the page shows %d units, want 10", n)
	}
	if text := dump(t, browser(t), written(t, &Page{Title: "none"})); !strings.Contains(text, "Nothing changes.") || !strings.Contains(text, "0 units") {
		t.Error("the page of no units is empty")
	}
}

// A page that compares revisions speaks of what differs. With a single directory, it has neither a
// list nor a map.
func TestBrowserCompares(t *testing.T) {
	box := Box{Name: "net", State: Planned, Summary: "1 removed.", Counts: plan.Counts{Destroy: 1}, Changes: []Change{{Kind: Line, Op: "update", Text: "# main.tf:3 (removed)\n  - terraform_data.gone\n"}}}
	other := box
	other.Name = "app"
	for _, tt := range []struct {
		boxes      []Box
		have, lack []string
	}{
		{[]Box{box}, []string{`<body class="single">`, `id="chosen">All differences</h2>`, "- terraform_data.gone"}, []string{"</span>destroys 1"}},
		{[]Box{box, other}, []string{`id="chosen">All differences</h2>`, "</span>removes 2", "the same in 2 modules<", ">2 modules</p>"}, []string{"</span>destroys 2", `class="single"`}},
	} {
		text := dump(t, browser(t), written(t, &Page{Title: "Values that differ", Compares: true, Noun: "module", Units: tt.boxes}))
		for _, s := range tt.have {
			if !strings.Contains(text, s) {
				t.Errorf("%q is not on the page of %d boxes", s, len(tt.boxes))
			}
		}
		for _, s := range tt.lack {
			if strings.Contains(text, s) {
				t.Errorf("%q is on the page of %d boxes", s, len(tt.boxes))
			}
		}
	}
}
