# A policy for the plan of one directory: the input is the output of show -json.
package tags

import rego.v1

deny contains message if {
	some change in input.resource_changes
	"create" in change.change.actions
	not change.change.after.input.tags.team
	message := sprintf("%s needs the tag team", [change.address])
}
