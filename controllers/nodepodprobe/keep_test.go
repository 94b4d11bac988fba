// SPDX-License-Identifier: Apache-2.0

package nodepodprobe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/gatedkinds"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/rules"
)

// A NodePodProbe that a gate held up says so no more once the gate is on.
func TestANodePodProbeIsStalledNoMoreOnceItsGateIsOn(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	probes := &v1alpha1.NodePodProbe{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	probes.Spec.PodProbes = []v1alpha1.PodProbe{{Namespace: "shop", Name: "gone", UID: "u"}}
	probes.Status.Conditions = []metav1.Condition{{Type: gatedkinds.Stalled, Status: metav1.ConditionTrue, Reason: gatedkinds.FeatureGateOff}}
	c := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(node, probes).WithStatusSubresource(probes).WithIndex(&corev1.Pod{}, nodes.Index, nodes.IndexValue).Build()
	r := New(reconcile.Deps{Client: c, Live: c, Events: record.NewFakeRecorder(100), Engine: rules.Engine(t, "")})
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(probes)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(probes), probes); err != nil || len(probes.Status.Conditions) > 0 || len(probes.Spec.PodProbes) > 0 {
		t.Errorf("it is %+v: %v", probes, err)
	}
}
