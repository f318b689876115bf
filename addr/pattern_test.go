package addr_test

import (
	"testing"

	"github.com/terrace-iac/terrace/addr"
)

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, instance string
		want              bool
	}{
		{"aws_instance.*", "aws_instance.web", true},
		{"aws_instance.*", `aws_instance.web["a.b"]`, true},
		{"aws_instance.*", "aws_instances.web", false},
		{"aws_instance.*", "data.aws_instance.web", false},
		{"aws_instance.*", "module.app.aws_instance.web", false},
		{"data.*.*", "data.aws_instance.web", true},
		{"*.web", "aws_instance.web[3]", true},
		{"aws_*.web-*", "aws_instance.web-blue", true},
		{"aws_*.web-*", "aws_instance.web", false},
		{"aws_instance.web[*]", "aws_instance.web", true},
		{"aws_instance.web[*]", "aws_instance.web[3]", true},
		{"aws_instance.web[*]", "aws_instance.other[3]", false},
		{`aws_instance.*["a*"]`, `aws_instance.web["a*"]`, true},
		{`aws_instance.*["a*"]`, `aws_instance.web["ab"]`, false},
		{"module.app[*]", `module.app["x"].module.deep.aws_instance.web`, true},
		{"module.app-*", "module.app-1.aws_instance.web", true},
		{"module.app-*", "module.application.aws_instance.web", false},
		{"module.*.aws_instance.web", `module.app["x"].aws_instance.web`, true},
		{"module.*.aws_instance.web", `module.app["x"].module.deep.aws_instance.web`, false},
		{`module.*["x"].*.*`, `module.app["x"].aws_instance.web`, true},
		{`module.*["x"].*.*`, `module.app["y"].aws_instance.web`, false},
	} {
		p, err := addr.ParsePattern(tt.pattern)
		if err != nil {
			t.Errorf("%s: %s", tt.pattern, err)
			continue
		}
		if p.Pattern != tt.pattern || p.String() != tt.pattern {
			t.Errorf("%s is not a pattern", tt.pattern)
		}
		i, err := addr.ParseInstance(tt.instance)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Match(i); got != tt.want {
			t.Errorf("%s matches %s: %t, want %t", tt.pattern, tt.instance, got, tt.want)
		}
	}
}

// Addresses without an asterisk outside of quotes are no patterns.
func TestNoPattern(t *testing.T) {
	for _, text := range []string{"aws_instance.web", `aws_instance.web["*"]`, `aws_instance.web["a\"*"]`, "module.app"} {
		p, err := addr.ParsePattern(text)
		if err != nil || p.Pattern != "" || p.String() != text {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
	}
	for _, text := range []string{"*", "aws_instance.", "module.*.", "aws_instance.*.*", "aws_instance.web[a*]"} {
		if p, err := addr.ParsePattern(text); err == nil {
			t.Errorf("%s: %+v, want an error", text, p)
		} else {
			t.Log(err)
		}
	}
}
