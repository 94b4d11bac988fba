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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/inplace"
	"github.com/regatta-sh/regatta/test/apiserver"
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
			SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
				if writes++; writes == 1 {
					return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "a", nil)
				}
				return c.SubResource(sub).Apply(ctx, o, opts...)
			},
		}).Build()
		r := &Reconciler{reconcile.Deps{Client: c, Events: record.NewFakeRecorder(9), Now: time.Now}}
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
		if found := inplace.FindCondition(got, kruise.KruisePodReady); found != nil {
			status = found.Status
		}
		if status != tc.want || writes > 2 || len(got.Status.Conditions) < others {
			t.Errorf("%s: %q after %d writes; %v", name, status, writes, got.Status.Conditions)
		}
	}
	if _, err := (&Reconciler{reconcile.Deps{Client: fake.NewClientBuilder().Build(), Events: record.NewFakeRecorder(9), Now: time.Now}}).Reconcile(t.Context(), ctrl.Request{}); err != nil {
		t.Errorf("a pod that is gone: %v", err)
	}
}

// behind is a client whose cache shows a pod as it was once.
type behind struct {
	client.Client
	pod *corev1.Pod
}

func (b behind) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	b.pod.DeepCopyInto(o.(*corev1.Pod))
	return nil
}

func TestWhatOthersWrite(t *testing.T) {
	_, api := apiserver.Serve(t)
	status := func(raw string) func(*corev1.Pod) error {
		return func(p *corev1.Pod) error {
			return api.Status().Patch(t.Context(), p, client.RawPatch(types.StrategicMergePatchType, []byte(raw)), client.FieldOwner("other"))
		}
	}
	tests := map[string]struct {
		write     func(*corev1.Pod) error
		want      corev1.ConditionStatus
		tryAgain  bool
		condition corev1.PodConditionType // that must stay as it is
	}{
		"a kubelet":                     {status(`{"status":{"phase":"Running","conditions":[{"type":"Initialized","status":"True"}]}}`), corev1.ConditionTrue, false, corev1.PodInitialized},
		"a client that closed the gate": {status(`{"status":{"conditions":[{"type":"KruisePodReady","status":"False"}]}}`), corev1.ConditionFalse, true, ""},
		"a pod of the same name": {func(p *corev1.Pod) error {
			if err := api.Delete(t.Context(), p.DeepCopy(), client.GracePeriodSeconds(0)); err != nil {
				return err
			}
			p.UID, p.ResourceVersion = "", ""
			return api.Create(t.Context(), p)
		}, "", true, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "a-"}}
			pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "main:1"}}
			pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: kruise.KruisePodReady}}
			if err := api.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			before := pod.DeepCopy()
			if err := tc.write(pod); err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{reconcile.Deps{Client: behind{api, before}, Events: record.NewFakeRecorder(9), Now: time.Now}}
			if got, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(pod)}); err != nil || (got.RequeueAfter > 0) != tc.tryAgain {
				t.Errorf("%v, %v", got, err)
			}
			now := &corev1.Pod{}
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), now); err != nil {
				t.Fatal(err)
			}
			var is corev1.ConditionStatus
			if c := inplace.FindCondition(now, kruise.KruisePodReady); c != nil {
				is = c.Status
			}
			if is != tc.want || tc.condition != "" && inplace.FindCondition(now, tc.condition) == nil {
				t.Errorf("the conditions are %+v, want %q", now.Status.Conditions, tc.want)
			}
		})
	}
}
