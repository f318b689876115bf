package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/state/backend/backendtest/servers"
)

// A guide is a page of the documentation whose blocks and commands are tested.
type guide struct {
	t         *testing.T
	text      string
	dir, home string
	env       []string
}

func openGuide(t *testing.T, name string, env ...string) *guide {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return &guide{t: t, text: string(text), dir: t.TempDir(), home: t.TempDir(), env: env}
}

// block returns the piece of configuration with index n.
func (g *guide) block(n int) string {
	g.t.Helper()
	all := regexp.MustCompile("(?s)```hcl\n(.*?)```").FindAllStringSubmatch(g.text, -1)
	if n >= len(all) {
		g.t.Fatalf("the page has %d pieces of configuration", len(all))
	}
	return all[n][1]
}

// rows returns the cells of the table with a heading, without code marks.
func (g *guide) rows(head string) [][]string {
	g.t.Helper()
	_, table, ok := strings.Cut(g.text, head+"\n|---")
	if !ok {
		g.t.Fatalf("the page has no table %q", head)
	}
	var out [][]string
	for line := range strings.Lines(table) {
		if out != nil && !strings.HasPrefix(line, "|") {
			break
		}
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | "); len(cells) > 1 {
			out = append(out, cells)
		}
	}
	return out
}

func (g *guide) write(name, text string) {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		g.t.Fatal(err)
	}
}

// run runs the program below the directory of the guide. answer is its input.
func (g *guide) run(below, answer string, args ...string) string {
	g.t.Helper()
	var out sys.Buffer
	env := append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.home, "TMPDIR=" + os.TempDir()}, g.env...)
	code, err := runProgram(g.t.Context(), filepath.Join(g.dir, below), env, strings.NewReader(answer), &out, &out, args...)
	if err != nil || code != 0 {
		g.t.Errorf("terrace %s: %d, %v\n%s", strings.Join(args, " "), code, err, out.String())
	}
	return out.String()
}

// says runs a command that the page must contain.
func (g *guide) says(below, answer, command string) string {
	g.t.Helper()
	if !strings.Contains(g.text, command) {
		g.t.Errorf("the page does not say %q", command)
	}
	return g.run(below, answer, strings.Fields(strings.TrimPrefix(command, "terrace "))...)
}

func amazon(t *testing.T, buckets ...string) (*servers.AWSServer, []string) {
	s := servers.AWS(t)
	for _, b := range buckets {
		s.Bucket(b)
	}
	return s, []string{"AWS_ENDPOINT_URL=" + s.URL, "AWS_ACCESS_KEY_ID=" + servers.AccessKey, "AWS_SECRET_ACCESS_KEY=" + servers.SecretKey, "AWS_EC2_METADATA_DISABLED=true"}
}

// TestBackendsGuide follows the guide to backends, on S3.
func TestBackendsGuide(t *testing.T) {
	t.Parallel()
	_, env := amazon(t)
	g := openGuide(t, "backends.md", env...)
	unit := "remote_state {\n  backend  = \"s3\"\n  generate = { path = \"backend.tf\", if_exists = \"overwrite\" }\n  config = {\n    bucket         = \"acme-states\"\n    key            = \"NAME.tfstate\"\n    region         = \"eu-central-1\"\n    use_path_style = true\n  }\n}\n"
	for _, name := range []string{"old", "new"} {
		g.write("live/"+name+"/terragrunt.hcl", strings.Replace(unit, "NAME", name, 1))
		g.write("live/"+name+"/main.tf", "output \"o\" {\n  value = 1\n}\n")
	}
	if !strings.Contains(g.text, "`backend bootstrap` (`--all`") || !strings.Contains(g.text, "`backend migrate OLD NEW`") || !strings.Contains(g.text, "`backend delete`") {
		t.Error("the page does not tell of the commands for stores of units")
	}
	if out := g.run("live", "", "backend", "bootstrap", "--all"); !strings.Contains(out, "versioning") || !strings.Contains(out, "public access") {
		t.Errorf("the bucket is not made as the page says:\n%s", out)
	}

	const rest = "variable \"stage\" {\n  default = \"prod\"\n}\nresource \"terraform_data\" \"a\" {}\n"
	first := g.block(0)
	g.write("prod.s3.tfbackend", "use_path_style = true\n")
	g.write("main.tf", first+rest)
	const start = "terrace init -backend-config=bucket=acme-states -backend-config=prod.s3.tfbackend"
	g.says(".", "", start)
	g.run(".", "", "apply", "-auto-approve")
	found := g.says(".", "", "terrace backend doctor")
	_, list, _ := strings.Cut(g.text, "    terrace backend doctor\n")
	list, _, _ = strings.Cut(list, "| kind |")
	terms := regexp.MustCompile(`(?m)^- .*$`).FindAllString(list, -1)
	if len(terms) < 8 {
		t.Errorf("the page tells of %d things that are looked at", len(terms))
	}
	for _, line := range terms {
		for _, m := range regexp.MustCompile(`\*\*([^*]+)\*\*`).FindAllStringSubmatch(line, -1) {
			if !strings.Contains(found, m[1]) {
				t.Errorf("backend doctor says nothing of %q:\n%s", m[1], found)
			}
		}
	}
	for i, row := range g.rows("| you want to | run |") {
		g.write("main.tf", strings.Replace(first, "network/", fmt.Sprintf("network%d/", i), 1)+rest)
		command := strings.Trim(strings.TrimSpace(row[1]), "`")
		answer := ""
		if strings.Contains(command, "-migrate-state") {
			answer = "yes\n"
		}
		g.run(".", answer, append(strings.Fields(command), strings.Fields(start)[2:]...)...)
		taken := strings.Contains(g.run(".", "", "plan"), "No changes")
		if want := !strings.Contains(command, "-reconfigure"); taken != want {
			t.Errorf("%s: the state was taken along: %t", command, taken)
		}
	}

	g.run("live/old", "", "apply", "-auto-approve")
	g.run("live", "", "backend", "migrate", "old", "new")
	if out := g.run("live/new", "", "output", "o"); strings.TrimSpace(out) != "1" {
		t.Errorf("the state was not moved:\n%s", out)
	}
	g.run("live/new", "", "backend", "delete", "--non-interactive")
}

// TestEncryptionGuide follows the guide to encryption.
func TestEncryptionGuide(t *testing.T) {
	t.Parallel()
	store, env := amazon(t, "acme-states")
	g := openGuide(t, "encryption.md", append(env, "PASSPHRASE=correct-horse-battery", "TF_VAR_passphrase=correct-horse-battery")...)
	const rest = "variable \"passphrase\" {\n  type      = string\n  sensitive = true\n}\nresource \"terraform_data\" \"a\" {}\n"
	g.write("main.tf", g.block(0)+rest)
	sealed := func() bool {
		text, err := os.ReadFile(filepath.Join(g.dir, "terraform.tfstate"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "encrypted_data")
	}
	g.run(".", "", "apply", "-auto-approve")
	if !sealed() {
		t.Error("the state is not encrypted")
	}
	g.run(".", "", "plan", "-out=p")
	g.run(".", "", "show", "p")

	// Each change between forms is tested from its beginning to its end, and without the
	// fallback afterwards.
	const methods = "  key_provider \"pbkdf2\" \"KEY\" {\n    passphrase = \"KEY-horse-battery-staple\"\n  }\n  method \"aes_gcm\" \"KEY\" {\n    keys = key_provider.pbkdf2.KEY\n  }\n"
	form := func(target string) {
		text := "terraform {\n  encryption {\n" + "  method \"unencrypted\" \"none\" {}\n"
		for _, key := range []string{"main", "old", "new"} {
			text += strings.ReplaceAll(methods, "KEY", key)
		}
		g.write("main.tf", text+"  state {\n"+target+"\n  }\n  }\n}\nresource \"terraform_data\" \"a\" {}\n")
	}
	begins := map[string]string{"in the clear": "method = method.unencrypted.none", "an old key": "method = method.aes_gcm.old", "encrypted": "method = method.aes_gcm.main"}
	ways := g.rows("| from | to | the target says until everything was applied once |")
	if len(ways) < 3 {
		t.Errorf("the page has %d ways", len(ways))
	}
	for _, way := range ways {
		if err := os.RemoveAll(filepath.Join(g.dir, "terraform.tfstate")); err != nil {
			t.Fatal(err)
		}
		begin := begins[strings.TrimSpace(way[0])]
		if begin == "" {
			t.Fatalf("%q is no form", way[0])
		}
		form(begin)
		g.run(".", "", "apply", "-auto-approve")
		lines := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(way[2], -1)
		end := lines[0][1]
		form(end + "\n" + regexp.MustCompile(`fallback \{ (.*) \}`).ReplaceAllString(lines[1][1], "fallback {\n$1\n}"))
		g.run(".", "", "apply", "-auto-approve")
		form(end)
		if out := g.run(".", "", "plan"); !strings.Contains(out, "No changes") {
			t.Errorf("from %q to %q:\n%s", way[0], way[1], out)
		}
		if want := !strings.Contains(end, "unencrypted"); sealed() != want {
			t.Errorf("from %q to %q: encrypted: %t", way[0], way[1], !want)
		}
	}

	g.write("live/root.hcl", strings.Replace(g.block(1), "config     = {", "config     = { region = \"eu-central-1\", use_path_style = true,", 1))
	g.write("live/a/terragrunt.hcl", "include \"root\" {\n  path = find_in_parent_folders(\"root.hcl\")\n}\n")
	g.write("live/a/main.tf", "output \"o\" {\n  value = 1\n}\n")
	g.run("live/a", "", "apply", "-auto-approve")
	// A slow machine adds lines about waiting for the store.
	if out := g.run("live/a", "", "output", "o"); !strings.HasSuffix("\n"+strings.TrimSpace(out), "\n1") {
		t.Errorf("the unit has no output:\n%s", out)
	}
	if text := store.Text(); !strings.Contains(text, "acme-states/a/terraform.tfstate") {
		t.Errorf("the state of the unit is not where the page says:\n%s", text)
	}
}
