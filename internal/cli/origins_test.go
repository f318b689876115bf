package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/terrace-iac/terrace/internal/base/sys"
	"github.com/terrace-iac/terrace/internal/cli"
	"github.com/terrace-iac/terrace/internal/dev/randconfig"
)

// An environment file with two units, one of which reads an output of the other, and an imported file
// that is merged with the inputs of a unit.
var environmentFiles = map[string]string{
	"region.hcl":      "inputs = {\n  tags = { region = \"r1\" }\n}\n",
	"live/common.hcl": "inputs = {\n  size = 2\n  tags = {\n    team = \"t\"\n  }\n}\n",
	"staging/terragrunt.hcl": `import "region" {
  config_path = "../region.hcl"
}
module "net" {
  source = "../m"
  name   = "net"
  tags   = import.region.inputs.tags
}
module "app" {
  source = "../m"
  name   = module.net.outputs.name
  size   = 3
}
`,
	"live/db/terragrunt.hcl": `import "common" {
  config_path = "../common.hcl"
  deep_merge  = true
}
terraform {
  source = "../../m"
}
inputs = {
  name = "db"
  tags = { own = "yes" }
}
`,
	"m/main.tf": `variable "name" {}
variable "size" { default = 1 }
variable "tags" { default = {} }
resource "terraform_data" "one" {
  input = { name = var.name, tags = var.tags }
}
resource "terraform_data" "many" {
  count = var.size
  input = "${var.name}-${count.index}"
}
output "name" { value = terraform_data.one.output.name }
output "tags" { value = var.tags }
`,
	"m/z_override.tf": "resource \"terraform_data\" \"many\" {\n  triggers_replace = [var.tags]\n}\n",
}

// Every origin in the plan of an estate equals the answer of explain in the unit: in estates with
// dependencies, included files and environment files, before the first apply and after a change.
func TestOriginsEqualExplain(t *testing.T) {
	estates := []map[string]string{environmentFiles}
	changes := []map[string]string{{"region.hcl": strings.Replace(environmentFiles["region.hcl"], "r1", "r2", 1), "live/common.hcl": strings.Replace(environmentFiles["live/common.hcl"], "2", "3", 1)}}
	for seed := range int64(8) {
		e := randconfig.MakeEstate(seed)
		estates, changes = append(estates, e.Files), append(changes, e.Change)
	}
	compared, units := 0, 0
	for i, files := range estates {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, files)
			if i == 0 {
				runIn(dir, "run", "--all", "--non-interactive", "apply")
			}
			for range 2 {
				n, u := compareOrigins(t, dir, i > 0)
				compared, units = compared+n, units+u
				runIn(dir, "run", "--all", "--non-interactive", "apply") // hooks of some units fail
				writeFiles(t, dir, changes[i])
			}
		})
	}
	t.Logf("%d origins in the plans of %d units", compared, units)
	if compared < 300 || units < 20 {
		t.Error("too few origins")
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// runIn runs the program in a directory and returns its standard output.
func runIn(dir string, args ...string) (stdout []byte, status int) {
	var out, errs bytes.Buffer
	status = cli.Main(context.Background(), &sys.System{
		Dir: dir, Env: sys.Env{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, Args: append([]string{"terrace"}, args...),
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: time.Now, Run: sys.Run,
		Terminal:   sys.Terminal{Width: func() int { return 0 }, Height: func() int { return 0 }},
		Interrupts: func() (<-chan os.Signal, func()) { return nil, func() {} },
		Executable: os.Executable, Host: func() string { return "" }, User: func() string { return "" },
	})
	return out.Bytes(), status
}

// compareOrigins plans an estate and compares the origins with the explanations. It returns the numbers
// of equal origins and of units. planned means that the plan of the run may have outputs of other units
// that explain does not have: planned ones, where explain has those in the state, or mock outputs.
func compareOrigins(t *testing.T, dir string, planned bool) (n, units int) {
	t.Helper()
	runIn(dir, "run", "--all", "plan", "-all-origins", "-out=all.plan")
	text, status := runIn(dir, "show", "-json", "all.plan")
	if status != 0 {
		return 0, 0 // a plan with errors is not saved
	}
	var doc struct {
		Units []struct {
			Name    string
			Origins []struct {
				Address, Path, File string
				Line                int
			}
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for _, u := range doc.Units {
		units++
		in, flags := filepath.Join(dir, u.Name), []string{}
		if _, err := os.Stat(in); err != nil { // a unit of an environment file
			in, flags = filepath.Dir(in), []string{"--module", filepath.Base(in)}
		}
		for _, o := range u.Origins {
			address := o.Address
			switch {
			case o.Path == "":
			case strings.HasPrefix(o.Path, "["):
				address += o.Path
			default:
				address += "." + o.Path
			}
			out, status := runIn(in, append(append([]string{"explain", "-json"}, flags...), address)...)
			var x struct {
				Steps []struct {
					Kind string
					At   *struct {
						File string
						Line int
					}
				}
			}
			if err := json.Unmarshal(out, &x); err != nil || status != 0 || len(x.Steps) == 0 {
				t.Errorf("%s: %s has the origin %s:%d, but no explanation (%v)", u.Name, address, o.File, o.Line, err)
				continue
			}
			n++
			last := x.Steps[len(x.Steps)-1]
			same := last.At != nil && filepath.Join(in, last.At.File) == filepath.Join(dir, o.File) && last.At.Line == o.Line
			switch {
			case !same && planned && (last.Kind == "dependency" || last.Kind == "mock_outputs" || last.Kind == "failed"):
				n--
			case o.File == "":
				if last.Kind != "provider" && last.Kind != "not_set" && last.At != nil && last.At.File != "" {
					t.Errorf("%s: %s is not from the configuration, but explain ends in %+v", u.Name, address, last.At)
				}
			case !same:
				t.Errorf("%s: %s has the origin %s:%d, but explain ends in %+v (%s)", u.Name, address, o.File, o.Line, last.At, last.Kind)
			}
		}
	}
	return n, units
}
