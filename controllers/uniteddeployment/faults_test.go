// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

// newFaultScenario is a UnitedDeployment of two subsets whose CloneSets are ready at once. A user changes its image once they are.
func newFaultScenario(t *testing.T) faultinjection.Scenario {
	t.Helper()
	e := newEngine(t)
	d := &kruise.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "ud", Generation: 1}}
	d.Spec.Replicas = ptr.To[int32](3)
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	d.Spec.Template.CloneSetTemplate = &kruise.CloneSetTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	d.Spec.Template.CloneSetTemplate.Spec.Template = pods("nginx:1")
	for i, name := range []string{"a", "b"} { // with replicas of each: which one gets the third pod is no matter of faults
		d.Spec.Topology.Subsets = append(d.Spec.Topology.Subsets, kruise.Subset{Name: name, Replicas: ptr.To(intstr.FromInt(i + 1))})
	}
	return faultinjection.Scenario{
		Objects: []client.Object{d},
		Build: func(b *fake.ClientBuilder) {
			for _, o := range []client.Object{&corev1.Pod{}, &appsv1.ControllerRevision{}, &kruise.CloneSet{}, &kruise.StatefulSet{}, &appsv1.Deployment{}, &appsv1.StatefulSet{}} {
				b.WithIndex(o, rollout.OwnerIndex, rollout.OwnerUID)
			}
		},
		New: func(_ testing.TB, env faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: env.Client, Live: env.Client, Events: env.Events, Engine: e, Now: env.Clock})
		},
		Requests: faultinjection.RequestFor(d),
		Watches:  map[string]faultinjection.Changes{"UnitedDeployment": faultinjection.ChangesOfSpec, "ControllerRevision": faultinjection.NoChanges},
		Others:   runCloneSets,
		Random:   regexp.MustCompile(`web-([ab])-[a-z0-9]{5}\b`),
		Delay:    6 * time.Minute,
	}
}

// runCloneSets has CloneSets ready at once, and changes the image of a UnitedDeployment that is ready.
func runCloneSets(c *faultinjection.Cluster) {
	list := &kruise.CloneSetList{}
	c.Must(c.Client.List(c.Context(), list))
	for i := range list.Items {
		set := &list.Items[i]
		before := set.DeepCopy()
		n := ptr.Deref(set.Spec.Replicas, 0)
		set.Status = kruise.CloneSetStatus{ObservedGeneration: set.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpdatedReplicas: n, UpdatedReadyReplicas: n, UpdatedAvailableReplicas: n}
		c.PatchStatus(set, before)
	}
	d := &kruise.UnitedDeployment{}
	c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, d))
	if d.Generation == 1 && d.Status.ObservedGeneration == 1 && d.Status.ReadyReplicas == 3 {
		d.Generation = 2
		d.Spec.Template.CloneSetTemplate.Spec.Template = pods("nginx:2")
		c.Must(c.Client.Update(c.Context(), d))
	}
}

func TestNoFailedCallLeavesASubsetBehind(t *testing.T) {
	newFaultScenario(t).Run(t)
}

func TestAUnitedDeploymentSaysThatAQuotaRefusesItsSubsets(t *testing.T) {
	newFaultScenario(t).RunWait(t, faultinjection.RefuseCreates("CloneSet", func(c *faultinjection.Cluster) string {
		d := &kruise.UnitedDeployment{}
		c.Must(c.Client.Get(c.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, d))
		if d.Status.ReadyReplicas != 3 {
			return fmt.Sprintf("%d replicas are ready", d.Status.ReadyReplicas)
		}
		return ""
	}))
}
