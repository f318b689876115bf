package syntax_test

import (
	"testing"

	"github.com/terrace-iac/terrace/unit/syntax"
)

// Messages do not show the text of arguments that pass values on, in any kind of file, nor
// any text of an autoinclude file.
func TestPrivateText(t *testing.T) {
	for _, c := range []struct {
		name, text string
		shown      bool
	}{
		{"terragrunt.hcl", "inputs = { a = 1 }", false},
		{"terragrunt.hcl", "remote_state {\nconfig = { a = 1 }\n}", false},
		{"terragrunt.hcl", "remote_state {\nencryption = { a = 1 }\n}", false},
		{"terragrunt.hcl", "terraform {\nextra_arguments \"a\" {\nenv_vars = { a = 1 }\n}\n}", false},
		{"terragrunt.hcl", "module \"m\" {\npassword = 1\n}", false},
		{"terragrunt.hcl", "module \"m\" {\nsource = \"./m\"\n}", true},
		{"terragrunt.hcl", "generate \"g\" {\npath = 1\n}", true},
		{"terragrunt.stack.hcl", "unit \"a\" {\nvalues = { a = 1 }\n}", false},
		{"terragrunt.autoinclude.hcl", "generate \"g\" {\npath = 1\n}", false},
		{"terragrunt.autoinclude.hcl", "iam_role = 1", false},
	} {
		f := syntax.Source("/live/"+c.name, []byte(c.text))
		line := 1
		for i := range c.text {
			if c.text[i] == '=' {
				break
			}
			if c.text[i] == '\n' {
				line++
			}
		}
		if f.Shows(line, line) != c.shown {
			t.Errorf("%s: the line with the argument is shown: %t\n%s", c.name, !c.shown, c.text)
		}
	}
}

// Every row has a merging rule. Without one, a file would replace a whole block, or lose
// it.
func TestRows(t *testing.T) {
	spec := syntax.Language().Unit
	seen := map[string]bool{}
	for _, b := range spec.Blocks {
		if seen[b.Name] || spec.Arg(b.Name) != nil {
			t.Errorf("%s: two rows", b.Name)
		}
		seen[b.Name] = true
		if b.Label == syntax.OneLabel && !b.Stays && b.Merge.By(syntax.Import) != syntax.ByLabel {
			t.Errorf("%s: blocks with labels are merged by label", b.Name)
		}
		if b.List != "" && b.Arg(b.List) == nil {
			t.Errorf("%s has no argument %s", b.Name, b.List)
		}
		for _, m := range b.Computed {
			if b.ShownArg(m.Name) != nil {
				t.Errorf("%s: %s is computed and an argument", b.Name, m.Name)
			}
		}
	}
	for _, b := range syntax.Language().Auto.Blocks {
		if spec.Block(b.Name) != b {
			t.Errorf("%s is another block in autoinclude files", b.Name)
		}
	}
}
