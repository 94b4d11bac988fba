// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/gatedkinds"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// newPulls is a NodeImage of a node with labels that are not its own yet: a tag of it has to go in 20 s, another one is overdue, and a
// third one is so in a minute.
func newPulls(now time.Time) (*corev1.Node, *kruise.NodeImage) {
	at := func(ago time.Duration) *metav1.Time { return ptr.To(metav1.NewTime(now.Add(-ago))) }
	image := &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	image.Spec.Images = map[string]kruise.ImageSpec{"nginx": {Tags: []kruise.ImageTagSpec{
		{Tag: "1", CreatedAt: at(time.Minute), PullPolicy: &kruise.ImageTagPullPolicy{TTLSecondsAfterFinished: ptr.To[int32](30)}},
		{Tag: "2", CreatedAt: at(responseTime), PullPolicy: &kruise.ImageTagPullPolicy{}},
		{Tag: "3", CreatedAt: at(responseTime - time.Minute), PullPolicy: &kruise.ImageTagPullPolicy{}},
	}}}
	image.Status.ImageStatuses = map[string]kruise.ImageStatus{"nginx": {Tags: []kruise.ImageTagStatus{
		{Tag: "1", Phase: kruise.ImagePhaseSucceeded, CompletionTime: at(10 * time.Second)},
	}}}
	image.Status.Conditions = []metav1.Condition{{Type: gatedkinds.Stalled, Status: metav1.ConditionTrue, Reason: gatedkinds.FeatureGateOff}}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"zone": "a"}}}, image
}

// A write that fails takes away no timer: what the node has to answer for, and what has to go, is known before it.
func TestTimersOfANodeImageSurviveErrors(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for what, fails := range map[string]interceptor.Funcs{
		"its spec cannot be written": {Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return errors.New("broken")
		}},
		"its status cannot be written": {SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return errors.New("broken")
		}},
	} {
		node, image := newPulls(now)
		c := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(node, image).WithStatusSubresource(image).WithInterceptorFuncs(fails).Build()
		r := New(reconcile.Deps{Client: c, Live: c, Events: record.NewFakeRecorder(9), Now: func() time.Time { return now }})
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(image)})
		if err == nil || result.RequeueAfter != 20*time.Second {
			t.Errorf("%s: again in %s: %v", what, result.RequeueAfter, err)
		}
	}
}

// A NodeImage that a gate held up says so no more once the gate is on.
func TestANodeImageIsStalledNoMoreOnceItsGateIsOn(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	node, image := newPulls(now)
	image.Spec.Images = nil
	c := fake.NewClientBuilder().WithScheme(apiserver.Scheme(t)).WithObjects(node, image).WithStatusSubresource(image).Build()
	r := New(reconcile.Deps{Client: c, Live: c, Events: record.NewFakeRecorder(9), Now: func() time.Time { return now }})
	if _, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(image)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(image), image); err != nil || len(image.Status.Conditions) != 1 || !meta.IsStatusConditionTrue(image.Status.Conditions, kruise.ConditionReady) || len(image.Status.ImageStatuses) != 1 {
		t.Errorf("the status is %+v: %v", image.Status, err)
	}
}
