// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/scaffold"
	"github.com/regatta-sh/regatta/engine/decision"
)

// extending is a policy that extends a point by a rule: what regatta policy new
// makes, where it makes one.
func extending(point decision.Name, x bundle.Extension) (string, error) {
	rule := x.Rule
	switch {
	case rule == "settings" && point == "protection/guards":
		return "package extend.protection.my_policy\n\nsettings := {\"kinds\": {\"cronjobs.batch\": {\"cascading\": \"\"}}}\n", nil
	case rule == "settings" && point.Domain() == "protection":
		return "package extend.protection.my_policy\n\nsettings := {\"breakGlass\": {\"groups\": [\"example:on-call\"]}}\n", nil
	case rule == "deny" && point == "protection/deletion":
		rule = "guard" // that one is about volume claims, and the one of deny about pods
	}
	files, err := scaffold.New("my-policy", scaffold.Kind{Domain: x.Domain, Rule: rule})
	if err != nil {
		return "", fmt.Errorf("showing how to extend %s: %w", point, err)
	}
	return files["my-policy.rego"], nil
}

// replacing are policies that replace the decision of a point.
func replacing() map[decision.Name]string {
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

default scale := {"create": 0, "createCurrent": 0, "delete": 0, "deleteCurrent": 0, "keys": [], "then": [], "descending": [], "holds": []}

# Never more than five pods are deleted at a time.
scale := object.union(rollout.scale, {
	"delete": min([5, rollout.scale.delete]),
	"deleteCurrent": min([5, rollout.scale.deleteCurrent]),
})
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
	}
}

// fenced is text as a block of Markdown.
func fenced(language, text string) string {
	return "```" + language + "\n" + strings.TrimRight(text, "\n") + "\n```\n"
}
