// SPDX-License-Identifier: Apache-2.0

package nodepodprobe

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/openkruise"
	"github.com/regatta-sh/regatta/test/rules"
)

// What OpenKruise has its nodes probe, and what it has marked pods with, is as it is here:
// taking it over writes nothing.
func TestTakingOverFromOpenKruiseWritesNothing(t *testing.T) {
	e := rules.Engine(t, "")
	scheme := apiserver.Scheme(t)
	b := fakeclient.NewClientBuilder(scheme).WithIndex(&corev1.Pod{}, nodes.Index, nodes.IndexValue)
	var names []string
	pods := 0
	for _, o := range openkruise.Objects(t, scheme, "testdata/openkruise.yaml") {
		b = b.WithObjects(o)
		switch o.(type) {
		case *v1alpha1.NodePodProbe:
			names = append(names, o.GetName())
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: o.GetName()}}
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
			b = b.WithObjects(node)
		case *corev1.Pod:
			pods++
		}
	}
	if len(names) != 4 || pods != 3 {
		t.Fatalf("read were %d nodes and %d pods", len(names), pods)
	}
	written := func(o client.Object) error {
		t.Errorf("%T %s was written", o, o.GetName())
		return nil
	}
	c := b.WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return written(o)
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
			return written(o)
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			return written(o)
		},
	}).Build()
	r := New(reconcile.Deps{Client: c, Live: c, Events: record.NewFakeRecorder(100), Engine: e})
	for _, name := range names {
		if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}); err != nil {
			t.Error(err)
		}
	}
}
