# Policies for the plan of all units: the input is the output of show -json for a plan of run --all.
package estate

import rego.v1

# A policy for one directory applies to the plan of each unit.
deny contains message if {
	some unit in input.units
	some text in data.tags.deny with input as unit.plan
	message := sprintf("%s: %s", [unit.name, text])
}

# Two units must not have the same network.
deny contains message if {
	some a in networks
	some b in networks
	a.unit < b.unit
	a.cidr == b.cidr
	message := sprintf("%s (%s) and %s (%s) have the network %s", [a.unit, a.origin, b.unit, b.origin, a.cidr])
}

networks contains {"unit": unit.name, "cidr": cidr, "origin": origin(unit, change.address, "input.cidr")} if {
	some unit in input.units
	some change in unit.plan.resource_changes
	cidr := change.change.after.input.cidr
}

# origin returns the file and line that set a value.
origin(unit, address, path) := sprintf("%s:%d", [place.file, place.line]) if {
	some place in unit.origins
	place.address == address
	place.path == path
} else := "no file"
