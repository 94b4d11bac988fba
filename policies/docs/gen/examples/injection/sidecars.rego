package override.injection

import data.injection

default sidecars := {"inject": [], "left": [], "wanted": [], "refuse": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod is not created."}]}

# Nothing is put into pods that run as the account builder.
sidecars := {"inject": [], "left": [], "wanted": [], "refuse": []} if {
	input.pod.serviceAccount == "builder"
} else := injection.sidecars
