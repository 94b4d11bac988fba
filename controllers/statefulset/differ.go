// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// claimsDifferCondition returns the condition that reports claims which differ from their templates for good;
// nil if there are none. An edit of a template is accepted, but does not change such claims.
func (k *Kind) claimsDifferCondition(f *rollout.Facts) *condition.Condition {
	set, found := f.Workload.(*kruise.StatefulSet), f.Found.(*claimSet)
	told := map[string][]string{} // by reason
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		names := map[string][]string{} // by what differs
		var kinds []difference
		for _, n := range k.desiredOrdinals(set).AllOrdinals() {
			claim := found.named[claimName(set, template.Name, n)]
			if claim == nil {
				continue
			}
			d := k.lastingDifference(set, found, n, claim, template)
			if d == nil {
				continue
			}
			if names[d.text] == nil {
				kinds = append(kinds, *d)
			}
			names[d.text] = append(names[d.text], claim.Name)
		}
		for _, d := range kinds {
			told[d.reason] = append(told[d.reason], fmt.Sprintf("%s: %s.", summarizeClaims(names[d.text]), d.text))
		}
	}
	for _, reason := range []string{kruise.VolumeClaimsCannotGrowReason, kruise.VolumeClaimsOnDeleteReason, kruise.VolumeClaimsLargerReason} {
		if len(told[reason]) > 0 {
			return &condition.Condition{
				Type: string(kruise.StatefulSetVolumeClaimsDiffer), Status: metav1.ConditionTrue, Reason: reason, Message: message.Shorten(strings.Join(told[reason], " ")),
			}
		}
	}
	return nil
}

// difference is a lasting difference between a claim and its template.
type difference struct{ reason, text string }

// lastingDifference returns how a claim differs from its template if nothing is going to change that, nil if it does not.
func (k *Kind) lastingDifference(set *kruise.StatefulSet, found *claimSet, ordinal int, claim, template *corev1.PersistentVolumeClaim) *difference {
	asks, wants := claim.Spec.Resources.Requests.Storage(), template.Spec.Resources.Requests.Storage()
	if k.growsClaims(set) {
		for _, c := range found.growth[ordinal].Differ {
			if c.Claim == claim.Name && c.Obstacle != "" {
				return &difference{kruise.VolumeClaimsCannotGrowReason, describeObstacle(c)}
			}
		}
	} else if fixed := immutableDifferences(points.ClaimChange{}, claim, template); len(fixed) > 0 {
		return &difference{kruise.VolumeClaimsOnDeleteReason, fmt.Sprintf("%s %s, not %s; %s", describeField(fixed[0].What), fixed[0].From, fixed[0].To, onDelete)}
	} else if asks.Cmp(*wants) < 0 {
		return &difference{kruise.VolumeClaimsOnDeleteReason, fmt.Sprintf("size %s, not %s; %s", asks, wants, onDelete)}
	}
	if asks.Cmp(*wants) > 0 && !(k.growsClaims(set) && needsResize(set, claim, template)) {
		return &difference{kruise.VolumeClaimsLargerReason, fmt.Sprintf("size %s is more than the %s of the template; Kubernetes never shrinks a claim", asks, wants)}
	}
	return nil
}

const onDelete = "with volumeClaimUpdateStrategy OnDelete a claim stays as it is until a client deletes it"

func describeObstacle(c points.ClaimChange) string {
	switch c.Obstacle {
	case points.ObstacleClass:
		return fmt.Sprintf("size %s, not %s, and storage class %s does not allow volumes to grow", c.From, c.To, c.Class)
	case points.ObstacleNoClass:
		return fmt.Sprintf("size %s, not %s, and storage class %q is not there to say whether volumes may grow", c.From, c.To, c.Class)
	}
	return fmt.Sprintf("%s %s, not %s, which Kubernetes never changes on a claim", describeField(c.What), c.From, c.To)
}

func describeField(what string) string {
	switch what {
	case points.ClaimClass:
		return "storage class"
	case points.ClaimAccessModes:
		return "access modes"
	}
	return what
}

// summarizeClaims names the first few claims, and says how many more there are.
func summarizeClaims(names []string) string {
	if len(names) == 1 {
		return "Claim " + names[0]
	}
	if rest := len(names) - 3; rest > 0 {
		return fmt.Sprintf("Claims %s and %d more", strings.Join(names[:3], ", "), rest)
	}
	last := len(names) - 1
	return fmt.Sprintf("Claims %s and %s", strings.Join(names[:last], ", "), names[last])
}

// ExtraFacts implements rollout.KindWithExtraFacts.
func (k *Kind) ExtraFacts(f *rollout.Facts) []explain.Fact {
	if c := k.claimsDifferCondition(f); c != nil {
		return []explain.Fact{{Name: "volumeClaims.differ", Value: c.Message}}
	}
	return nil
}

// tellDiffering adds the condition of claims that differ, and records an event if some of them cannot
// grow.
func (s *scaler) tellDiffering(conditions []kruise.WorkloadCondition) []kruise.WorkloadCondition {
	c := s.k.claimsDifferCondition(s.f)
	if c == nil {
		return conditions
	}
	out, _ := rollout.WithCondition(conditions, *c, s.set.Status.Conditions, s.f.Now)
	was := rollout.FindCondition(s.set.Status.Conditions, c.Type)
	if c.Reason == kruise.VolumeClaimsCannotGrowReason && (was == nil || was.Message != c.Message) {
		s.r.RecordWarning(kruise.FailedUpdatePVCReason, c.Message)
	}
	return out
}
