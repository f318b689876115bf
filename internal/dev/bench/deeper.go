package bench

import "fmt"

const titleAndRev = `variable "title" {
  type = string
}

variable "rev" {
  type = number
}
`

// modules writes n calls of a module with five resources, in chains of ten.
func modules(f *files, n int) {
	f.add("main.tf", revision)
	f.add("box/main.tf", titleAndRev+`
variable "after" {
  type    = string
  default = "nothing"
}

variable "marks" {
  type    = map(string)
  default = {}
}

locals {
  marks = merge(var.marks, { title = var.title, after = var.after })
  line  = join(" ", [for k, v in local.marks : "${k}:${v}"])
}

`)
	for i := range 5 {
		from := "var.after"
		if i > 0 {
			from = fmt.Sprintf("terraform_data.step%d.output.title", i-1)
		}
		f.add("box/main.tf", `resource "terraform_data" "step<1>" {
  input = {
    title = "${var.title}.<1>"
    rev   = var.rev
    marks = local.marks
    from  = <2>
  }
}

`, i, from)
	}
	f.add("box/main.tf", `output "title" {
  value = terraform_data.step4.output.title
}

output "ids" {
  value = [terraform_data.step0.id, terraform_data.step2.id, terraform_data.step4.id]
}
`)
	for i := range n {
		file := fmt.Sprintf("part%04d.tf", i/perFile)
		f.add(file, `module "box<1>" {
  source = "./box"
  title  = "box<1>"
  rev    = var.rev
  after  = <2>
  marks = {
    crew = "c<3>"
  }
}

`, i, before(i, "module.box%d.title"), i%7)
		if i%perFile == perFile-1 || i == n-1 {
			f.add(file, "output \"last<1>\" {\n  value = module.box<2>.ids\n}\n", i/perFile, i)
		}
	}
}

// nested writes a module with n keys. It calls a module that calls another one twice, with
// six resources per key.
func nested(f *files, n int) {
	items(f, n)
	f.add("main.tf", revision+itemsVariable+`
module "house" {
  source   = "./house"
  for_each = var.items
  title    = each.value.title
  crew     = each.value.crew
  rev      = var.rev
}

output "titles" {
  value = { for k, m in module.house : k => m.title }
}
`)
	f.add("house/main.tf", titleAndRev+`
variable "crew" {
  type = string
}

resource "terraform_data" "house" {
  input = { title = var.title, crew = var.crew, rev = var.rev }
}

module "floor" {
  source = "./floor"
  title  = terraform_data.house.output.title
  rev    = var.rev
}

output "title" {
  value = module.floor.title
}
`)
	f.add("house/floor/main.tf", titleAndRev+`
resource "terraform_data" "floor" {
  input = { title = "${var.title}/floor", rev = var.rev }
}

module "room" {
  source = "./room"
  count  = 2
  title  = "${terraform_data.floor.output.title}/${count.index}"
  rev    = var.rev
}

output "title" {
  value = join(" ", module.room[*].title)
}
`)
	f.add("house/floor/room/main.tf", titleAndRev+`
resource "terraform_data" "walls" {
  input = { title = "${var.title}/walls", rev = var.rev }
}

resource "terraform_data" "door" {
  input = { title = "${terraform_data.walls.output.title}/door", rev = var.rev }
}

output "title" {
  value = terraform_data.door.output.title
}
`)
}

// overrides writes flat, with every resource overridden by a native and by a JSON file.
func overrides(f *files, n int) {
	f.add("main.tf", revision+names)
	byFile := map[string]map[string]any{}
	for i := range n {
		part := fmt.Sprintf("part%04d", i/perFile)
		link(*f, part+".tf", i)
		f.add(part+"_override.tf", `resource "terraform_data" "item<1>" {
  input = {
    title = "item<1>, overridden"
    place = <1>
    rev   = var.rev
    after = <2>
  }
}

`, i, before(i, "terraform_data.item%d.output.title"))
		file := part + "_override.tf.json"
		if byFile[file] == nil {
			byFile[file] = map[string]any{}
		}
		byFile[file][fmt.Sprint("item", i)] = map[string]any{"triggers_replace": []string{fmt.Sprintf("${local.site}/%d", i)}}
	}
	for file, resources := range byFile {
		f.json(file, map[string]any{"resource": map[string]any{"terraform_data": resources}})
	}
}

// parse writes n files that take long to parse and to validate.
func parse(f *files, n int) {
	f.add("main.tf", revision)
	for i := range n {
		f.add(fmt.Sprintf("part%05d.tf", i), part, i, i%250)
	}
}

const part = `variable "hosts<1>" {
  description = "The hosts of part <1>, by name."
  type = map(object({
    address = string
    weight  = optional(number, 3)
    active  = optional(bool, true)
    labels  = optional(map(string), {})
  }))
  default = {
    alpha = { address = "10.0.0.1", labels = { rack = "a", row = "1" } }
    beta  = { address = "10.0.0.2", weight = 8 }
  }
  validation {
    condition     = alltrue([for name, h in var.hosts<1> : length(h.address) > 0 && h.weight < 50])
    error_message = "Part <1>: every host needs an address and a weight below 50."
  }
}

variable "net<1>" {
  type    = string
  default = "10.<2>.0.0/16"
}

locals {
  active<1>  = { for name, h in var.hosts<1> : name => h if h.active }
  labels<1>  = flatten([for name, h in local.active<1> : [for k, v in h.labels : { key = "${name}.${k}", value = v }]])
  upper<1>   = { for l in local.labels<1> : l.key => upper(l.value) }
  subnets<1> = [for i in range(8) : cidrsubnet(var.net<1>, 4, i)]
  all<1>     = merge(local.upper<1>, { part = "<1>", net = var.net<1> }, { for i, s in local.subnets<1> : "net${i}" => s })
  rules<1> = jsonencode({
    version = "1"
    rules = [for name, h in local.active<1> : {
      id      = replace(title(name), "/[^A-Za-z]/", "")
      verdict = h.active ? "let" : "block"
      verbs   = ["read:${name}", "write:${name}", format("list:%s:%03d", name, h.weight)]
      targets = concat(["host:${h.address}"], [for s in local.subnets<1> : "net:${s}"])
    }]
  })
  script<1> = <<-EOT
    #!/bin/sh
    # part <1>
    %{for name, h in local.active<1>~}
    export HOST_${upper(name)}="${h.address}"
    %{if h.weight > 5~}
    echo "${name} is heavy: ${join(" ", local.subnets<1>)}"
    %{else~}
    echo "${name} is light"
    %{endif~}
    %{endfor~}
  EOT
  digest<1> = sha256(join("", [local.script<1>, local.rules<1>, base64encode(local.script<1>)]))
  load<1>   = sum([for h in values(local.active<1>) : h.weight * 2 + 1]) > 10 ? max(1, 2, 3) : min(4, 5, 6)
  guess<1>  = try(local.all<1>["none"], lookup(local.all<1>, "part", "unknown"), "never")
}

resource "terraform_data" "host<1>" {
  for_each = local.active<1>
  input = {
    address = each.value.address
    digest  = local.digest<1>
    tags    = { for k, v in local.all<1> : lower(k) => trimspace(v) }
    subnet  = element(local.subnets<1>, each.value.weight)
    rev     = var.rev
  }
  lifecycle {
    precondition {
      condition     = can(regex("^10\\.", var.net<1>))
      error_message = "Part <1> must lie in 10.0.0.0/8, not in ${var.net<1>}."
    }
  }
}

resource "terraform_data" "sum<1>" {
  input            = [for name, h in terraform_data.host<1> : h.id]
  triggers_replace = [local.load<1>, local.guess<1>, substr(local.digest<1>, 0, 12)]
}

output "hosts<1>" {
  value = { for name, h in terraform_data.host<1> : name => h.output if can(h.output) }
}
`
