# METADATA
# title: No sidecars by a label
# description: |
#   A pod with the label shop.example/no-sidecars, the value of which says why, is created without
#   containers of SidecarSets, but for those that must never be missing.
package extend.injection.no_sidecars_by_label

import future.keywords.not

# Edit these.
key := "shop.example/no-sidecars"

always := {"audit"}

# METADATA
# title: The label is there
# description: A label without a value says no reason, and has no effect.
# labels:
#   id: no-sidecars-by-label.label
skip contains {
	"rule": "no-sidecars-by-label.label",
	"set": set.name,
	"reason": "NoSidecars",
	"message": sprintf("The pod has the label %s=%s.", [key, why]),
} if {
	why := input.pod.labels[key]
	why != ""
	some set in input.sets
	not set.name in always
}
