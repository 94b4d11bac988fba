// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// noon is when the examples are looked at.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// webSet is a CloneSet of ten pods, some of which are updated and some of these
// available.
func webSet(updated, done int, change func(*kruise.CloneSet)) *kruise.CloneSet {
	set := &kruise.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Generation: 2},
		Spec: kruise.CloneSetSpec{
			Replicas: ptr.To(int32(10)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			UpdateStrategy: kruise.CloneSetUpdateStrategy{Type: "RollingUpdate", RollingUpdate: &kruise.RollingUpdateCloneSetStrategy{
				PodUpdatePolicy: "InPlaceIfPossible", MaxUnavailable: ptr.To(intstr.FromString("20%")),
			}},
		},
		Status: kruise.CloneSetStatus{
			ObservedGeneration: 2, Replicas: 10, AvailableReplicas: int32(10 - updated + done), UpdatedReplicas: int32(updated),
			UpdatedAvailableReplicas: int32(done), ExpectedUpdatedReplicas: 10, UpdateRevision: "web-new", CurrentRevision: "web-old",
		},
	}
	if change != nil {
		change(set)
	}
	return set
}

// snapshotOf is what is known of a CloneSet alone.
func snapshotOf(set *kruise.CloneSet) snapshot {
	kind, _ := kinds.FindByGroupKind(kruise.Kind("CloneSet"))
	return snapshot{about: web(), kind: kind, state: ptr.To(kind.View(set))}
}

// web is the name of the CloneSet of the examples.
func web() target.Target {
	return target.Target{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web"}
}

// halfway is a rollout that goes zone by zone.
func halfway() snapshot {
	s := snapshotOf(webSet(4, 2, nil))
	s.revisions = []revision{{name: "web-old", pods: 6, ready: 6}, {name: "web-new", pods: 4, ready: 2, newest: true}}
	s.events = []event{
		{at: noon().Add(-5 * time.Second), warning: true, reason: "UpdateHeld", message: "OtherZoneFirst: Zone a first.", count: 1},
		{at: noon().Add(-time.Minute), reason: "SuccessfulUpdatePodInPlace", message: "successfully update pod web-1", count: 4},
	}
	s.answer = &explain.Answer{
		Verdict: explain.Updating, Reason: "RolloutInProgress", Decided: noon().Add(-time.Second), Replica: "manager-x",
		Facts:  []explain.Fact{{Name: "strategy.maxUnavailable", Value: "2"}},
		Groups: map[string]map[string]points.Group{"zone": {"a": {Total: 5, Updated: 4, Unavailable: 2}, "b": {Total: 5}}},
		Why: []explain.ReasonCount{
			{Verdict: explain.Held, Reason: "OtherZoneFirst", Rule: "one-zone.other", Message: "CloneSet shop/web updates one zone at a time, so pods in zone b wait.", Pod: "web-6", Pods: 5},
			{Verdict: explain.Updating, Reason: "NotAvailable", Message: "It has its revision, but it is not ready.", Pod: "web-3", Pods: 2},
			{Verdict: explain.Waiting, Reason: "MaxUnavailableReached", Rule: decision.RuleWalk, Message: "It waits for others.", Pod: "web-5", Pods: 1},
		},
	}
	return s
}

// onNodes is halfway of a kind that has a pod on each node.
func onNodes() snapshot {
	s := halfway()
	s.answer.Groups, s.answer.Why, s.events = nil, nil, nil
	s.answer.Nodes = []explain.Node{
		{Name: "node-1", Pod: "web-1", Verdict: explain.Moved, Reason: "Selected"},
		{Name: "node-12", Pod: "web-2", Verdict: explain.Held, Reason: "Pressure", Rule: "healthy.pressure"},
		{Name: "node-3", Pod: "web-3", Verdict: explain.Waiting, Reason: "MaxUnavailableReached", Rule: decision.RuleWalk},
	}
	return s
}

func complete() snapshot {
	s := halfway()
	s.state = snapshotOf(webSet(10, 10, nil)).state
	s.revisions = []revision{{name: "web-new", pods: 10, ready: 10, newest: true}}
	a := *s.answer
	a.Verdict, a.Why, a.Groups, a.Nodes = explain.UpToDate, nil, nil, nil
	s.answer, s.events = &a, nil
	return s
}

func exceeded(set *kruise.CloneSet) {
	set.Status.Conditions = []kruise.CloneSetCondition{{
		Type: kruise.CloneSetConditionProgressing, Status: corev1.ConditionFalse,
		Reason: kruise.CloneSetProgressDeadlineExceededReason, Message: "CloneSet revision web-new has timed out progressing",
	}}
}
