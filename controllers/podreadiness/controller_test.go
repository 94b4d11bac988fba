// SPDX-License-Identifier: Apache-2.0

package podreadiness

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
)

func TestReconcile(t *testing.T) {
	gate := func(p *corev1.Pod) {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReady}}
	}
	owned := func(version, kind string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: "x", UID: "x", Controller: ptr.To(true)}}
		}
	}
	closed := func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kruise.KruisePodReady, Status: corev1.ConditionFalse, Message: `[{"userAgent":"Lifecycle","key":"preDeleteHook"}]`})
	}
	for name, tc := range map[string]struct {
		edits []func(*corev1.Pod)
		want  corev1.ConditionStatus
	}{
		"a pod with the gate":                 {[]func(*corev1.Pod){gate}, corev1.ConditionTrue},
		"a pod without":                       {nil, ""},
		"one that another client closed":      {[]func(*corev1.Pod){gate, closed}, corev1.ConditionFalse},
		"one of a CloneSet":                   {[]func(*corev1.Pod){gate, owned("apps.kruise.io/v1alpha1", "CloneSet")}, ""},
		"one of an Advanced StatefulSet":      {[]func(*corev1.Pod){gate, owned("apps.kruise.io/v1beta1", "StatefulSet")}, ""},
		"one of a StatefulSet":                {[]func(*corev1.Pod){gate, owned("apps/v1", "StatefulSet")}, corev1.ConditionTrue},
		"one of another API group's CloneSet": {[]func(*corev1.Pod){gate, owned("example.com/v1", "CloneSet")}, corev1.ConditionTrue},
		"one that has ended":                  {[]func(*corev1.Pod){gate, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }}, ""},
		"one with other conditions, in line": {[]func(*corev1.Pod){gate, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		}}, corev1.ConditionTrue},
	} {
		s := runtime.NewScheme()
		if err := corev1.AddToScheme(s); err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "u"}}
		for _, e := range tc.edits {
			e(pod)
		}
		others := len(pod.Status.Conditions)
		writes := 0
		c := fake.NewClientBuilder().WithScheme(s).WithObjects(pod).WithStatusSubresource(pod).WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if writes++; writes == 1 { // the kubelet was faster
					return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", nil)
				}
				return c.SubResource(sub).Patch(ctx, o, patch, opts...)
			},
		}).Build()
		r := &Reconciler{Client: c, Now: time.Now}
		for range 3 {
			if got, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pod)}); err != nil || writes == 1 && got.RequeueAfter == 0 {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
		got := &corev1.Pod{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), got); err != nil {
			t.Fatal(err)
		}
		status := corev1.ConditionStatus("")
		if found := inplace.Condition(got, kruise.KruisePodReady); found != nil {
			status = found.Status
		}
		if status != tc.want || writes > 2 || len(got.Status.Conditions) < others {
			t.Errorf("%s: %q after %d writes; %v", name, status, writes, got.Status.Conditions)
		}
	}
	if _, err := (&Reconciler{Client: fake.NewClientBuilder().Build(), Now: time.Now}).Reconcile(t.Context(), ctrl.Request{}); err != nil {
		t.Errorf("a pod that is gone: %v", err)
	}
}
