// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/scaffold"
	"github.com/regatta-sh/regatta/engine/decision"
)

// extensionPolicy is a policy that extends a point by a rule: what regatta policy new
// makes, where it makes one.
func extensionPolicy(point decision.Name, x bundle.Extension) (string, error) {
	rule := x.Rule
	switch {
	case rule == "settings" && point == "protection/guards":
		return "package extend.protection.my_policy\n\nsettings := {\"kinds\": {\"cronjobs.batch\": {\"cascading\": \"\"}}}\n", nil
	case rule == "settings" && point.Domain() == "protection":
		return "package extend.protection.my_policy\n\nsettings := {\"breakGlass\": {\"groups\": [\"example:on-call\"]}}\n", nil
	case rule == "settings" && x.Domain == "rollout":
		return "package extend.rollout.my_policy\n\nsettings := {\"readinessGate\": \"WhereServed\"}\n", nil
	case rule == "settings" && x.Domain == "injection":
		return "package extend.injection.my_policy\n\nsettings := {\"first\": [\"mesh\"]}\n", nil
	case rule == "deny" && point == "protection/deletion":
		rule = "guard" // that one is about volume claims, and the one of deny about pods
	}
	files, err := scaffold.New("my-policy", scaffold.Kind{Domain: x.Domain, Rule: rule})
	if err != nil {
		return "", fmt.Errorf("showing how to extend %s: %w", point, err)
	}
	return files["my-policy.rego"], nil
}

// overridePolicies are policies that replace the decision of a point.
func overridePolicies() map[decision.Name]string {
	return map[decision.Name]string{
		"rollout/change": `package override.rollout

import data.rollout

default change := {"action": "Reject", "reason": "NoFacts", "message": "The facts are not complete, so no pod is changed."}

# Nothing is recreated: what cannot be changed in place stays as it is.
change := {"action": "Reject", "reason": "NeverRecreate", "message": rollout.change.message} if {
	rollout.change.action == "Recreate"
} else := rollout.change
`,
		"rollout/plan": `package override.rollout

import data.rollout

default plan := {"limit": 0, "maxUnavailable": 0, "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so nothing new is started."}], "scatter": []}

# Never more than ten pods at a time, in any workload of the cluster.
plan := object.union(rollout.plan, {"limit": min([10, rollout.plan.limit])})
`,
		"rollout/rank": `package override.rollout

import data.rollout

default rank := {"keys": [], "descending": [], "lead": [], "holds": []}

# The oldest pod goes first, whatever the strategy says.
rank := object.union(rollout.rank, {"keys": [[pod.created] | some pod in input.pods], "descending": []})
`,
		"rollout/rows": `package override.rollout

default rows := {"order": []}

# Pods of zone a go, in the order of the ranks; all others are held.
rows := {"order": [pod.name | some pod in input.rows; pod.zone == "a"]}
`,
		"rollout/scale": `package override.rollout

import data.rollout

default scale := {"create": 0, "createCurrent": 0, "delete": 0, "deleteCurrent": 0, "keep": [], "planned": "None", "keys": [], "then": [], "descending": [], "holds": []}

# Never more than five pods are deleted at a time.
scale := object.union(rollout.scale, {
	"delete": min([5, rollout.scale.delete]),
	"deleteCurrent": min([5, rollout.scale.deleteCurrent]),
})
`,
		"rollout/predownload": `package override.rollout

import data.rollout

default predownload := {"action": "Wait", "reason": "NoFacts", "message": "The facts are not complete, so no images are pulled ahead."}

# Images are pulled ahead of updates of three pods or fewer, too.
predownload := {"action": "Pull", "reason": "Few", "message": "The images are large."} if {
	rollout.predownload.reason == "FewReplicas"
} else := rollout.predownload
`,
		"rollout/run": `package override.rollout

import data.rollout

default run := {"action": "Wait", "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so the run waits."}]}

# What was due more than an hour ago is left out, in all schedules of the cluster.
run := {"action": "Skip", "holds": [{"reason": "TooLate", "message": "It was due more than an hour ago."}]} if {
	input.now - input.run.scheduled > 3600000000000
} else := rollout.run
`,
		"node/restarts": `package override.node

import data.node

default restarts := {"restart": [], "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so no container is stopped."}], "denials": []}

# One container after the other, whatever the request says.
restarts := object.union(node.restarts, {"restart": array.slice(node.restarts.restart, 0, 1)})
`,
		"node/images": `package override.node

import data.node

default images := {"begin": 0, "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so no node begins to pull."}], "denials": []}

# One node after the other, whatever the job says.
images := object.union(node.images, {"begin": min([1 - input.counts.pulling, node.images.begin])}) if {
	input.counts.pulling <= 1
} else := object.union(node.images, {"begin": 0})
`,
		"node/markers": `package override.node

import data.node

default markers := {"conditions": [], "labels": {}, "annotations": {}, "removeLabels": [], "removeAnnotations": [], "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod keeps what it has."}]}

# A result that is not known takes no label and no annotation away.
markers := object.union(node.markers, {"removeLabels": [], "removeAnnotations": []}) if {
	some result in input.results
	result.state == "Unknown"
} else := node.markers
`,
		"node/termination": `package override.node

import data.node

default termination := {"stop": [], "images": {}, "phase": "", "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so all containers run on."}]}

main := [container | some container in input.containers; container.name != "istio-proxy"]

# The proxy of the mesh ends with its pod, though no env says so, and its exit code does not count.
termination := {"stop": ["istio-proxy"], "images": {}, "phase": "Succeeded", "holds": []} if {
	count(main) < count(input.containers)
	every container in main {
		container.terminated
		container.exitCode == 0
	}
} else := node.termination
`,
		"injection/liveness": `package override.injection

import data.injection

default liveness := {"take": []}

# The kubelet runs the liveness probes of payments.
liveness := {"take": []} if {
	input.pod.namespace == "payments"
} else := injection.liveness
`,
		"node/rank": `package override.node

default rank := {"keys": [], "holds": [], "denials": []}

# Nodes of a pool for jobs go last. There is nothing else to go by.
rank := {"keys": [[{true: 1, false: 0}[node.labels.pool == "jobs"]] | some node in input.nodes], "holds": [], "denials": []}
`,
		"placement/distribution": `package override.placement

import data.placement

default distribution := {"namespaces": [], "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so all copies stay as they are."}], "denials": []}

# Namespaces of the playground have no copies.
distribution := object.union(placement.distribution, {"namespaces": [name |
	some name in placement.distribution.namespaces
	not startswith(name, "playground-")
]})
`,
		"placement/allocation": `package override.placement

import data.placement

default allocation := {"subsets": [], "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so all subsets stay as they are."}], "denials": []}

# In the playground the first subset gets all pods.
allocation := {
	"subsets": [{"name": subset.name, "replicas": replicas} |
		some i, subset in input.subsets
		replicas := {true: input.replicas, false: 0}[i == 0]
	],
	"holds": placement.allocation.holds,
	"denials": placement.allocation.denials,
} if {
	input.deployment.namespace == "playground"
	input.replicas >= 0
} else := placement.allocation
`,
		"placement/subset": `package override.placement

import data.placement

default subset := {"subset": "", "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod is created as it is."}], "denials": []}

# Pods labelled best-effort go to the last subset.
subset := object.union(placement.subset, {"subset": input.subsets[count(input.subsets) - 1].name}) if {
	input.pod.labels.tier == "best-effort"
} else := placement.subset
`,
		"placement/broadcast": `package override.placement

import data.placement

default broadcast := {"nodes": [], "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so no pod is created."}], "denials": []}

# One node at a time, whatever parallelism says.
broadcast := object.union(placement.broadcast, {"nodes": array.slice(placement.broadcast.nodes, 0, 1 - input.counts.active)})
`,
		"placement/persistent": `package override.placement

import data.placement

default persistent := {"nodeSelector": {}, "preferred": [], "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod asks for no topology."}], "denials": []}

# In the playground pods prefer where they were, and do not insist.
persistent := object.union(placement.persistent, {
	"nodeSelector": {},
	"preferred": [{"weight": 100, "labels": placement.persistent.nodeSelector} | count(placement.persistent.nodeSelector) > 0],
}) if {
	input.pod.namespace == "playground"
} else := placement.persistent
`,
		"placement/ephemeral": `package override.placement

import data.placement

default ephemeral := {"pods": [], "holds": [{"reason": "NoFacts", "message": "The facts are not complete, so no container is added."}], "denials": []}

# One pod at a time, whatever parallelism says.
ephemeral := object.union(placement.ephemeral, {"pods": array.slice(placement.ephemeral.pods, 0, 1 - input.counts.active)})
`,
		"protection/budget": `package override.protection

import data.protection

default budget := {"allow": false, "reasons": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod stays."}]}

# In the playground every pod may go.
budget := {"allow": true, "reasons": [{"reason": "Playground", "message": "Nothing is protected in the playground."}]} if {
	input.object.namespace == "playground"
} else := protection.budget
`,
		"protection/deletion": `package override.protection

import data.protection

default deletion := {"allow": false, "reasons": [{"reason": "NoFacts", "message": "The facts are not complete, so the object stays."}]}

# In the playground everything may go.
deletion := {"allow": true, "reasons": [{"reason": "Playground", "message": "Nothing is protected in the playground."}]} if {
	input.object.namespace == "playground"
} else := protection.deletion
`,
		"protection/guards": `package override.protection

import data.protection

# The label does not protect Services. There is no default: without an answer
# everything stays as it was configured last.
guards := {
	"kinds": [kind | some kind in protection.guards.kinds; kind.resource != "services"],
	"guards": protection.guards.guards,
}
`,
		"launchpriority/order": `package override.launchpriority

import data.launchpriority

default order := {"priorities": {}, "refuse": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod is not created."}]}

# A container named proxy starts before all others, which start as they declare.
order := {"priorities": object.union({container.name: 0 | some container in input.containers}, object.union(launchpriority.order.priorities, {"proxy": 1000})), "refuse": []} if {
	some container in input.containers
	container.name == "proxy"
} else := launchpriority.order
`,
		"injection/sidecars": `package override.injection

import data.injection

default sidecars := {"inject": [], "left": [], "wanted": [], "refuse": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod is not created."}]}

# Nothing is put into pods that run as the account builder.
sidecars := {"inject": [], "left": [], "wanted": [], "refuse": []} if {
	input.pod.serviceAccount == "builder"
} else := injection.sidecars
`,
		"injection/resources": `package override.injection

import data.injection

default resources := {"limits": {}, "requests": {}, "refuse": [{"reason": "NoFacts", "message": "The facts are not complete, so the pod is not created."}]}

# No container of a SidecarSet gets more than one core.
resources := object.union(injection.resources, {"limits": {"cpu": 1000}}) if {
	injection.resources.limits.cpu > 1000
} else := injection.resources
`,
	}
}

// fencedBlock is text as a block of Markdown.
func fencedBlock(language, text string) string {
	return "```" + language + "\n" + strings.TrimRight(text, "\n") + "\n```\n"
}
