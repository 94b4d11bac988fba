// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// A subset that is held keeps its child, and with it its share: the others get no more pods than theirs, and do not wait for it.
func TestASubsetThatIsHeldKeepsItsShareWhereTheKindChanges(t *testing.T) {
	w := newWorld(t, nil)
	w.rule(`hold contains {"target": "c", "reason": "Freeze", "message": "m"} if input.deployment.annotations.held`)
	settle := func() {
		for range 6 {
			w.reconcile()
			w.runWithin(100)
			w.now = w.now.Add(time.Second)
		}
	}
	settle()
	w.edit(func(d *kruise.UnitedDeployment) { d.Annotations = map[string]string{"held": "yes"} })
	w.edit(templates()["Deployment"])
	settle()
	kinds := ""
	for _, name := range []string{"a", "b", "c"} {
		kinds += w.child(name).kind.Kind + " "
	}
	if got := w.counts(); got != "a=3 b=3 c=4" || kinds != "Deployment Deployment CloneSet " {
		t.Errorf("the subsets have %s, as %s", got, kinds)
	}
	w.edit(func(d *kruise.UnitedDeployment) { d.Annotations = nil })
	settle()
	if got := w.counts(); got != "a=3 b=3 c=4" || w.child("c").kind.Kind != "Deployment" {
		t.Errorf("without the hold the subsets have %s", got)
	}
}

// A second child of a subset is deleted where nothing holds the subset.
func TestADuplicateOfAHeldSubsetStays(t *testing.T) {
	for name, rule := range map[string]string{
		"all are held": `hold contains {"reason": "Freeze", "message": "m"} if input.deployment.annotations.held`,
		"one is held":  `hold contains {"target": "a", "reason": "Freeze", "message": "m"} if input.deployment.annotations.held`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.rule(rule)
			w.reconcile()
			w.edit(func(d *kruise.UnitedDeployment) { d.Annotations = map[string]string{"held": "yes"} })
			w.now = w.now.Add(time.Minute)
			w.duplicateChild("a")
			w.reconcile()
			if n := len(w.children()); n != 4 {
				t.Errorf("%d children are left while the subset is held", n)
			}
			w.edit(func(d *kruise.UnitedDeployment) { d.Annotations = nil })
			w.reconcile()
			if n := len(w.children()); n != 3 {
				t.Errorf("%d children are left without the hold", n)
			}
		})
	}
}

// A subset whose child of another kind is held waits for no room: another one that is renamed gets some, though an earlier one got none.
func TestRoomIsMadeAgainBesideAHeldChildOfAnotherKind(t *testing.T) {
	w := newWorld(t, func(d *kruise.UnitedDeployment) {
		d.Spec.Replicas = ptr.To[int32](9)
		templates()["Deployment"](d)
	})
	w.rule(`hold contains {"target": "c", "reason": "Freeze", "message": "m"} if input.deployment.annotations.held`)
	w.zoneNodes("a", "b", "c")
	w.settle(2 * time.Second)
	w.edit(func(d *kruise.UnitedDeployment) {
		d.Annotations = map[string]string{"held": "yes"}
		d.Spec.Template = kruise.SubsetTemplate{CloneSetTemplate: &kruise.CloneSetTemplateSpec{}}
		d.Spec.Template.CloneSetTemplate.Spec.Template = pods("nginx:1")
	})
	w.settle(3 * time.Second)
	if got := w.counts(); got != "a=3 b=3 c=3" || w.child("a").kind.Kind != "CloneSet" || w.child("c").kind.Kind != "Deployment" {
		t.Fatalf("the subsets have %s", got)
	}
	others := 0
	w.r.Client = interceptor.NewClient(w.api, interceptor.Funcs{Create: w.createWithinQuota(2, func(own int) int { return own + others })})
	w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[1].Name = "d" })
	w.runRefused(1)
	others = 1 // another client takes the room of b
	w.runRefused(70)
	if got := w.counts(); got != "a=3 c=3" {
		t.Fatalf("the subsets have %s", got)
	}
	w.edit(func(d *kruise.UnitedDeployment) {
		d.Spec.Topology.Subsets = append(d.Spec.Topology.Subsets[:1], d.Spec.Topology.Subsets[2:]...)
	})
	w.runRefused(70)
	w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[0].Name = "e" })
	w.runRefused(70)
	if got := w.counts(); got != "c=3 e=6" {
		t.Errorf("the subsets have %s; told is %q", got, w.told())
	}
	if c := w.child("c"); c.kind.Kind != "Deployment" {
		t.Errorf("the child of the held subset is a %s", c.kind.Kind)
	}
}
