// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// refusal has writes of the children of subsets fail, by the verb and the name of the subset, such as "create c".
func (w *world) refusal(errs map[string]error) {
	of := func(verb string, o client.Object) error {
		if _, ok := o.(*kruise.CloneSet); !ok {
			return nil
		}
		return errs[verb+" "+o.GetLabels()[kruise.SubsetNameKey]]
	}
	w.r.Client = interceptor.NewClient(w.api, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := of("create", o); err != nil {
				return err
			}
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := of("update", o); err != nil {
				return err
			}
			return c.Update(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := of("delete", o); err != nil {
				return err
			}
			return c.Delete(ctx, o, opts...)
		},
	})
}

// images are those of the children, such as "a=nginx:1 b=nginx:2".
func (w *world) images() string {
	w.Helper()
	var out []string
	for _, c := range w.children() {
		out = append(out, c.subsetName()+"="+c.Object.(*kruise.CloneSet).Spec.Template.Spec.Containers[0].Image)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// A subset that cannot be created, updated or deleted keeps none of the others from what they are to be.
func TestARefusedSubsetKeepsNoOther(t *testing.T) {
	refused := errors.New("a webhook refuses it")
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "clonesets"}, "x", errors.New("another client wrote first"))
	for name, tc := range map[string]struct {
		errs   map[string]error
		edit   func(*kruise.UnitedDeployment)
		counts string
		images string
		// told are the events, and conditions those that are False.
		told, conditions string
	}{
		"one that is created": {
			errs: map[string]error{"create d": refused},
			edit: func(d *kruise.UnitedDeployment) {
				d.Spec.Topology.Subsets = append(d.Spec.Topology.Subsets, kruise.Subset{Name: "d"}, kruise.Subset{Name: "e"})
				*d.Spec.Replicas = 15
			},
			counts: "a=3 b=3 c=3 e=3", images: "a=nginx:2 b=nginx:2 c=nginx:2 e=nginx:2",
			told:       "Normal SuccessfulUpdateSubset Create 1 Subset (e), Warning FailedUpdateSubset creating the CloneSet of subset d: a webhook refuses it",
			conditions: "SubsetProvisioned",
		},
		"one that is updated, first": {
			errs:   map[string]error{"update a": refused},
			counts: "a=3 b=3 c=3", images: "a=nginx:1 b=nginx:2 c=nginx:2",
			told:       "Warning FailedUpdateSubset updating the CloneSet of subset a: a webhook refuses it",
			conditions: "SubsetUpdated",
		},
		"one that is updated, beside a lost race": {
			errs:   map[string]error{"update a": conflict, "update b": refused},
			counts: "a=3 b=3 c=3", images: "a=nginx:1 b=nginx:1 c=nginx:2",
			told:       "Warning FailedUpdateSubset updating the CloneSet of subset b: a webhook refuses it",
			conditions: "SubsetUpdated",
		},
		"one that is deleted": {
			errs: map[string]error{"delete c": refused},
			edit: func(d *kruise.UnitedDeployment) {
				d.Spec.Topology.Subsets, *d.Spec.Replicas = d.Spec.Topology.Subsets[:1], 3
			},
			counts: "a=3 c=3", images: "a=nginx:2 c=nginx:1",
			told:       "Normal SuccessfulUpdateSubset Delete 1 Subset (b), Warning FailedUpdateSubset deleting CloneSet NAME of subset c: a webhook refuses it",
			conditions: "SubsetProvisioned",
		},
		"one to which replicas are to move": {
			errs: map[string]error{"create d": refused},
			edit: func(d *kruise.UnitedDeployment) {
				d.Spec.Topology.Subsets = append(d.Spec.Topology.Subsets, kruise.Subset{Name: "d"})
				*d.Spec.Replicas = 8 // two of each, and nine there are
			},
			counts: "a=3 b=3 c=2", images: "a=nginx:2 b=nginx:2 c=nginx:2",
			told:       "Warning FailedUpdateSubset creating the CloneSet of subset d: a webhook refuses it",
			conditions: "SubsetProvisioned",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(d *kruise.UnitedDeployment) { *d.Spec.Replicas = 9 })
			w.zoneNodes("a", "b", "c")
			w.settle(2 * time.Second)
			w.told()
			w.refusal(tc.errs)
			w.edit(func(d *kruise.UnitedDeployment) {
				d.Generation++
				d.Spec.Template.CloneSetTemplate.Spec.Template = pods("nginx:2")
				if tc.edit != nil {
					tc.edit(d)
				}
			})
			for range 3 {
				if _, err := w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}); err == nil {
					t.Error("there was no error")
				}
			}
			if counts, images := w.counts(), w.images(); counts != tc.counts || images != tc.images {
				t.Errorf("the subsets have %s, want %s, and the images %s, want %s", counts, tc.counts, images, tc.images)
			}
			told := w.told()
			for i := range told {
				for _, c := range w.children() {
					told[i] = strings.ReplaceAll(told[i], c.GetName(), "NAME")
				}
			}
			var conditions []string
			for _, c := range w.get().Status.Conditions {
				if c.Status == "False" && strings.HasPrefix(string(c.Type), "Subset") {
					conditions = append(conditions, string(c.Type))
				}
			}
			if got := strings.Join(told, ", "); got != tc.told || strings.Join(conditions, " ") != tc.conditions {
				t.Errorf("told is %q, want %q; False are %v, want %s", got, tc.told, conditions, tc.conditions)
			}
		})
	}
}
