package override.injection

import data.injection

default liveness := {"take": []}

# The kubelet runs the liveness probes of payments.
liveness := {"take": []} if {
	input.pod.namespace == "payments"
} else := injection.liveness
