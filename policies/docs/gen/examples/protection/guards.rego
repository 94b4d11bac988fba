package override.protection

import data.protection

# The label does not protect Services. There is no default: without an answer
# everything stays as it was configured last.
guards := {
	"kinds": [kind | some kind in protection.guards.kinds; kind.resource != "services"],
	"guards": protection.guards.guards,
}
