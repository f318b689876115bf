package catalog

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/terrace-iac/terrace/internal/base/readfile"
	yaml "github.com/zclconf/go-cty-yaml"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// read reads the README in the component's directory and sets the title, description and tags.
func (c *Component) read(entries []os.DirEntry) error {
	file := ""
	for _, en := range entries {
		switch name := strings.ToLower(en.Name()); {
		case en.IsDir():
		case name == "readme.md":
			file, c.Markdown = en.Name(), true
		case name == "readme.adoc" && !c.Markdown:
			file = en.Name()
		}
	}
	if file == "" {
		return nil
	}
	b, err := readfile.Whole(filepath.Join(c.Folder, file))
	if err != nil {
		return err
	}
	front, body := splitFront(strings.ReplaceAll(strings.ToValidUTF8(string(b), "�"), "\r\n", "\n"))
	c.Doc = body
	title, description := summary(body, c.Markdown)
	f := readFront(front)
	for _, t := range []string{title, f.name} {
		if t != "" {
			c.Title = t
		}
	}
	if c.Description = description; f.description != "" {
		c.Description = f.description
	}
	c.Tags = f.tags
	return nil
}

var fronts = sync.OnceValue(func() [2]*regexp.Regexp {
	return [2]*regexp.Regexp{
		regexp.MustCompile(`(?s)\A\s*---[ \t]*\n(.*?\n|)---[ \t]*(?:\n|\z)`),
		regexp.MustCompile(`(?is)\A\s*<!--\s*frontmatter[ \t]*\n(.*?)-->[ \t]*(?:\n|\z)`),
	}
})

// splitFront splits a README into its front matter, which has two possible forms, and the rest.
func splitFront(text string) (front, body string) {
	for _, form := range fronts() {
		if m := form.FindStringSubmatchIndex(text); m != nil {
			return text[m[2]:m[3]], strings.TrimLeft(text[m[1]:], "\n")
		}
	}
	return "", text
}

type front struct {
	name, description string
	tags              []string
}

// readFront parses front matter. It ignores errors, since the component can be used anyway.
func readFront(text string) (f front) {
	ty, err := yaml.Standard.ImpliedType([]byte(text))
	if err != nil || !ty.IsObjectType() {
		return f
	}
	v, err := yaml.Standard.Unmarshal([]byte(text), ty)
	if err != nil {
		return f
	}
	word := func(v cty.Value) string {
		text, err := convert.Convert(v, cty.String) // YAML parses y as a boolean, and 2024 as a number
		if err != nil || text.IsNull() {
			return ""
		}
		return strings.TrimSpace(text.AsString())
	}
	for name, x := range v.AsValueMap() {
		switch name {
		case "name":
			f.name = word(x)
		case "description":
			f.description = word(x)
		case "tags":
			list := []cty.Value{x}
			if !x.IsNull() && x.CanIterateElements() {
				list = x.AsValueSlice()
			}
			for _, tag := range list {
				if tag := word(tag); tag != "" {
					f.tags = append(f.tags, tag)
				}
			}
		}
	}
	return f
}

// enough is the length, in bytes, of a description that is taken from the text of a README.
const enough = 200

// summary returns the first heading of the highest level, and the text below the headings.
func summary(body string, markdown bool) (title, description string) {
	sign, fences := "#", []string{"```", "~~~"}
	if !markdown {
		sign, fences = "=", []string{"----", "....", "****"}
	}
	var text []string
	length, fence := 0, ""
	for _, line := range strings.Split(body, "\n") {
		line = strings.TrimSpace(line)
		if fence != "" {
			if strings.HasPrefix(line, fence) {
				fence = ""
			}
			continue
		}
		for _, f := range fences {
			if strings.HasPrefix(line, f) {
				fence = f
			}
		}
		level := len(line) - len(strings.TrimLeft(line, sign))
		switch {
		case fence != "", line == "":
		case level > 0 && strings.HasPrefix(line[level:], " "):
			if level == 1 && title == "" {
				title = plain(line[level:])
			}
		case strings.HasPrefix(line, "|"), strings.HasPrefix(line, "<!--"), !markdown && strings.HasPrefix(line, ":"):
		case length < enough:
			if line = plain(line); line != "" {
				text = append(text, line)
				length += len(line) + 1
			}
		}
	}
	description = strings.Join(text, " ")
	if len(description) > enough {
		if i := strings.LastIndexByte(description[:enough], ' '); i > 0 && length > 2*enough {
			description = description[:i] + " …"
		}
	}
	return title, description
}

var marks = sync.OnceValue(func() [4]*regexp.Regexp {
	return [4]*regexp.Regexp{
		regexp.MustCompile(`\[?!\[[^\]]*\]\([^)]*\)(?:\]\([^)]*\))?`), // images, with or without a link
		regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`),
		regexp.MustCompile(`link:[^\s\[]*\[([^\]]*)\]|</?[a-zA-Z][^>]*>`),
		regexp.MustCompile("\\*\\*|`|\\B[*_]|[*_]\\B"),
	}
})

// plain returns text without markup.
func plain(text string) string {
	m := marks()
	text = m[0].ReplaceAllString(text, "")
	text = m[1].ReplaceAllString(text, "$1")
	text = m[2].ReplaceAllString(text, "$1")
	return strings.TrimSpace(m[3].ReplaceAllString(text, ""))
}
