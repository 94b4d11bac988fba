// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// While a quota refuses the workload of a subset that has another name, the old one waits for the new one, and this for the quota.
func TestASubsetThatIsRenamedUnderAQuotaOfWorkloads(t *testing.T) {
	quota := 3
	for name, tc := range map[string]struct {
		err    error
		rename func(*kruise.UnitedDeployment)
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
			w := newWorld(t, func(d *kruise.UnitedDeployment) { d.Spec.Replicas = ptr.To[int32](9) })
			w.zoneNodes("a", "b", "c")
			w.settle(2 * time.Second)
			w.r.client = interceptor.NewClient(w.api, interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				list := &kruise.CloneSetList{}
				if err := w.api.List(ctx, list); err != nil {
					return err
				}
				switch _, ok := o.(*kruise.CloneSet); {
				case tc.err != nil && o.GetGenerateName() != "":
					return tc.err
				case ok && len(list.Items) >= quota:
					return apierrors.NewForbidden(schema.GroupResource{Resource: "clonesets"}, o.GetName(), fmt.Errorf("exceeded quota: few, requested: count/clonesets.apps.kruise.io=1, used: %d", len(list.Items)))
				}
				return c.Create(ctx, o, opts...)
			}})
			w.edit(tc.rename)
			run := func(seconds int) {
				for range seconds {
					_, _ = w.r.Reconcile(t.Context(), reconcile.Request{NamespacedName: w.key}) // it fails while it is refused
					w.run()
					w.now = w.now.Add(time.Second)
				}
			}
			run(5)
			if got := w.counts(); got != tc.first {
				t.Errorf("at first the subsets have %s, want %s", got, tc.first)
			}
			run(70)
			if got := w.counts(); got != tc.then {
				t.Errorf("in the end the subsets have %s, want %s; told is %q", got, tc.then, w.told())
			}
		})
	}
}
