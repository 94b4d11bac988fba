package node

import future.keywords.not

# METADATA
# scope: document
# title: Which sidecars end with their pod
# description: |
#   Which sidecars of a pod end, since its main containers have (ST-01, ST-02), and
#   whether their exit codes count.
# entrypoint: true
# labels:
#   id: node.termination.no-facts
default termination := {
	"stop": [], "images": {}, "phase": "",
	"holds": [{
		"rule": "node.termination.no-facts",
		"reason": "FactsMissing",
		"message": "The facts of this pod are not complete, so all its containers run on.",
	}],
}

# METADATA
# title: Not yet
# description: A main container still runs or is to be restarted, or there is no sidecar.
# labels:
#   id: node.termination.wait
termination := {"stop": [], "images": {}, "phase": "", "holds": []} if {
	is_array(input.containers)
	not termination_due
}

# METADATA
# title: By another image
# description: On a virtual node a sidecar ends by the image that its env names.
# labels:
#   id: node.termination.virtual
termination := {
	"stop": [], "phase": "", "holds": [],
	"images": {container.name: container.endImage |
		some container in termination_sidecars
		container.endImage
		not container.terminated
	},
} if {
	termination_due
	input.virtual
}

# METADATA
# title: Those that count first
# description: Sidecars whose exit code counts are stopped first.
# labels:
#   id: node.termination.counted
termination := {"stop": termination_counted, "images": {}, "phase": "", "holds": []} if {
	termination_due
	not input.virtual
	count(termination_counted) > 0
}

# METADATA
# title: Those that do not count
# description: The pod ends as its main containers did, and then the sidecars whose exit code is ignored are stopped.
# labels:
#   id: node.termination.ignored
termination := {"stop": termination_ignored, "images": {}, "phase": termination_phase, "holds": []} if {
	termination_due
	not input.virtual
	count(termination_counted) == 0
}

termination_due if {
	input.restartPolicy in {"Never", "OnFailure"}
	every container in input.containers {
		container.known
	}
	some container in termination_sidecars
	not container.terminated
	count(termination_main) > 0
	every container in termination_main {
		container.ended
	}
}

termination_sidecars := [container | some container in input.containers; container.sidecar]

termination_main := [container | some container in input.containers; not container.sidecar]

termination_counted := [container.name |
	some container in termination_sidecars
	not container.ignoreExitCode
	not container.terminated
]

termination_ignored := [container.name |
	some container in termination_sidecars
	container.ignoreExitCode
	not container.terminated
]

termination_phase := "Succeeded" if {
	every container in termination_main {
		container.exitCode == 0
	}
}

termination_phase := "Failed" if {
	some container in termination_main
	container.exitCode != 0
}
