// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/controllers/workload/scale"
	"github.com/regatta-sh/regatta/test/apiserver"
)

// stage is an API server with the controller. No other client than the test makes
// pods or changes them.
type stage struct {
	*testing.T
	client.Client
}

func newStage(t *testing.T) *stage {
	t.Helper()
	ctrl.SetLogger(klog.Background())
	env, direct := apiserver.Serve(t)
	mgr, err := ctrl.NewManager(env.Config, ctrl.Options{Scheme: direct.Scheme(), Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := rollout.AddIndexes(t.Context(), mgr.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	finder := NewFinder(mgr.GetClient(), scale.NewFinder(mgr.GetClient(), discovery.NewDiscoveryClientForConfigOrDie(env.Config)))
	r := New(reconcile.Deps{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorderFor("test")}, finder)
	if err := r.SetupWithManager(t.Context(), mgr); err != nil {
		t.Fatal(err)
	}
	apiserver.Run(t, mgr)
	st := &stage{T: t, Client: direct}
	st.make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	return st
}

func (s *stage) make(o client.Object) {
	s.Helper()
	status, isPod := o.(*corev1.Pod)
	var was corev1.PodStatus
	if isPod {
		was = status.Status
	}
	if err := s.Create(s.Context(), o); err != nil {
		s.Fatal(err)
	}
	if isPod {
		before := status.DeepCopy() // the controller may have annotated it
		status.Status = was
		if err := s.Status().Patch(s.Context(), status, client.MergeFrom(before)); err != nil {
			s.Fatal(err)
		}
	}
}

// pods makes available pods of a workload.
func (s *stage) pods(owner client.Object, kind schema.GroupVersionKind, names ...string) (out []*corev1.Pod) {
	s.Helper()
	for _, name := range names {
		p := pod(name, func(p *corev1.Pod) {
			p.UID, p.CreationTimestamp, p.Annotations, p.Labels = "", metav1.Time{}, nil, map[string]string{"app": owner.GetName()}
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
			p.Spec.TerminationGracePeriodSeconds = ptr.To(int64(0))
		})
		s.make(p)
		out = append(out, p)
	}
	return out
}

func (s *stage) budget(name string, edit func(*policy.PodUnavailableBudget)) {
	s.Helper()
	b := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt32(1))
	edit(b)
	s.make(b)
}

// comes waits for a status: allowed/current/desired/total.
func (s *stage) comes(name, want string) {
	s.Helper()
	got := ""
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		b := &policy.PodUnavailableBudget{}
		if err := s.Get(s.Context(), types.NamespacedName{Namespace: "shop", Name: name}, b); err != nil {
			s.Fatal(err)
		}
		if got = fmt.Sprintf("%d/%d/%d/%d", b.Status.UnavailableAllowed, b.Status.CurrentAvailable, b.Status.DesiredAvailable, b.Status.TotalReplicas); got == want && b.Status.ObservedGeneration == b.Generation {
			return
		}
	}
	s.Errorf("%s is at %s, want %s", name, got, want)
}

func TestController(t *testing.T) {
	s := newStage(t)
	s.Run("a Deployment", func(t *testing.T) { s.deployment(t) })
	s.Run("any kind", func(t *testing.T) { s.anyKind(t) })
}

func (s *stage) deployment(t *testing.T) {
	one := int64(0)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "d"}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}}}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "d"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
	}}
	s.make(d)
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rs", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))}}, Spec: appsv1.ReplicaSetSpec{
		Replicas: ptr.To(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template,
	}}
	s.make(rs)
	s.budget("target", func(b *policy.PodUnavailableBudget) {
		b.Spec.TargetReference = &policy.TargetReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"}
	})
	s.budget("selector", func(b *policy.PodUnavailableBudget) {
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "rs"}}
	})
	s.comes("target", "0/0/2/3")
	pods := s.pods(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), "d-1", "d-2", "d-3")
	s.comes("target", "1/3/2/3")
	s.comes("selector", "1/3/2/3")

	// Each has one of the two that select it.
	for _, p := range pods {
		annotated := func() bool {
			if err := s.Get(s.Context(), client.ObjectKeyFromObject(p), p); err != nil {
				t.Fatal(err)
			}
			return p.Annotations["kruise.io/related-pub"] != "" && p.Annotations["kruise.io/related-pub"] == p.Annotations["pub.kruise.io/related-pub"]
		}
		for end := time.Now().Add(time.Minute); !annotated() && time.Now().Before(end); {
			time.Sleep(20 * time.Millisecond)
		}
		if !annotated() {
			t.Errorf("pod %s has annotations %v", p.Name, p.Annotations)
		}
	}

	// A pod that is not ready; one that is labelled; one that goes.
	pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
	if err := s.Status().Update(s.Context(), pods[0]); err != nil {
		t.Fatal(err)
	}
	s.comes("target", "0/2/2/3")
	pods[0].Status.Conditions[0].Status = corev1.ConditionTrue
	if err := s.Status().Update(s.Context(), pods[0]); err != nil {
		t.Fatal(err)
	}
	s.comes("target", "1/3/2/3")
	pods[0].Labels["unavailable-pod.kruise.io/x"] = ""
	if err := s.Update(s.Context(), pods[0]); err != nil {
		t.Fatal(err)
	}
	s.comes("selector", "0/2/2/3")
	if err := s.Delete(s.Context(), pods[1], &client.DeleteOptions{GracePeriodSeconds: &one}); err != nil {
		t.Fatal(err)
	}
	s.comes("selector", "0/1/2/3")

	// Another number of pods is wanted.
	d.Spec.Replicas = ptr.To(int32(1))
	if err := s.Update(s.Context(), d); err != nil {
		t.Fatal(err)
	}
	s.comes("target", "1/1/0/1")
	s.comes("selector", "1/1/0/1")
	if err := s.Delete(s.Context(), d); err != nil {
		t.Fatal(err)
	}
	s.comes("target", "0/0/0/0")
}

// anyKind: any kind that can be scaled has a number of pods: ours, and those of others.
func (s *stage) anyKind(t *testing.T) {
	for _, kind := range []schema.GroupVersionKind{
		{Group: "apps.kruise.io", Version: "v1beta1", Kind: "CloneSet"},
		{Group: "apps.kruise.io", Version: "v1beta1", Kind: "StatefulSet"},
		{Group: "apps.kruise.io", Version: "v1beta1", Kind: "UnitedDeployment"},
		{Version: "v1", Kind: "ReplicationController"},
	} {
		name := fmt.Sprintf("x%d", len(kind.Kind))
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"replicas": int64(4), "selector": map[string]any{"matchLabels": map[string]any{"app": name}},
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": name}}, "spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": "web:1"}}}},
		}}}
		switch kind.Kind {
		case "ReplicationController":
			o.Object["spec"].(map[string]any)["selector"] = map[string]any{"app": name}
		case "UnitedDeployment":
			spec := o.Object["spec"].(map[string]any)
			spec["template"] = map[string]any{"deploymentTemplate": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": name}}, "spec": map[string]any{"template": spec["template"]}}}
		case "StatefulSet":
			o.Object["spec"].(map[string]any)["serviceName"] = name
		}
		o.SetGroupVersionKind(kind)
		o.SetNamespace("shop")
		o.SetName(name)
		s.make(o)
		s.budget(name, func(b *policy.PodUnavailableBudget) {
			b.Spec.TargetReference = &policy.TargetReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Name: name}
		})
		s.pods(o, kind, name+"-1", name+"-2", name+"-3", name+"-4")
		s.comes(name, "1/4/3/4")
		s.budget(name+"-all", func(b *policy.PodUnavailableBudget) {
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
		})
		s.comes(name+"-all", "1/4/3/4")
		if kind.Version != "v1" {
			if err := unstructured.SetNestedField(o.Object, int64(5), "spec", "replicas"); err != nil {
				t.Fatal(err)
			}
			if err := s.Update(s.Context(), o); err != nil {
				t.Fatal(err)
			}
			if kind.Kind != "UnitedDeployment" { // the controller does not watch that kind
				s.comes(name, "0/4/4/5")
				s.comes(name+"-all", "0/4/4/5")
			}
		}
	}
	s.budget("gone", func(b *policy.PodUnavailableBudget) {
		b.Spec.TargetReference = &policy.TargetReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "UnitedDeployment", Name: "gone"}
		b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, ptr.To(intstr.FromInt32(2))
	})
	s.comes("gone", "0/0/2/0")
	// A job has no scale, and counts as one less than none.
	job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "CronJob"}}
	job.SetName("j")
	job.SetUID("j")
	s.pods(job, schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}, "j-1")
	s.budget("j", func(b *policy.PodUnavailableBudget) {
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "j"}}
	})
	s.comes("j", "1/1/0/-1")
}
