// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/test/faultinjection"
)

func TestNoFailedCallLeavesANodeImageBehind(t *testing.T) {
	ready := func(name string) *corev1.Node {
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "a"}}}
		o.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 2, 59, 50, 0, time.UTC))}}
		return o
	}
	old := &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
	wanted := func(tag, job string) kruise.ImageTagSpec {
		return kruise.ImageTagSpec{
			Tag: tag, CreatedAt: ptr.To(metav1.NewTime(time.Date(2026, 1, 2, 2, 59, 50, 0, time.UTC))), PullPolicy: &kruise.ImageTagPullPolicy{},
			OwnerReferences: []corev1.ObjectReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "ImagePullJob", Namespace: "shop", Name: job, UID: "job"}},
		}
	}
	old.Spec.Images = map[string]kruise.ImageSpec{"nginx": {Tags: []kruise.ImageTagSpec{wanted("1", "warm"), wanted("2", "gone")}}}
	job := &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "warm", UID: "job"}}
	for name, tc := range map[string]struct {
		objects []client.Object
		node    string
	}{
		"created": {[]client.Object{ready("new")}, "new"},
		"cleaned": {[]client.Object{ready("old"), old, job}, "old"},
		"deleted": {[]client.Object{old, job}, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			faultinjection.Scenario{
				Objects: tc.objects,
				New: func(_ testing.TB, e faultinjection.Environment) reconcile.Reconciler {
					return New(reconcile.Deps{Client: e.Client, Live: e.Client, Events: e.Events, Now: e.Clock})
				},
				Requests: []reconcile.Request{{NamespacedName: client.ObjectKey{Name: tc.node}}},
				Watches:  map[string]faultinjection.Changes{"ImagePullJob": faultinjection.NoChanges},
			}.Run(t)
		})
	}
}

// A node that is gone for good, and is not deleted, never reports the end of what it has begun to pull. It fails without a deadline, too.
func TestAPullOfANodeThatIsGoneForGoodFails(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC))}}
	image := &kruise.NodeImage{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	image.Spec.Images = map[string]kruise.ImageSpec{"nginx": {Tags: []kruise.ImageTagSpec{{Tag: "1", CreatedAt: ptr.To(metav1.NewTime(time.Date(2026, 1, 2, 2, 0, 0, 0, time.UTC)))}}}}
	image.Status.ImageStatuses = map[string]kruise.ImageStatus{"nginx": {Tags: []kruise.ImageTagStatus{{Tag: "1", Phase: kruise.ImagePhasePulling}}}}
	faultinjection.Scenario{
		Objects: []client.Object{node, image},
		New: func(_ testing.TB, e faultinjection.Environment) reconcile.Reconciler {
			return New(reconcile.Deps{Client: e.Client, Live: e.Client, Events: e.Events, Now: e.Clock})
		},
		Requests: []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(node)}},
	}.RunWait(t, faultinjection.Wait{
		Says: kruise.NodeImageNoResponseMessage,
		Reaches: func(c *faultinjection.Cluster) string {
			c.Must(c.Client.Get(c.Context(), client.ObjectKeyFromObject(image), image))
			if s := statusOf(image, "nginx", "1"); s.Phase != kruise.ImagePhaseFailed || s.CompletionTime.Sub(node.Status.Conditions[0].LastTransitionTime.Time) != responseTime {
				return fmt.Sprintf("the tag is %+v", s)
			}
			return ""
		},
	})
}

// A pull that was begun ends ten minutes after its node became not ready, or at the deadline of its user, and not before that.
func TestWhenAPullOfANodeThatIsNotReadyFails(t *testing.T) {
	created := time.Date(2026, 1, 2, 2, 0, 0, 0, time.UTC)
	node := func(status corev1.ConditionStatus) *corev1.Node {
		n := &corev1.Node{}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(created.Add(time.Minute))}}
		return n
	}
	for name, tc := range map[string]struct {
		node     *corev1.Node
		deadline *int64
		asked    time.Duration // after the first of them
		want     time.Duration // after it was asked for, 0 for never
	}{
		"a node that is ready":                           {node: node(corev1.ConditionTrue)},
		"one that is ready, with a deadline":             {node: node(corev1.ConditionTrue), deadline: ptr.To[int64](3600), want: 70 * time.Minute},
		"one that is not ready":                          {node: node(corev1.ConditionUnknown), want: 11 * time.Minute},
		"one that is not ready, with a late deadline":    {node: node(corev1.ConditionUnknown), deadline: ptr.To[int64](3600), want: 70 * time.Minute},
		"one that is not ready, with an early deadline":  {node: node(corev1.ConditionFalse), deadline: ptr.To[int64](30), want: 630 * time.Second},
		"one that was not ready before, and tells of it": {node: node(corev1.ConditionFalse), asked: time.Hour, want: 10 * time.Minute},
		"one that is gone":                               {},
	} {
		tag := &kruise.ImageTagSpec{Tag: "1", CreatedAt: ptr.To(metav1.NewTime(created.Add(tc.asked))), PullPolicy: &kruise.ImageTagPullPolicy{ActiveDeadlineSeconds: tc.deadline}}
		until, _ := endOf(tag, tc.node)
		if until.IsZero() != (tc.want == 0) || tc.want > 0 && until.Sub(tag.CreatedAt.Time) != tc.want {
			t.Errorf("%s: it fails at %s, want %s after it was asked for", name, until, tc.want)
		}
	}
}
