// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/subset"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// reportPlacement reports the subsets whose pods have no node or no subset, by name, and why (UD-15).
func (t *reconcileRound) reportPlacement(ctx context.Context, a allocated) error {
	nowhere, waiting, err := t.findWaitingSubsets(ctx)
	if err != nil {
		return err
	}
	reason, text := "", ""
	switch full := t.describeFullSubsets(a); {
	case len(nowhere) > 0:
		reason = kruise.UnitedDeploymentNoNodesReason
		text = fmt.Sprintf("No node has the labels that these subsets require, so their pods wait: %s.", message.ListNames(nowhere))
	case len(waiting) > 0:
		reason = kruise.UnitedDeploymentUnschedulableReason
		text = fmt.Sprintf("Pods of these subsets found no node in %s: %s.", t.criticalDuration(), message.ListNames(waiting))
	case full != "":
		reason, text = kruise.UnitedDeploymentSubsetsFullReason, full
	case a.held != nil && len(t.surplus) > 0:
		reason = kruise.UnitedDeploymentUnknownSubsetReason
		text = fmt.Sprintf("These subsets are not in the spec, and a policy holds what would delete their workloads: %s.", message.ListNames(t.surplusSubsets()))
	case len(t.standing) > 0:
		reason = kruise.UnitedDeploymentWaitingForSubsetsReason
	}
	if len(t.standing) > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s Workloads that are to go stay until as many pods of the subsets are available: %s.", text, message.ListNames(t.standing)))
	}
	switch {
	case reason != "":
		t.setCondition(kruise.UnitedDeploymentPlacing, metav1.ConditionFalse, reason, text)
	case t.hasCondition(kruise.UnitedDeploymentPlacing):
		t.setCondition(kruise.UnitedDeploymentPlacing, metav1.ConditionTrue, kruise.UnitedDeploymentPlacingReason, "")
	}
	return nil
}

func (t *reconcileRound) hasCondition(kind kruise.UnitedDeploymentConditionType) bool {
	return slices.ContainsFunc(t.status.Conditions, func(c kruise.UnitedDeploymentCondition) bool { return c.Type == kind })
}

// findWaitingSubsets returns the subsets that select no node, and those with pods that find no node.
func (t *reconcileRound) findWaitingSubsets(ctx context.Context) (nowhere, late []string, err error) {
	for _, p := range t.parts {
		if p.unschedulable { // its pods were moved, or other subsets have replacements
			late = append(late, p.Name)
		}
		if p.child == nil || p.child.ready >= p.child.replicas {
			continue
		}
		if p.pods == nil {
			if err := t.podsOf(ctx, p); err != nil {
				return nil, nil, err
			}
		}
		stuck, waits, runs := 0, false, false
		for _, pod := range p.pods {
			waits, runs = waits || pod.Spec.NodeName == "", runs || pod.Spec.NodeName != ""
			if is, again := subset.IsUnschedulable(pod, t.criticalDuration(), t.now); is {
				stuck++
			} else if again > 0 {
				t.requeueWithin(max(again, subset.Unhurried))
			}
		}
		if waits && !runs {
			none, err := t.selectsNoNode(ctx, p)
			if err != nil {
				return nil, nil, err
			}
			if none {
				nowhere = append(nowhere, p.Name)
				continue
			}
		}
		if stuck > 0 && !p.unschedulable {
			late = append(late, fmt.Sprintf("%s (%d)", p.Name, stuck))
		}
	}
	return nowhere, late, nil
}

// nodesAgain is the time after which the controller checks again for nodes with the labels that a subset requires. A new node without room
// leads to no event of a pod.
const nodesAgain = 30 * time.Second

// selectsNoNode reports whether no node has the labels that a subset requires. If so, it requeues to check again.
func (t *reconcileRound) selectsNoNode(ctx context.Context, p *subsetState) (bool, error) {
	nowhere, err := subset.MatchesNoNode(ctx, t.r.Client, p.NodeSelectorTerm)
	if nowhere {
		t.requeueWithin(nodesAgain)
	}
	return nowhere, err
}

// describeFullSubsets names the subsets if all of them together take fewer pods than spec.replicas.
func (t *reconcileRound) describeFullSubsets(a allocated) string {
	if a.held != nil || t.d.Spec.Replicas == nil || t.strategy == placement.Reserve { // with Reserve, other subsets have replacements
		return ""
	}
	sum, names := 0, []string{}
	for i, s := range a.in.Subsets {
		n := int(t.parts[i].replicas)
		sum += min(n, s.ReplicaQuota(t.strategy))
		what := "holds what it has"
		switch d := a.out.DeniedAt(s.Name); {
		case a.out.HeldAt(s.Name) != nil:
		case d != nil && (s.Max == nil || t.strategy == placement.Fixed || n < *s.Max):
			what = "is denied more, by rule " + d.Rule
		case s.Max != nil && t.strategy != placement.Fixed:
			what = "has the most it may have"
		default:
			what = "has what it is to have"
		}
		names = append(names, fmt.Sprintf("%s (%d) %s", s.Name, n, what))
	}
	if missing := int(*t.d.Spec.Replicas) - sum; missing > 0 {
		return fmt.Sprintf("%d of %d replicas are in no subset: %s.", missing, *t.d.Spec.Replicas, strings.Join(names, ", "))
	}
	return ""
}

// surplusSubsets returns the names of the subsets of surplus workloads.
func (t *reconcileRound) surplusSubsets() (names []string) {
	for _, c := range t.surplus {
		names = append(names, c.subsetName())
	}
	slices.Sort(names)
	return slices.Compact(names)
}
