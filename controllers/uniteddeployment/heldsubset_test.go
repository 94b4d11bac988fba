// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"testing"
	"time"

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
