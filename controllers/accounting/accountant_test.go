// SPDX-License-Identifier: Apache-2.0

package accounting

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/test/fakeclient"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 500, time.UTC)

// plain decides as the built-in policy does of pods that budgets guard; anything
// else goes.
func plain(_ context.Context, _ decision.Subject, in points.BudgetInput) (points.BudgetOutput, decision.Record) {
	rec := decision.Record{Outcome: decision.Decided, Point: points.BudgetPoint().Name}
	why := []decision.Hold{{Reason: "Test", Message: "test"}}
	return points.BudgetOutput{Allow: !isProtected(in) || in.Budget.Recorded != "" || in.Budget.Allowed > 0, Reasons: why}, rec
}

func careless(context.Context, decision.Subject, points.BudgetInput) (points.BudgetOutput, decision.Record) {
	return points.BudgetOutput{Allow: true, Reasons: []decision.Hold{{Reason: "Test", Message: "test"}}}, decision.Record{Outcome: decision.Decided}
}

func exempting(context.Context, decision.Subject, points.BudgetInput) (points.BudgetOutput, decision.Record) {
	return points.BudgetOutput{Allow: true, Exempt: true}, decision.Record{Outcome: decision.Decided}
}

func pod(name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour).Truncate(time.Second)),
			Annotations: map[string]string{"pub.kruise.io/related-pub": "web"}, Labels: map[string]string{"app": "web"},
		},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	for _, e := range edits {
		e(p)
	}
	return p
}

func asks(op string, pod *corev1.Pod) Request {
	a := &protection.Asked{Request: points.Request{UID: "r", Operation: op}}
	a.Object.Resource = "pods"
	a.SetObject(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	return Request{Asked: a, Pod: pod}
}

func budget(allowed, current, desired int32, edits ...func(*policy.PodUnavailableBudget)) *policy.PodUnavailableBudget {
	b := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "b"}}
	b.Status = policy.PodUnavailableBudgetStatus{UnavailableAllowed: allowed, CurrentAvailable: current, DesiredAvailable: desired, TotalReplicas: current}
	for _, e := range edits {
		e(b)
	}
	return b
}

func world(t *testing.T, b *policy.PodUnavailableBudget, on interceptor.Funcs) client.WithWatch {
	t.Helper()
	s := runtime.NewScheme()
	if err := errors.Join(policy.AddToScheme(s), corev1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	builder := fakeclient.NewClientBuilder(s).WithStatusSubresource(&policy.PodUnavailableBudget{}).WithInterceptorFuncs(on)
	if b != nil {
		builder = builder.WithObjects(b)
	}
	return builder.Build()
}

// summary is what is left of a budget: allowed/current and who is recorded.
func summary(t *testing.T, c client.Reader) string {
	t.Helper()
	b := &policy.PodUnavailableBudget{}
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"}, b); err != nil {
		return "none"
	}
	out := fmt.Sprintf("%d/%d", b.Status.UnavailableAllowed, b.Status.CurrentAvailable)
	for name, at := range b.Status.DisruptedPods {
		out += " disrupted:" + name + "@" + at.UTC().Format("05")
	}
	for name, at := range b.Status.UnavailablePods {
		out += " unavailable:" + name + "@" + at.UTC().Format("05")
	}
	return out
}

func TestAsk(t *testing.T) {
	record := func(list string, at time.Time) func(*policy.PodUnavailableBudget) {
		return func(b *policy.PodUnavailableBudget) {
			records := map[string]metav1.Time{"a": metav1.NewTime(at)}
			if list == points.RecordDisrupted {
				b.Status.DisruptedPods = records
			} else {
				b.Status.UnavailablePods = records
			}
		}
	}
	before := noon.Add(-5 * time.Second)
	for name, tc := range map[string]struct {
		op     string
		budget *policy.PodUnavailableBudget
		pod    func(*corev1.Pod)
		decide Decide
		ledger []Option
		allow  bool
		after  string
	}{
		"a deletion that the budget allows": {op: points.Delete, budget: budget(1, 3, 2), allow: true, after: "0/2 disrupted:a@00"},
		"an eviction":                       {op: points.Evict, budget: budget(2, 3, 1), allow: true, after: "1/2 disrupted:a@00"},
		"an update":                         {op: points.Update, budget: budget(1, 3, 2), allow: true, after: "0/2 unavailable:a@00"},
		"a resize that counts as an update": {op: points.Resize, budget: budget(1, 3, 2), ledger: []Option{WithResizes(false)}, allow: true, after: "0/2 unavailable:a@00"},
		"a resize":                          {op: points.Resize, budget: budget(1, 3, 2), allow: true, after: "1/3"},
		"a resize that finds none allowed":  {op: points.Resize, budget: budget(0, 2, 2), allow: true, after: "0/2"},
		"a resize that the budget names":    {op: points.Resize, budget: budget(1, 3, 2, names(policy.PubResizeOperation)), allow: true, after: "0/2 unavailable:a@00"},
		"an eviction of a pod that is not ready, which may be by then": {
			op: points.Evict, budget: budget(0, 2, 2), allow: true, after: "0/2 disrupted:a@00",
			pod: func(p *corev1.Pod) { p.Status.Conditions = nil },
		},
		"more than the budget allows":        {op: points.Delete, budget: budget(0, 2, 2), after: "0/2"},
		"less than nothing":                  {op: points.Delete, budget: budget(-1, 2, 2), after: "-1/2"},
		"a policy that lets everything go":   {op: points.Delete, budget: budget(0, 2, 2), decide: careless, after: "0/2"},
		"a policy that forgets to record":    {op: points.Delete, budget: budget(1, 3, 2), decide: careless, allow: true, after: "0/2 disrupted:a@00"},
		"an exemption":                       {op: points.Delete, budget: budget(0, 2, 2), decide: exempting, allow: true, after: "0/1 disrupted:a@00"},
		"nothing has to be available":        {op: points.Delete, budget: budget(0, 2, 0), allow: true, after: "0/2"},
		"an operation that it does not name": {op: points.Delete, budget: budget(0, 2, 2, names(policy.PubUpdateOperation)), allow: true, after: "0/2"},
		"one that its annotation names": {op: points.Delete, budget: budget(0, 2, 2, func(b *policy.PodUnavailableBudget) {
			b.Annotations = map[string]string{"kruise.io/pub-protect-operations": "EVICT, DELETE"}
		}), after: "0/2"},
		"one that its annotation does not": {op: points.Delete, budget: budget(0, 2, 2, func(b *policy.PodUnavailableBudget) {
			b.Annotations = map[string]string{"kruise.io/pub-protect-operations": "UPDATE"}
		}), allow: true, after: "0/2"},
		"a pod that it ignores": {op: points.Delete, budget: budget(0, 2, 2, func(b *policy.PodUnavailableBudget) {
			b.Spec.IgnoredPodSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
		}), allow: true, after: "0/2"},
		"a pod that is not ready":                        {op: points.Delete, budget: budget(0, 2, 2), pod: func(p *corev1.Pod) { p.Status.Conditions = nil }, allow: true, after: "0/2"},
		"a pod in an update":                             {op: points.Delete, budget: budget(0, 2, 2), pod: func(p *corev1.Pod) { p.Annotations["apps.kruise.io/inplace-update-grace"] = "{}" }, allow: true, after: "0/2"},
		"a pod that asks for no protection":              {op: points.Delete, budget: budget(0, 2, 2), pod: func(p *corev1.Pod) { p.Annotations["pub.kruise.io/no-protect"] = "true" }, allow: true, after: "0/2"},
		"a pod without a budget":                         {op: points.Delete, budget: budget(0, 2, 2), pod: func(p *corev1.Pod) { p.Annotations = nil }, allow: true, after: "0/2"},
		"a pod whose budget is gone":                     {op: points.Delete, budget: nil, allow: true, after: "none"},
		"a pod with the old annotation":                  {op: points.Delete, budget: budget(0, 2, 2), pod: func(p *corev1.Pod) { p.Annotations = map[string]string{"kruise.io/related-pub": "web"} }, after: "0/2"},
		"a pod that is recorded, anew":                   {op: points.Delete, budget: budget(0, 2, 2, record(points.RecordDisrupted, before)), allow: true, after: "0/2 disrupted:a@00"},
		"an update of a pod that is to go":               {op: points.Update, budget: budget(0, 2, 2, record(points.RecordDisrupted, before)), allow: true, after: "0/2 disrupted:a@00"},
		"a deletion of a pod that is updated":            {op: points.Delete, budget: budget(0, 2, 2, record(points.RecordUnavailable, before)), allow: true, after: "0/2 disrupted:a@00"},
		"a pod that came after the record of its name":   {op: points.Delete, budget: budget(0, 2, 2, record(points.RecordDisrupted, before)), pod: born(before.Add(time.Second)), after: "0/2 disrupted:a@55"},
		"a pod that came in the second of the record":    {op: points.Delete, budget: budget(0, 2, 2, record(points.RecordDisrupted, before)), pod: born(before), after: "0/2 disrupted:a@55"},
		"the same, and one more is allowed":              {op: points.Delete, budget: budget(1, 3, 2, record(points.RecordDisrupted, before)), pod: born(before), allow: true, after: "0/2 disrupted:a@00"},
		"a pod that came some seconds before its record": {op: points.Delete, budget: budget(0, 2, 2, record(points.RecordDisrupted, before)), pod: born(before.Add(-4 * time.Second)), allow: true, after: "0/2 disrupted:a@00"},
	} {
		c := world(t, tc.budget, interceptor.Funcs{})
		decide := tc.decide
		if decide == nil {
			decide = plain
		}
		l := New(c, c, decide, append(tc.ledger, WithClock(func() time.Time { return noon }))...)
		p := pod("a")
		if tc.pod != nil {
			tc.pod(p)
		}
		dry := asks(tc.op, p)
		dry.Asked.Request.DryRun = true
		untouched := summary(t, c)
		if got, err := l.DecideRequest(t.Context(), dry); err != nil || got.Output.Allow != tc.allow || summary(t, c) != untouched {
			t.Errorf("%s, as a dry run: %+v, %v; %s", name, got.Output, err, summary(t, c))
		}
		got, err := l.DecideRequest(t.Context(), asks(tc.op, p))
		if err != nil || got.Output.Allow != tc.allow {
			t.Errorf("%s: %+v, %v", name, got.Output, err)
		}
		if diff := cmp.Diff(tc.after, summary(t, c)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if queues := l.callers.KeyCount(); queues > 1 {
			t.Errorf("%s: %d queues", name, queues)
		}
	}
}

func names(op policy.PubOperation) func(*policy.PodUnavailableBudget) {
	return func(b *policy.PodUnavailableBudget) { b.Spec.ProtectOperations = []policy.PubOperation{op} }
}

func born(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(at.Truncate(time.Second)) }
}

// TestAskAboutAPodThatBecameAvailable evicts a pod that was labelled as unavailable when the request came, and is counted by the
// time it is decided about.
func TestAskAboutAPodThatBecameAvailable(t *testing.T) {
	labelled := func(p *corev1.Pod) { p.Labels["unavailable-pod.kruise.io/drain"] = "true" }
	for name, tc := range map[string]struct {
		now   *corev1.Pod // nil if it is gone
		fails bool
		allow bool
		after string
	}{
		"it is still unavailable":     {now: pod("a", labelled), allow: true, after: "1/3 disrupted:a@00"},
		"it takes one":                {now: pod("a"), allow: true, after: "0/2 disrupted:a@00"},
		"another one has its name":    {now: pod("a", func(p *corev1.Pod) { p.UID = "other" }), allow: true, after: "1/3 disrupted:a@00"},
		"it is gone":                  {allow: true, after: "1/3 disrupted:a@00"},
		"it cannot be read once more": {now: pod("a"), fails: true, after: "1/3"},
	} {
		t.Run(name, func(t *testing.T) {
			c := world(t, budget(1, 3, 2), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, ok := o.(*corev1.Pod); ok && tc.fails {
					return errors.New("no answer")
				}
				return c.Get(ctx, key, o, opts...)
			}})
			if tc.now != nil {
				if err := c.Create(t.Context(), tc.now.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			}
			l := New(c, c, plain, WithClock(func() time.Time { return noon }))
			got, err := l.DecideRequest(t.Context(), asks(points.Evict, pod("a", labelled)))
			if (err != nil) != tc.fails || got.Output.Allow != tc.allow {
				t.Errorf("%+v, %v", got.Output, err)
			}
			if got := summary(t, c); got != tc.after {
				t.Errorf("the budget is %s, want %s", got, tc.after)
			}
		})
	}
}

// The API server asks once more about a pod that the kubelet writes to while it is being deleted.
func TestAskTwiceAboutAYoungPod(t *testing.T) {
	c := world(t, budget(1, 3, 2), interceptor.Funcs{})
	l := New(c, c, plain, WithClock(func() time.Time { return noon }))
	young := func(uid types.UID) *corev1.Pod {
		return pod("a", func(p *corev1.Pod) {
			p.UID, p.CreationTimestamp = uid, metav1.NewTime(noon.Add(-Skew).Truncate(time.Second))
		})
	}
	for range 2 {
		got, err := l.DecideRequest(t.Context(), asks(points.Delete, young("first")))
		if err != nil || !got.Output.Allow {
			t.Fatalf("%+v, %v", got.Output, err)
		}
	}
	if got, err := l.DecideRequest(t.Context(), asks(points.Delete, young("next"))); err != nil || got.Output.Allow {
		t.Errorf("another pod of that name: %+v, %v", got.Output, err)
	}
	if got := summary(t, c); got != "0/2 disrupted:a@00" {
		t.Error(got)
	}
}

// What the cache says is no reason to refuse, nor is it that nothing has to be
// available.
func TestAskPastTheCache(t *testing.T) {
	for name, tc := range map[string]struct {
		cached, stored *policy.PodUnavailableBudget
		allow          bool
	}{
		"it has become more":                  {budget(0, 2, 2), budget(1, 3, 2), true},
		"it has become less":                  {budget(1, 3, 2), budget(0, 2, 2), false},
		"it has its first status":             {budget(0, 0, 0), budget(0, 2, 2), false},
		"the cache does not know the budget":  {nil, budget(0, 2, 2), false},
		"the budget is gone":                  {budget(0, 2, 2), nil, true},
		"it is gone, and another was allowed": {budget(1, 3, 2), nil, true},
	} {
		stored := world(t, tc.stored, interceptor.Funcs{})
		cached := world(t, tc.cached, interceptor.Funcs{
			SubResourceUpdate: func(ctx context.Context, _ client.Client, _ string, o client.Object, opts ...client.SubResourceUpdateOption) error {
				return stored.Status().Update(ctx, o, opts...)
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				err := c.Get(ctx, key, o, opts...)
				o.SetResourceVersion("998") // the fake API server counts from 999
				return err
			},
		})
		l := New(cached, stored, plain)
		got, err := l.DecideRequest(t.Context(), asks(points.Delete, pod("a")))
		if err != nil || got.Output.Allow != tc.allow {
			t.Errorf("%s: %+v, %v", name, got.Output, err)
		}
	}
}

func TestAskInVain(t *testing.T) {
	resource := schema.GroupResource{Group: "policy.kruise.io", Resource: "podunavailablebudgets"}
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		write  error
		reads  error
		writes int
		want   string
	}{
		"every write is late":        {write: apierrors.NewConflict(resource, "web", nil), writes: tries, want: "time out"},
		"no write gets through":      {write: broken, writes: 1, want: "recording in PodUnavailableBudget shop/web: broken"},
		"after a conflict no answer": {write: apierrors.NewConflict(resource, "web", nil), reads: broken, writes: 1, want: "reading PodUnavailableBudget shop/web past the cache: broken"},
	} {
		writes := 0
		c := world(t, budget(1, 3, 2), interceptor.Funcs{
			SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
				writes++
				return tc.write
			},
		})
		live := world(t, budget(1, 3, 2), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				return errors.Join(tc.reads, c.Get(ctx, key, o, opts...))
			},
		})
		got, err := New(c, live, plain).DecideRequest(t.Context(), asks(points.Delete, pod("a")))
		said := fmt.Sprint(err)
		if err == nil {
			said = got.Output.Reasons[0].Message
		}
		if got.Output.Allow || writes != tc.writes || !strings.Contains(said, tc.want) {
			t.Errorf("%s: %t after %d writes, %s", name, got.Output.Allow, writes, said)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := New(world(t, budget(1, 3, 2), interceptor.Funcs{}), world(t, nil, interceptor.Funcs{}), plain).DecideRequest(ctx, asks(points.Delete, pod("a"))); got.Output.Allow || err == nil && len(got.Output.Reasons) == 0 {
		t.Errorf("who has gone was told %+v, %v", got, err)
	}
}
