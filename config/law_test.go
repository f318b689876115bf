package config

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/terrace-iac/terrace/diag"
)

// The laws of merging, tested with random directories:
//
//   - the order in which the file system lists files is irrelevant;
//   - so is the order of blocks in base files, and their distribution over files;
//   - an empty override changes nothing;
//   - overriding with the whole base only changes origins;
//   - several override files have the same effect as their text in one file;
//   - the printed module can be loaded and has the same meaning.

func FuzzLaws(f *testing.F) {
	for i := range uint64(40) {
		f.Add(i, i*7919)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		w := &writer{rand: rand.New(rand.NewPCG(a, b))}
		base := w.fragment(true)
		over := []string{w.fragment(false), w.fragment(false), w.fragment(false)}
		files := map[string]string{"main.tf": base, "a_override.tf": over[0], "b_override.tf": over[1], "c_override.tf": over[2]}
		if w.rand.IntN(2) == 0 {
			files["b_override.tf.json"] = w.asJSON(t, over[1])
			delete(files, "b_override.tf")
		}
		m, ds := w.load(files)
		if ds.HasErrors() {
			t.Fatalf("%v\n%v", ds.Err(), files)
		}
		want := meaning(t, m)
		roundTrip(t, m)
		law := func(name string, files map[string]string) {
			t.Helper()
			m, ds := w.load(files)
			if ds.HasErrors() {
				t.Fatalf("%s: %v\n%v", name, ds.Err(), files)
			}
			if diff := cmp.Diff(want, meaning(t, m)); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%v", name, diff, files)
			}
		}
		law("order of the listing", files)

		law("order of blocks and their files", w.scattered(files))

		files["0_override.tf"] = emptyOverride()
		files["zz_override.tf"] = emptyOverride()
		files["zzz_override.tf.json"] = "{}"
		law("empty override", files)
		delete(files, "0_override.tf")
		delete(files, "zz_override.tf")
		delete(files, "zzz_override.tf.json")

		files["0_override.tf"] = base
		law("override with the whole base", files)
		delete(files, "0_override.tf")

		if files["b_override.tf"] != "" {
			law("compounding is concatenation", map[string]string{"main.tf": base, "override.tf": strings.Join(over, "\n")})
		}
	})
}

// writer generates random configuration.
type writer struct {
	rand  *rand.Rand
	value int
}

// load loads files that the file system lists in a random order.
func (w *writer) load(files map[string]string) (*Module, diag.List) {
	return Load(".", Options{FS: shuffled{w.rand, files}})
}

type shuffled struct {
	rand  *rand.Rand
	files map[string]string
}

func (s shuffled) ReadFile(name string) ([]byte, error) {
	return []byte(s.files[filepath.Base(name)]), nil
}

func (s shuffled) ReadDir(string) ([]fs.DirEntry, error) {
	all := fstest.MapFS{}
	for name, text := range s.files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	entries, err := all.ReadDir(".")
	s.rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	return entries, err
}

// scattered distributes the base blocks over several files in a random order.
func (w *writer) scattered(files map[string]string) map[string]string {
	out := maps.Clone(files)
	delete(out, "main.tf")
	var blocks []string
	for line := range strings.Lines(files["main.tf"]) {
		if slices.ContainsFunc(headers, func(h header) bool { return line == h.text+" {\n" }) || line == "locals {\n" {
			blocks = append(blocks, "")
		}
		blocks[len(blocks)-1] += line
	}
	w.rand.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
	for _, b := range blocks {
		out[fmt.Sprintf("base%d.tf", w.rand.IntN(3))] += b
	}
	return out
}

// asJSON converts a fragment to JSON.
func (w *writer) asJSON(t *testing.T, text string) string {
	m, _ := LoadFiles(".", map[string][]byte{"main.tf": []byte(text)}, Options{})
	return printed(t, m, PrintOptions{JSON: true})
}

type header struct {
	text string
	body func(*writer) string
}

// headers are the objects of every base, each with the function that writes its content.
var headers = []header{
	{`resource "x" "a"`, (*writer).resource},
	{`resource "x" "b"`, (*writer).resource},
	{`data "x" "a"`, (*writer).provided},
	{`module "m"`, (*writer).call},
	{`provider "x"`, (*writer).provided},
	{`variable "v"`, (*writer).variable},
	{`output "o"`, (*writer).output},
	{`terraform`, (*writer).terraform},
}

// fragment writes each object at most once. The base contains all of them.
func (w *writer) fragment(base bool) string {
	var b strings.Builder
	order := w.rand.Perm(len(headers))
	if base {
		slices.Sort(order)
	}
	for _, i := range order {
		if base || w.maybe() {
			fmt.Fprintf(&b, "%s {\n%s}\n", headers[i].text, headers[i].body(w))
		}
	}
	if base {
		b.WriteString("locals {\n  a = 0\n  b = 0\n  c = 0\n}\n")
	} else {
		b.WriteString("locals {\n" + w.locals() + "}\n")
	}
	return b.String()
}

func emptyOverride() string {
	var b strings.Builder
	for _, h := range headers {
		fmt.Fprintf(&b, "%s {\n}\n", h.text)
	}
	return b.String()
}

func (w *writer) maybe() bool { return w.rand.IntN(2) == 0 }

// next returns a value that was not used before.
func (w *writer) next() string {
	w.value++
	switch w.rand.IntN(6) {
	case 0:
		return fmt.Sprintf(`"s%d"`, w.value)
	case 1:
		return fmt.Sprintf(`"t-${var.v}-%d"`, w.value)
	case 2:
		return fmt.Sprintf("{ k = %d }", w.value)
	case 3:
		return fmt.Sprintf("[%d, var.v]", w.value)
	case 4:
		return fmt.Sprintf("f(%d)", w.value)
	default:
		return fmt.Sprint(w.value)
	}
}

// some writes some of the lines, in which %s is a value.
func (w *writer) some(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		if w.rand.IntN(3) == 0 {
			b.WriteString(strings.ReplaceAll(l, "%s", w.next()) + "\n")
		}
	}
	return b.String()
}

// provided writes arguments of a provider: each name in one of its forms.
func (w *writer) provided() string {
	var b strings.Builder
	for _, name := range []string{"a", "b", "c"} {
		switch w.rand.IntN(6) {
		case 0:
			fmt.Fprintf(&b, "%s = %s\n", name, w.next())
		case 1:
			fmt.Fprintf(&b, "%s {\n  v = %s\n}\n%s \"l\" {\n}\n", name, w.next(), name)
		case 2:
			fmt.Fprintf(&b, "dynamic %q {\n  for_each = [%s]\n  content {\n    v = 1\n  }\n}\n", name, w.next())
		}
	}
	if w.rand.IntN(3) == 0 {
		fmt.Fprintf(&b, "_ {\n%s}\n", w.some("d = %s", "count = %s", "source = %s", "e {\n  v = %s\n}"))
	}
	return b.String()
}

func (w *writer) resource() string {
	s := w.some("count = %s", "provider = x.y") + w.provided()
	if w.maybe() {
		s += "lifecycle {\n" + w.some("prevent_destroy = %s", "create_before_destroy = true", "ignore_changes = [a, b]", "replace_triggered_by = [x.b]") + "}\n"
	}
	if w.rand.IntN(3) == 0 {
		s += "provisioner \"p\" {\n" + w.some("a = %s", "on_failure = continue") + "}\nprovisioner \"q\" {\n}\nprovisioner \"p\" {\n}\n"
	}
	if w.rand.IntN(3) == 0 {
		s += "connection {\n" + w.some("host = %s", "user = %s") + "}\n"
	}
	return s
}

func (w *writer) call() string {
	return "source = \"./m\"\n" + w.some("version = %s", "count = %s", "a = %s", "b = %s", "providers = { x = x.y }", "_ {\n  source = %s\n}")
}

func (w *writer) variable() string {
	return w.some("description = \"d\"", "sensitive = true", "nullable = true", "type = string", "default = \"7\"")
}

func (w *writer) output() string {
	return "value = " + w.next() + "\n" + w.some("description = \"e\"", "sensitive = false", "deprecated = \"x\"")
}

func (w *writer) locals() string { return w.some("a = %s", "b = %s", "c = %s") }

func (w *writer) terraform() string {
	s := w.some("required_version = \">= 1.6\"", "backend \"local\" {\n  path = %s\n}", "provider_meta \"x\" {\n  a = 1\n}",
		"required_providers {\n  x = \"1.0\"\n}", "required_providers {\n  x = { source = \"a/x\" }\n  y = { version = \"2\" }\n}")
	if strings.Count(s, "required_providers") > 1 {
		s = s[strings.LastIndex(s, "required_providers"):]
	}
	return s
}
