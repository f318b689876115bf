package bench

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The files of the series of Scale. They are written piece by piece: the memory of this
// process is a lower bound for what the system reports for the processes that it starts.

// resources writes the workload flat.
func (s *Scale) resources(n int, dir string) error {
	f := files{}
	f.add("it/main.tf", revision+names)
	if err := f.write(dir); err != nil {
		return err
	}
	for from := 0; from < n; from += perFile {
		f := files{}
		flatPart(f, n, from)
		if err := f.write(filepath.Join(dir, "it")); err != nil {
			return err
		}
	}
	return nil
}

const (
	scaleModule = `variable "name" {
  type = string
}

variable "crew" {
  type = string
}

variable "after" {
  type    = string
  default = "nothing"
}

resource "terraform_data" "first" {
  input = { name = var.name, crew = var.crew, after = var.after }
}

resource "terraform_data" "second" {
  input = { name = terraform_data.first.output.name }
}

output "name" {
  value = terraform_data.second.output.name
}
`
	scaleRoot = `remote_state {
  backend = "local"
  generate = {
    path      = "backend.tf"
    if_exists = "overwrite_terragrunt"
  }
  config = {
    path = "${get_parent_terragrunt_dir()}/../states/${path_relative_to_include()}/terraform.tfstate"
  }
}

inputs = {
  crew = basename(dirname(get_terragrunt_dir()))
}
`
	scaleUnit = `include "root" {
  path = find_in_parent_folders("root.hcl")
}

terraform {
  source = "../../../modules//m"
}
`
	scaleDependency = `
dependency "before" {
  config_path = "../<1>"
  mock_outputs = {
    name = "mock"
  }
}

inputs = {
  name  = "<2>"
  after = dependency.before.outputs.name
}
`
)

// units writes an estate whose units depend on each other in chains of ten, with a hundred
// units in a directory. The estate in base differs from it in one input of the root file.
func (s *Scale) units(n int, dir string) error {
	f := files{}
	f.add("modules/m/main.tf", scaleModule)
	f.add("it/root.hcl", scaleRoot)
	f.add("base/root.hcl", strings.Replace(scaleRoot, "basename(dirname(get_terragrunt_dir()))", `"old"`, 1))
	for i := range n {
		name := func(i int) string { return fmt.Sprintf("unit%05d", i) }
		for _, revision := range []string{"it", "base"} {
			path := fmt.Sprintf("%s/group%04d/%s/terragrunt.hcl", revision, i/100, name(i))
			f.add(path, scaleUnit)
			if i%10 > 0 {
				f.add(path, scaleDependency, name(i-1), name(i))
			} else {
				f.add(path, "\ninputs = {\n  name = \"<1>\"\n}\n", name(i))
			}
		}
		if i%100 == 99 || i == n-1 {
			if err := f.write(dir); err != nil {
				return err
			}
			clear(f)
		}
	}
	return nil
}

// types writes a resource for each of n generated types of the test provider.
func (s *Scale) types(n int, dir string) error {
	if n > generatedTypes {
		return fmt.Errorf("the provider has only %d types", generatedTypes)
	}
	f := files{}
	f.add("it/main.tf", "terraform {\n  required_providers {\n    test = { source = \"terrace/test\" }\n  }\n}\n\n")
	for i := range n {
		f.add(fmt.Sprintf("it/part%04d.tf", i/perFile), `resource "test_thing<2>" "it" {
  name   = "thing-<1>"
  labels = { crew = "c<1>" }
  rule {
    port   = <1>
    ranges = ["10.0.0.0/8"]
  }
}

`, i, fmt.Sprintf("%04d", i))
	}
	return f.write(dir)
}

// textSize is the length of the text in each object of the series of states. The text is in
// the input and in the output of an object.
const textSize = 1900

// state writes a state of about n KB: objects of 4.4 KB, and a configuration that agrees
// with it.
func (s *Scale) state(n int, dir string) error {
	count := max(1, int(float64(n)/4.4))
	text := strings.Repeat("state ", textSize/6)
	f := files{}
	f.add("it/main.tf", `resource "terraform_data" "big" {
  count = <1>
  input = {
    index = count.index
    text  = file("text")
  }
}

output "first" {
  value = terraform_data.big[0].id
}
`, count)
	f.add("it/text", text)
	if err := f.write(dir); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, "it", "terraform.tfstate"))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, `{
  "version": 4,
  "terraform_version": "1.12.0",
  "serial": 1,
  "lineage": "6f1d8d1c-52a6-4f0e-9b5b-0a1c2d3e4f50",
  "outputs": {
    "first": {
      "value": %[1]q,
      "type": "string"
    }
  },
  "resources": [
    {
      "mode": "managed",
      "type": "terraform_data",
      "name": "big",
      "provider": "provider[\"terraform.io/builtin/terraform\"]",
      "instances": [
`, stateID(0))
	for i := range count {
		if i > 0 {
			fmt.Fprint(w, ",\n")
		}
		value := fmt.Sprintf(`{
              "value": {
                "index": %d,
                "text": %q
              },
              "type": [
                "object",
                {
                  "index": "number",
                  "text": "string"
                }
              ]
            }`, i, text)
		fmt.Fprintf(w, `        {
          "index_key": %d,
          "schema_version": 0,
          "attributes": {
            "id": %q,
            "input": %s,
            "output": %s,
            "triggers_replace": null
          },
          "sensitive_attributes": []
        }`, i, stateID(i), value, value)
	}
	fmt.Fprint(w, "\n      ]\n    }\n  ],\n  \"check_results\": null\n}\n")
	return errors.Join(w.Flush(), out.Close())
}

func stateID(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }

// perLevel is the number of resources in each module of the series of depths.
const perLevel = 5

// depth writes n modules, each of which calls the next one.
func (s *Scale) depth(n int, dir string) error {
	f := files{}
	for i := range n {
		path := "it/main.tf"
		next := "./level0001"
		if i > 0 {
			path = fmt.Sprintf("it/level%04d/main.tf", i)
			next = fmt.Sprintf("../level%04d", i+1)
		}
		f.add(path, `variable "title" {
  type    = string
  default = "top"
}

resource "terraform_data" "level" {
  count = <1>
  input = "${var.title}, ${count.index}"
}

`, perLevel)
		if i == n-1 {
			f.add(path, "output \"titles\" {\n  value = terraform_data.level[*].output\n}\n")
			continue
		}
		f.add(path, `module "next" {
  source = "<1>"
  title  = "level <2>"
}

output "titles" {
  value = module.next.titles
}
`, next, i)
	}
	return f.write(dir)
}
