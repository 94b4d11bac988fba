// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/faultinjection"
	"github.com/regatta-sh/regatta/test/rules"
)

// newFaultScenario is a distribution with a copy that is right, one that is old, one that is missing, and one that is too much.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	e := rules.Engine(t, "")
	d := &kruise.ResourceDistribution{ObjectMeta: metav1.ObjectMeta{Name: "ca", UID: "d"}}
	d.Spec.Resource = runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","data":{"key":"b25l"},"kind":"Secret","metadata":{"name":"ca"}}`)}
	d.Spec.Targets = included("old", "missing")
	d.Status.ObservedGeneration = 1
	old := metav1.NewTime(metav1.Unix(0, 0).Time)
	objects := []client.Object{d}
	for _, name := range []string{"old", "missing", "extra"} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: old}})
		if name != "missing" {
			copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: name, Name: "ca", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, kruise.GroupVersion.WithKind("ResourceDistribution"))},
			}}
			objects = append(objects, copied)
		}
	}
	return faultinjection.Scenario{
		Objects: objects,
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: env.Client, Events: env.Events, Engine: e, Now: env.Clock})
		},
		Requests: faultinjection.RequestFor(d),
		// The patch of a Secret is how one is read: what it does not find is not there.
		Skip: func(c faultinjection.Call, fault faultinjection.Fault) bool {
			return fault == faultinjection.NotFound && c.Verb == "patch" && c.Kind == "Secret"
		},
		Watches: map[string]faultinjection.Changes{"ResourceDistribution": faultinjection.ChangesOfSpec, "Secret": faultinjection.NoChanges},
	}
}

func TestNoFailedCallLeavesACopyBehind(t *testing.T) {
	newFaultScenario(t).Run(t)
}

func TestACopyThatIsRefusedIsTold(t *testing.T) {
	newFaultScenario(t).RunWait(t, faultinjection.Wait{
		Refuse: func(c faultinjection.Call) bool { return c.Kind == "Secret" && c.Verb == "create" },
		Says:   "an admission webhook refuses it",
		Reaches: func(c *faultinjection.Cluster) string {
			if err := c.Client.Get(c.Context(), client.ObjectKey{Namespace: "missing", Name: "ca"}, &corev1.Secret{}); err != nil {
				return err.Error()
			}
			return ""
		},
	})
}
