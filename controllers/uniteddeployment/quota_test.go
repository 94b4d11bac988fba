// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// While a quota refuses the workload of a subset that has another name, the old one waits for the new one, and this for the quota.
func TestASubsetThatIsRenamedUnderAQuotaOfWorkloads(t *testing.T) {
	for name, tc := range map[string]struct {
		// quota is how many workloads there may be, three if it is 0.
		quota int
		// others has another client use up what is left of the quota.
		others bool
		err    error
		rename func(*kruise.UnitedDeployment)
		// crash is how many pods of subsets are not ready after the edit.
		crash map[string]int
		// first are the children a moment after the edit, then those in the end.
		first, then string
	}{
		"one": {
			rename: func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[2].Name = "d" },
			first:  "a=3 b=3 d=3", then: "a=3 b=3 d=3",
		},
		"two, one after the other": {
			rename: func(d *kruise.UnitedDeployment) {
				d.Spec.Topology.Subsets[1].Name, d.Spec.Topology.Subsets[2].Name = "e", "d"
			},
			first: "a=3 c=3 e=3", then: "a=3 d=3 e=3",
		},
		"two, and the quota was lowered: nothing that goes makes room": {
			rename: func(d *kruise.UnitedDeployment) {
				d.Spec.Topology.Subsets[1].Name, d.Spec.Topology.Subsets[2].Name = "e", "d"
			},
			quota: 1,
			first: "a=3 b=3 c=3", then: "a=3 b=3 c=3",
		},
		"one, beside one that is to have no pods": {
			rename: func(d *kruise.UnitedDeployment) {
				d.Spec.Replicas = ptr.To[int32](6)
				d.Spec.Topology.Subsets[0].Replicas = ptr.To(intstr.FromInt32(6))
				d.Spec.Topology.Subsets[1].Replicas = ptr.To(intstr.FromInt32(0))
				d.Spec.Topology.Subsets = append(d.Spec.Topology.Subsets[:2], kruise.Subset{Name: "d", Replicas: ptr.To(intstr.FromInt32(0))})
			},
			crash: map[string]int{"a": 4},
			first: "a=6 b=0 c=3", then: "a=6 b=0 c=3",
		},
		"two, and another client takes the room of the first": {
			rename: func(d *kruise.UnitedDeployment) {
				d.Spec.Topology.Subsets[1].Name, d.Spec.Topology.Subsets[2].Name = "e", "d"
			},
			others: true,
			first:  "a=3 c=3", then: "a=3 c=3",
		},
		"one that anything else refuses": {
			rename: func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[2].Name = "d" },
			err:    apierrors.NewForbidden(schema.GroupResource{Resource: "clonesets"}, "d", errors.New("a webhook refuses it")),
			first:  "a=3 b=3 c=3", then: "a=3 b=3 c=3",
		},
		"one beside one of another kind": {
			rename: func(d *kruise.UnitedDeployment) { d.Spec.Template = ofDeployment(pods("nginx:1")) },
			err:    apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "d", errors.New("exceeded quota: few, requested: count/deployments.apps=1")),
			first:  "a=3 b=3 c=3", then: "a=3 b=3 c=3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			quota := cmp.Or(tc.quota, 3)
			w := newWorld(t, func(d *kruise.UnitedDeployment) { d.Spec.Replicas = ptr.To[int32](9) })
			w.zoneNodes("a", "b", "c")
			w.settle(2 * time.Second)
			create := w.createWithinQuota(quota, func(own int) int {
				if tc.others {
					return quota
				}
				return own
			})
			w.r.Client = interceptor.NewClient(w.api, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if tc.err != nil && o.GetGenerateName() != "" {
					return tc.err
				}
				return create(ctx, c, o, opts...)
			}})
			w.edit(tc.rename)
			w.crash = tc.crash
			w.runRefused(5)
			if got := w.counts(); got != tc.first {
				t.Errorf("at first the subsets have %s, want %s", got, tc.first)
			}
			w.runRefused(70)
			if got := w.counts(); got != tc.then {
				t.Errorf("in the end the subsets have %s, want %s; told is %q", got, tc.then, w.told())
			}
		})
	}
}

// A child that is given up for the room of another one goes with all of its pods: no scale-in before that makes room under a quota that
// counts objects.
func TestAChildThatIsGivenUpIsNotScaledInFirst(t *testing.T) {
	w := newWorld(t, func(d *kruise.UnitedDeployment) { d.Spec.Replicas = ptr.To[int32](9) })
	w.zoneNodes("a", "b", "c")
	w.settle(2 * time.Second)
	var written []string
	w.r.Client = interceptor.NewClient(w.api, interceptor.Funcs{
		Create: w.createWithinQuota(3, func(own int) int { return own }),
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			written = append(written, "update "+o.GetLabels()[kruise.SubsetNameKey])
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			written = append(written, "delete "+o.GetLabels()[kruise.SubsetNameKey])
			return c.Delete(ctx, o, opts...)
		},
	})
	w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[2].Name = "d" })
	_, _ = w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}) // the quota refuses the new one
	if got, want := fmt.Sprint(written), "[delete c]"; got != want {
		t.Errorf("written is %s, want %s", got, want)
	}
	_, _ = w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key})
	if got := w.counts(); got != "a=3 b=3 d=3" {
		t.Errorf("the subsets have %s, want a=3 b=3 d=3; told is %q", got, w.told())
	}
}

// A subset that is taken out of the spec needs no room any more, whatever took it, so that the next one that is renamed gets some.
func TestRoomIsMadeAgainAfterASubsetThatGotNone(t *testing.T) {
	w := newWorld(t, func(d *kruise.UnitedDeployment) { d.Spec.Replicas = ptr.To[int32](9) })
	w.zoneNodes("a", "b", "c")
	w.settle(2 * time.Second)
	others := 0
	w.r.Client = interceptor.NewClient(w.api, interceptor.Funcs{Create: w.createWithinQuota(3, func(own int) int { return own + others })})
	w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[2].Name = "d" })
	_, _ = w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key})
	others = 1 // another client takes the room of c
	w.runRefused(70)
	if got := w.counts(); got != "a=3 b=3" {
		t.Fatalf("the subsets have %s", got)
	}
	w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets = d.Spec.Topology.Subsets[:2] })
	w.runRefused(70)
	w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets[1].Name = "e" })
	w.runRefused(70)
	if got := w.counts(); got != "a=5 e=4" && got != "a=4 e=5" {
		t.Errorf("the subsets have %s; told is %q", got, w.told())
	}
}

// A duplicate that stays, since its subset is held, makes no room for a child that a quota refuses: another one is given up for it.
func TestADuplicateThatIsHeldMakesNoRoom(t *testing.T) {
	w := newWorld(t, func(d *kruise.UnitedDeployment) { d.Spec.Replicas = ptr.To[int32](9) })
	w.rule(`hold contains {"target": "a", "reason": "Freeze", "message": "m"} if input.deployment.annotations.held`)
	w.zoneNodes("a", "b", "c")
	w.settle(2 * time.Second)
	w.duplicateChild("a")
	w.r.Client = interceptor.NewClient(w.api, interceptor.Funcs{Create: w.createWithinQuota(4, func(own int) int { return own })})
	w.edit(func(d *kruise.UnitedDeployment) {
		d.Annotations = map[string]string{"held": "yes"}
		d.Spec.Topology.Subsets[2].Name = "d"
	})
	w.runRefused(70)
	found := map[string]int{}
	for _, c := range w.children() {
		found[c.subsetName()]++
	}
	if found["a"] != 2 || found["d"] != 1 || found["c"] != 0 {
		t.Errorf("the children are %v; told is %q", found, w.told())
	}
}

// createWithinQuota creates CloneSets as long as those that are in use, of so many of the world's own, are fewer than a quota allows.
func (w *world) createWithinQuota(quota int, countUsed func(own int) int) func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
	return func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		list := &kruise.CloneSetList{}
		if err := w.api.List(ctx, list); err != nil {
			return err
		}
		used := countUsed(len(list.Items))
		if _, ok := o.(*kruise.CloneSet); ok && used >= quota {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "clonesets"}, o.GetName(),
				fmt.Errorf("exceeded quota: few, requested: count/clonesets.apps.kruise.io=1, used: count/clonesets.apps.kruise.io=%d, limited: count/clonesets.apps.kruise.io=%d", used, quota))
		}
		return c.Create(ctx, o, opts...)
	}
}

// runRefused reconciles once a second, which fails while a child is refused.
func (w *world) runRefused(seconds int) {
	for range seconds {
		_, _ = w.r.Reconcile(w.Context(), reconcile.Request{NamespacedName: w.key})
		w.run()
		w.now = w.now.Add(time.Second)
	}
}
