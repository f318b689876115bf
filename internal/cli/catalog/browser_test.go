package catalog

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli/screen"
	"github.com/terrace-iac/terrace/internal/estate/catalog"
)

func components() []catalog.Component {
	return []catalog.Component{
		{Kind: catalog.Module, Title: "VPC", Description: "A network.", ComponentSource: "r//vpc", Doc: "# VPC\n\x1b[31mred\x1b[0m\n" + strings.Repeat("line\n", 30) + "the end\n", Tags: []string{"unit"}},
		{Kind: catalog.Module, Title: "DB", ComponentSource: "r//db"},
		{Kind: catalog.Unit, Title: "App", ComponentSource: "r//app"},
		{Kind: catalog.Template, Title: "T", ComponentSource: "r//t"},
		{Kind: catalog.Stack, Title: "Web", Description: "All of it, in a stack.", ComponentSource: "r//web"},
	}
}

// play types keys into a browser of 60 columns and 10 rows. It returns the chosen component,
// the last screen, and all output.
func play(t *testing.T, keys ...string) (chosen, shown, all string) {
	t.Helper()
	fake := sys.Test(t.TempDir())
	restored := 0
	fake.Terminal.Width, fake.Terminal.Height = func() int { return 60 }, func() int { return 10 }
	fake.Terminal.Keys = func() (<-chan string, func() error, error) {
		c := make(chan string, len(keys))
		for _, k := range keys {
			c <- k
		}
		close(c)
		return c, func() error { restored++; return nil }, nil
	}
	b := &browser{all: components(), note: "1 source failed"}
	sc, err := screen.Open(fake.System, fake.Out)
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.show(context.Background(), sc)
	if err != nil {
		t.Fatal(err)
	}
	if err := sc.Close(); err != nil {
		t.Fatal(err)
	}
	all = fake.Out.String()
	if restored != 1 || !strings.HasSuffix(all, "\x1b[?7h\x1b[?25h\x1b[?1049l") {
		t.Errorf("the terminal is not put back: %d times, %q", restored, all[max(0, len(all)-40):])
	}
	if got != nil {
		chosen = got.Title
	}
	screens := strings.Split(all, "\x1b[H")
	return chosen, regexp.MustCompile(`\x1b\[[?0-9;]*[a-zA-Z]|\r`).ReplaceAllString(screens[len(screens)-1], ""), all
}

func TestBrowser(t *testing.T) {
	for _, test := range []struct {
		name   string
		keys   []string
		chosen string
		shows  []string
		hides  []string
	}{
		{name: "the first screen", shows: []string{"> module    VPC", "[unit] A network.", "  module    DB", "1 source failed"}, hides: []string{"Web"}},
		{name: "down and use", keys: []string{"j", "\x1b[B", "s"}, chosen: "App"},
		{name: "up from the top", keys: []string{"k", "\x1b[A", "s"}, chosen: "VPC"},
		{name: "in one chunk", keys: []string{"jjs"}, chosen: "App"},
		{name: "a sequence in two chunks", keys: []string{"\x1b[", "B", "s"}, chosen: "DB"},
		{name: "the end, scrolled", keys: []string{"\x1b[F"}, shows: []string{"> stack     Web", "5 of 5"}, hides: []string{"VPC"}},
		{name: "a page", keys: []string{"\x1b[6~", "k", "s"}, chosen: "App"},
		{name: "end and home", keys: []string{"\x1b[4~\x1b[1~s"}, chosen: "VPC"},
		{name: "templates are not used", keys: []string{"\t", "s"}, shows: []string{"> template  T", "Templates are not rendered"}},
		{name: "tags count as kinds", keys: []string{"\t\t\t"}, shows: []string{"VPC", "App", "1 of 2"}},
		{name: "tabs go round", keys: []string{"\x1b[Z", "\x1b[Bs"}, chosen: "DB"},
		{name: "search", keys: []string{"/", "sta", "\x7f\x7f", "tack", "\r", "s"}, chosen: "Web"},
		{name: "letters of a search are no keys", keys: []string{"/q"}, shows: []string{"/q", "Nothing here."}},
		{name: "a search ends", keys: []string{"/zzz\x1b"}, shows: []string{"VPC", "1 of 5"}},
		{name: "a search of one tab", keys: []string{"/web\r\t\x1b[Z"}, shows: []string{"/web", "1 of 1"}},
		{name: "nothing to use", keys: []string{"/zzz\rs"}, shows: []string{"Nothing here."}},
		{name: "read", keys: []string{"\r"}, shows: []string{"# VPC", "1 to 7 of 33 lines"}, hides: []string{"DB"}},
		{name: "read to the end", keys: []string{"\r\x1b[F"}, shows: []string{"the end", "27 to 33 of 33"}},
		{name: "read and back", keys: []string{"\r\x1b", "\r", "q"}, shows: []string{"> module    VPC"}},
		{name: "read and use", keys: []string{"j\rs"}, chosen: "DB"},
		{name: "no README", keys: []string{"j\r"}, shows: []string{"There is no README."}},
		{name: "help", keys: []string{"?"}, shows: []string{"page down"}},
		{name: "help ends", keys: []string{"?x"}, shows: []string{"> module    VPC"}},
		{name: "leave", keys: []string{"q", "s"}},
		{name: "leave at once", keys: []string{"/\x03", "s"}},
		{name: "another size", keys: []string{"", "s"}, chosen: "VPC"},
	} {
		t.Run(test.name, func(t *testing.T) {
			chosen, shown, all := play(t, test.keys...)
			if chosen != test.chosen {
				t.Errorf("chosen %q, want %q", chosen, test.chosen)
			}
			for _, want := range test.shows {
				if !strings.Contains(shown, want) {
					t.Errorf("%q is not shown:\n%s", want, shown)
				}
			}
			for _, not := range test.hides {
				if strings.Contains(shown, not) {
					t.Errorf("%q is shown:\n%s", not, shown)
				}
			}
			if strings.Contains(all, "\x1b[31m") {
				t.Error("what a README writes to the terminal is not taken out")
			}
			if rows := strings.Split(shown, "\n"); len(rows) > 10 || slices.ContainsFunc(rows, func(r string) bool { return len([]rune(r)) > 60 }) {
				t.Errorf("larger than the screen:\n%s", shown)
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	fake := sys.Test(t.TempDir())
	fake.Terminal.Width, fake.Terminal.Height = func() int { return 60 }, func() int { return 10 }
	restored := false
	fake.Terminal.Keys = func() (<-chan string, func() error, error) {
		return make(chan string), func() error { restored = true; return errors.New("gone") }, nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sc, err := screen.Open(fake.System, fake.Out)
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := (&browser{all: components()}).show(ctx, sc)
	if err == nil {
		err = sc.Close()
	}
	if chosen != nil || err == nil || !restored || !strings.HasSuffix(fake.Out.String(), "\x1b[?1049l") {
		t.Errorf("chosen %v, %v, restored %v", chosen, err, restored)
	}
}

func TestWebPage(t *testing.T) {
	for repo, want := range map[string]string{
		"https://github.com/acme/x.git":        "https://github.com/acme/x/tree/v1",
		"ssh://git@gitlab.com/acme/sub/x.git":  "https://gitlab.com/acme/sub/x/-/tree/v1",
		"https://user:pw@bitbucket.org/acme/x": "https://bitbucket.org/acme/x/src/v1",
		"https://git.example.org/x":            "",
		"":                                     "",
	} {
		if got := webPage(repo, "v1"); got != want {
			t.Errorf("%s: %q, want %q", repo, got, want)
		}
	}
}
