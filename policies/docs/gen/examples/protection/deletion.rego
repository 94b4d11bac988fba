package override.protection

import data.protection

default deletion := {"allow": false, "reasons": [{"reason": "NoFacts", "message": "The facts are not complete, so the object stays."}]}

# In the playground everything may go.
deletion := {"allow": true, "reasons": [{"reason": "Playground", "message": "Nothing is protected in the playground."}]} if {
	input.object.namespace == "playground"
} else := protection.deletion
