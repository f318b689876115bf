package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
)

// TestPictures compares the pictures of the README with the current output of the program,
// from which they are drawn. -update draws them.
func TestPictures(t *testing.T) {
	cycle := t.TempDir()
	if err := os.WriteFile(filepath.Join(cycle, "main.tf"), []byte(`locals {
  subnet = "net-${local.zone}"
  zone   = terraform_data.lb.output
}
resource "terraform_data" "lb" {
  input = local.subnet
}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	estate := filepath.Join(t.TempDir(), "estate")
	if err := os.CopyFS(estate, os.DirFS(filepath.Join(examples, "estate"))); err != nil {
		t.Fatal(err)
	}
	live := filepath.Join(t.TempDir(), "live")
	for unit, needs := range map[string][]string{
		"vpc": nil, "dns": nil, "database": {"vpc"}, "cache": {"vpc"}, "queue": nil,
		"api": {"database", "cache", "queue"}, "worker": {"database", "queue"}, "web": {"api", "dns"},
	} {
		text := ""
		for _, n := range needs {
			text += fmt.Sprintf("dependency %q {\n  config_path = \"../%s\"\n}\n", n, n)
		}
		if err := os.MkdirAll(filepath.Join(live, "prod", unit), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(live, "prod", unit, "terragrunt.hcl"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []struct{ name, dir, words string }{
		{"estate", live, "dag graph --svg"},
		{"explain", filepath.Join(examples, "quickstart"), "explain local.tags"},
		{"cycle", cycle, "validate"},
		{"run", filepath.Join(estate, "live"), "run --all plan"},
	} {
		var out bytes.Buffer
		system := &sys.System{
			Dir: p.dir, Env: sys.Env{"HOME=" + cycle, "PATH=" + os.Getenv("PATH"), "FORCE_COLOR=1"}, Args: append([]string{"terrace"}, strings.Fields(p.words)...),
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Now: time.Now, Run: sys.Run,
			Terminal:   sys.Terminal{Width: func() int { return 0 }, Height: func() int { return 0 }},
			Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
			Executable: os.Executable, Host: func() string { return "" }, User: func() string { return "" },
		}
		cli.Main(context.Background(), system)
		text := took.ReplaceAllString(out.String(), "$1")
		want := picture("$ terrace "+p.words+"\n"+strings.TrimRight(text, "\n"), p.words)
		if lines := strings.Split(text, "\n"); len(lines) > 32 && p.name == "run" {
			want = picture("$ terrace "+p.words+"\n"+strings.Join(lines[:31], "\n")+"\n  …", p.words)
		}
		if strings.HasPrefix(text, "<svg") { // it is already a picture
			want = text
		}
		file := "../../docs/images/" + p.name + ".svg"
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what %q prints (%v): run go test ./internal/cli -run TestPictures -update", file, p.words, err)
		}
	}
}

// took matches the duration of a run.
var took = regexp.MustCompile(`(Run Summary  \d+ units)  \S+`)

var escape = regexp.MustCompile(`\x1b\[([0-9;]*)m`)

// picture draws text with terminal colors as SVG.
func picture(text, title string) string {
	const line, column, margin = 18, 7.83, 14
	colors := map[string]string{"31": "#ff8272", "32": "#7fd88f", "33": "#e7c664", "34": "#7aa6ff", "36": "#6fd3e0", "90": "#8b95a5"}
	lines := strings.Split(text, "\n")
	width := 0
	for _, l := range lines {
		width = max(width, len([]rune(escape.ReplaceAllString(l, ""))))
	}
	w, h := int(float64(width)*column)+2*margin, len(lines)*line+2*margin
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title">`+"\n", w, h, w, h)
	fmt.Fprintf(&b, "<title id=\"title\">terrace %s</title>\n<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#16202e\"/>\n", html.EscapeString(title))
	b.WriteString("<g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"13\" fill=\"#e6ebf2\">\n")
	color, bold := "", false
	for i, l := range lines {
		// Chromium does not inherit xml:space from a group.
		fmt.Fprintf(&b, `<text xml:space="preserve" x="%d" y="%d">`, margin, margin+line*i+13)
		part := func(s string) {
			if s == "" {
				return
			}
			style := ""
			if color != "" {
				style += ` fill="` + color + `"`
			}
			if bold {
				style += ` font-weight="bold"`
			}
			fmt.Fprintf(&b, "<tspan%s>%s</tspan>", style, html.EscapeString(s))
		}
		for l != "" {
			at := escape.FindStringSubmatchIndex(l)
			if at == nil {
				part(l)
				break
			}
			part(l[:at[0]])
			for code := range strings.SplitSeq(l[at[2]:at[3]], ";") {
				switch {
				case code == "0" || code == "":
					color, bold = "", false
				case code == "1":
					bold = true
				case code == "39":
					color = ""
				case code == "22":
					bold = false
				case colors[code] != "":
					color = colors[code]
				}
			}
			l = l[at[1]:]
		}
		b.WriteString("</text>\n")
	}
	return b.String() + "</g>\n</svg>\n"
}
