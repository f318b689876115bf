package command

import (
	"testing"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/workdir"
)

func TestCalledAs(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/bin/terrace":             "",
		"tofu":                         "tofu",
		"/usr/local/bin/tofu1.12.6":    "tofu",
		"/opt/terraform_1.12.6":        "terraform",
		"/opt/terraform1.5.0":          "terraform",
		"terraform-v1.5":               "terraform",
		"terraformv1.5":                "terraform",
		"terragrunt_linux_amd64":       "terragrunt",
		"terragrunt_windows_amd64.exe": "terragrunt",
		"Terraform.EXE":                "terraform",
		"terraformer":                  "",
		"tofutf":                       "",
		"terraformvars":                "",
		"":                             "",
	} {
		c := &Call{System: &sys.System{Args: []string{program}}, Directory: &workdir.Directory{}}
		if got := c.CalledAs(); got != want {
			t.Errorf("%q: %q, want %q", program, got, want)
		}
	}
	c := &Call{System: &sys.System{Args: []string{"tofu"}}, Directory: &workdir.Directory{Env: sys.Env{"TERRACE_AS=terragrunt_linux_amd64"}}}
	if got := c.CalledAs(); got != "terragrunt" {
		t.Errorf("with TERRACE_AS: %q", got)
	}
}
