// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"slices"

	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/injection"
)

// userAdds is the rule of the built-in policies that evaluates the rules `add` of users.
const userAdds = decision.Name("injection/user_adds")

// addedPodScopes describes the pods that rules of a snapshot may add SidecarSets to although none selects them. If only a canary has
// such a rule, these are pods of some namespaces.
func (r *Rules) addedPodScopes(s *engine.Snapshot) []podscope.Selector {
	adds := func(namespace string) bool {
		subject := decision.Subject{Kind: "Pod", Namespace: namespace}
		return s.IsPointReplaced(injection.SidecarsPoint().Name, subject) || s.IsPointExtended(userAdds, subject)
	}
	if adds("") {
		return []podscope.Selector{{}}
	}
	namespaces := slices.DeleteFunc(s.NamespacesWithBundles(), func(ns string) bool { return !adds(ns) })
	if len(namespaces) == 0 {
		return nil
	}
	return []podscope.Selector{{Namespaces: slices.Sorted(slices.Values(namespaces))}}
}
