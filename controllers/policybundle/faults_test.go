// SPDX-License-Identifier: Apache-2.0

package policybundle

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/controllers/policybundle/fetch"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	"github.com/regatta-sh/regatta/controllers/policyhost/hosttest"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/bundle/gate"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// newFaultScenario is a bundle whose files a user changes once the first decide. The end state has what decides.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	key := platform("rules")
	b := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: key.Name, UID: "b", Generation: 1}}
	inline(hold("a", "First", "true"))(b)
	memory := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "memory"}}
	builtin := hosttest.BuiltinPolicies(t)
	var host *policyhost.Host
	return faultinjection.Scenario{
		Objects: []client.Object{b, memory},
		Applies: true,
		New: func(t testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			var err error
			host, err = policyhost.New(&rest.Config{}, "kruise-system", "node-a", policyhost.WithClient(e.Client), policyhost.WithBuiltin(builtin),
				policyhost.WithEngine(engine.WithPatience(20), engine.WithShare(1000), hosttest.WithCompiled(t)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(host.Close)
			elected := make(chan struct{})
			close(elected)
			r := &Reconciler{
				Client: e.Client, Reader: e.Client, Events: e.Events, Leads: elected, Host: host,
				Publisher: &Publisher{
					Platform: fetch.New(e.Client), Gate: gate.New(host.Engine().BuiltinBundle()), Host: host,
					Store:   bundlerevision.Store{Client: e.Client, Reader: e.Client, Namespace: "kruise-system"},
					Records: func() []decision.Record { return nil }, Clock: e.Clock,
				},
			}
			r.Publisher.WriteStatus = r.writeCheck
			return reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
				return r.Reconcile(ctx, req.NamespacedName)
			})
		},
		Requests: faultinjection.RequestFor(b),
		Watches:  map[string]faultinjection.Changes{"ControllerRevision": faultinjection.NoChanges, "ConfigMap": faultinjection.NoChanges},
		Others: func(c *faultinjection.Cluster) {
			found := &policy.ClusterPolicyBundle{}
			c.Must(c.Client.Get(c.Context(), key, found))
			decides := hosttest.HoldReasons(host.Engine(), "shop")
			if found.Generation == 1 && decides == "First" && found.Status.ActiveRevision != "" {
				inline(hold("a", "Second", "true"))(found)
				found.Generation = 2
				c.Must(c.Client.Update(c.Context(), found))
			}
			memory := memory.DeepCopy()
			memory.Data = map[string]string{"decides": decides}
			c.Must(c.Client.Update(c.Context(), memory))
		},
		Quiet: 6 * time.Minute, // it looks again all the time
	}
}

func TestNoFailedCallLeavesAnOldRevisionActive(t *testing.T) {
	newFaultScenario(t).Run(t)
}

// An archive that cannot be deleted any more keeps no revision from being tried.
func TestAnArchiveThatCannotBeDeletedKeepsNoRevisionWaiting(t *testing.T) {
	s := newFaultScenario(t)
	b := s.Objects[0].(*policy.ClusterPolicyBundle)
	b.Spec.Mode = policy.PolicyModeShadow
	s.Others = func(c *faultinjection.Cluster) {
		found := &policy.ClusterPolicyBundle{}
		c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(b), found))
		if found.Generation == 1 && found.Status.Candidate != nil {
			inline(hold("a", "Second", "true"))(found)
			found.Generation = 2
			c.Must(c.Client.Update(c.Context(), found))
		}
	}
	second, err := bundle.FromFiles(b.Name, hold("a", "Second", "true"))
	if err != nil {
		t.Fatal(err)
	}
	s.RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Verb == "delete" && c.Kind == "ControllerRevision" },
		Says:   bundle.ShortRevision(second.Revision),
		Reaches: func(c *faultinjection.Cluster) string {
			kept := &appsv1.ControllerRevisionList{}
			c.Must(c.Client.List(c.Context(), kept))
			if len(kept.Items) != 1 {
				return fmt.Sprintf("%d archives are kept", len(kept.Items))
			}
			return ""
		},
	})
}
