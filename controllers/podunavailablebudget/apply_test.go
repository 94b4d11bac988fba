// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/gatedkinds"
)

// A cache that does not show a pod as it is takes no record away.
func TestRecordsStayWhileTheCacheIsBehind(t *testing.T) {
	three := []client.Object{stateful(3), pod("a"), pod("b"), pod("c")}
	for name, tc := range map[string]struct {
		budget *policy.PodUnavailableBudget
		cached []client.Object
		past   []client.Object
		want   string
	}{
		"a pod that did not go, or so the cache says": {newBudget(disrupted("a", time.Minute)), three, nil, "0/2/2/3 disrupted:a"},
		"a pod that the cache does not know yet":      {newBudget(disrupted("old", time.Minute)), three, []client.Object{pod("old")}, "1/3/2/3 disrupted:old"},
		"a pod that was not ready some time ago": {
			newBudget(updated("a", time.Second)), []client.Object{stateful(3), pod("a", unready), pod("b"), pod("c")},
			[]client.Object{pod("a", func(p *corev1.Pod) { p.ResourceVersion = "1005" })}, "0/2/2/3 unavailable:a",
		},
	} {
		past := newCluster(t, nil, interceptor.Funcs{}, tc.past...)
		c := newCluster(t, past, interceptor.Funcs{}, append([]client.Object{tc.budget}, tc.cached...)...)
		got, err := c.reconcile(t)
		if err != nil || c.summary(t) != tc.want || got.RequeueAfter == 0 || c.told() != "" {
			t.Errorf("%s: %s, again in %s, %v", name, c.summary(t), got.RequeueAfter, err)
		}
	}
}

// The controller does not overwrite an earlier write of another client, and reports no error.
func TestRecordsAreNotWrittenOver(t *testing.T) {
	raced := false
	c := newCluster(t, nil, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if !raced { // a ledger is faster
				raced = true
				b := &policy.PodUnavailableBudget{}
				if err := c.Get(ctx, client.ObjectKeyFromObject(o), b); err != nil {
					return err
				}
				b.Status.DisruptedPods = map[string]metav1.Time{"a": metav1.NewTime(noon)}
				if err := c.SubResource(sub).Update(ctx, b); err != nil {
					return err
				}
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}, newBudget(), stateful(3), pod("a"), pod("b"), pod("c"))
	if got, err := c.reconcile(t); err != nil || got.RequeueAfter != 50*time.Millisecond {
		t.Fatalf("%v, %v", got, err)
	}
	if _, err := c.reconcile(t); err != nil || c.summary(t) != "0/2/2/3 disrupted:a" {
		t.Errorf("%s, %v", c.summary(t), err)
	}
}

func TestPodsAreAnnotated(t *testing.T) {
	plain := func(p *corev1.Pod) { p.Annotations = map[string]string{"x": "y"} }
	c := newCluster(t, nil, interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			raw, err := patch.Data(o)
			if err != nil || !strings.Contains(string(raw), `"uid":"uid-`+o.GetName()) || !strings.Contains(string(raw), `"resourceVersion":"999"`) {
				t.Errorf("%s: %s, %v", o.GetName(), raw, err)
			}
			if o.GetName() == "c" { // another client wrote to it
				return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "c", nil)
			}
			return w.Patch(ctx, o, patch, opts...)
		},
	}, newBudget(), stateful(3), pod("a", plain), pod("b", func(p *corev1.Pod) { p.Annotations = map[string]string{"kruise.io/related-pub": "other"} }), pod("c", plain), pod("d", plain, leaving))
	if got, err := c.reconcile(t); err != nil || got.RequeueAfter != 50*time.Millisecond {
		t.Errorf("%v, %v", got, err)
	}
	for name, want := range map[string]string{"a": "web web", "b": " other", "c": " ", "d": " "} {
		p := &corev1.Pod{}
		if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: name}, p); err != nil {
			t.Fatal(err)
		}
		if got := p.Annotations["pub.kruise.io/related-pub"] + " " + p.Annotations["kruise.io/related-pub"]; got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWhatCannotBeCounted(t *testing.T) {
	c := newCluster(t, nil, interceptor.Funcs{}, newBudget(of("Robot", "r")), pod("a"))
	for range 2 {
		if _, err := c.reconcile(t); err == nil || !strings.Contains(err.Error(), "spec.targetRef Robot r: the kind has no subresource scale") {
			t.Error(err)
		}
	}
	if got := c.told(); strings.Count(got, "CalculateExpectedPodCountFailed") != 1 {
		t.Error(got)
	}
	// The controller reads no scale if the budget sets the number of pods.
	c = newCluster(t, nil, interceptor.Funcs{}, newBudget(of("Robot", "r"), outOf(2)), pod("a", ownedBy("apps/v1", "Robot", "r")), pod("b"))
	if _, err := c.reconcile(t); err != nil || c.summary(t) != "0/1/1/2" {
		t.Errorf("%s, %v", c.summary(t), err)
	}
}

func TestBudgetsAreCoveredFirst(t *testing.T) {
	c := newCluster(t, nil, interceptor.Funcs{}, newBudget(), stateful(3), pod("a"))
	c.r.namespaces = refuses{}
	if _, err := c.reconcile(t); err == nil || !strings.Contains(err.Error(), "of namespace shop sent to the webhook: no") {
		t.Error(err)
	}
	b := &policy.PodUnavailableBudget{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, b); err != nil || b.Status.ObservedGeneration != 0 {
		t.Errorf("%+v, %v", b.Status, err)
	}
}

type refuses struct{}

func (refuses) CoverNamespace(context.Context, string) error { return errors.New("no") }

func TestNobodyIsToldThatNothingActs(t *testing.T) {
	c := newCluster(t, nil, interceptor.Funcs{}, newBudget(func(b *policy.PodUnavailableBudget) {
		b.Status.Conditions = []metav1.Condition{
			{Type: gatedkinds.Stalled, Status: metav1.ConditionTrue, Reason: gatedkinds.FeatureGateOff},
			{Type: "Mine", Status: metav1.ConditionTrue, Reason: "Own"},
		}
	}), stateful(1), pod("a"))
	if _, err := c.reconcile(t); err != nil {
		t.Fatal(err)
	}
	b := &policy.PodUnavailableBudget{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, b); err != nil || len(b.Status.Conditions) != 2 || b.Status.Conditions[0].Type != "Mine" || b.Status.Conditions[1].Type != kruise.ConditionReady {
		t.Errorf("%+v, %v", b.Status.Conditions, err)
	}
}

// The budgets of a pod are found by what it is labelled with, and who owns it.
func TestFinder(t *testing.T) {
	named := func(name string, edit func(*policy.PodUnavailableBudget)) client.Object {
		return newBudget(func(b *policy.PodUnavailableBudget) { b.Name, b.UID = name, types.UID(name); edit(b) })
	}
	selects := func(s metav1.LabelSelector) func(*policy.PodUnavailableBudget) {
		return func(b *policy.PodUnavailableBudget) { b.Spec.TargetReference, b.Spec.Selector = nil, &s }
	}
	expression := func(op metav1.LabelSelectorOperator, key string, values ...string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: op, Values: values}}}
	}
	c := newCluster(t, nil, interceptor.Funcs{}, replicaSet("r1"),
		named("app", selects(metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}})),
		named("both", selects(metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "tier": "gold"}})),
		named("in", selects(expression(metav1.LabelSelectorOpIn, "app", "web"))),
		named("exists", selects(expression(metav1.LabelSelectorOpExists, "app"))),
		named("not", selects(expression(metav1.LabelSelectorOpNotIn, "app", "web"))),
		named("other", selects(metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}})),
		named("empty", selects(metav1.LabelSelector{})),
		named("deployment", of("Deployment", "d")),
		named("replicaset", of("ReplicaSet", "r1")),
		named("elsewhere", func(b *policy.PodUnavailableBudget) { b.Namespace = "bank" }),
		named("beta", func(b *policy.PodUnavailableBudget) { b.Spec.TargetReference.APIVersion = "apps/v1beta9" }),
		named("group", func(b *policy.PodUnavailableBudget) { b.Spec.TargetReference.APIVersion = "apps.kruise.io/v1beta1" }),
	)
	for want, p := range map[string]*corev1.Pod{
		"app beta exists in":                  pod("a"),
		"app deployment exists in replicaset": pod("a", ownedBy("apps/v1", "ReplicaSet", "r1")),
		"app exists in":                       pod("a", ownedBy("apps/v1", "ReplicaSet", "gone")),
		"app beta both exists in":             pod("a", func(p *corev1.Pod) { p.Labels["tier"] = "gold" }),
		"beta not":                            pod("a", func(p *corev1.Pod) { p.Labels = nil }),
	} {
		got, err := c.r.finder.FindForPod(t.Context(), "shop", p)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%v, want %s: %v", got, want, err)
		}
	}
}
