// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/accounting"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/webhook/pod"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/budget"
	"github.com/regatta-sh/regatta/controllers/webhook/pod/readinessgate"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/test/rules"
)

const made = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"shop","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z","annotations":{"pub.kruise.io/related-pub":"web"}},"spec":{"containers":[{"name":"main","image":"web:1","resources":{"requests":{"cpu":"1"}}}]},"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`

func edited(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(made) }

func ask(op admissionv1.Operation, sub, old, now string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "r", Operation: op, SubResource: sub, Namespace: "shop", Name: "a",
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		OldObject: runtime.RawExtension{Raw: []byte(old)}, Object: runtime.RawExtension{Raw: []byte(now)},
	}}
}

type world struct {
	*pod.Validator
	client.Client
}

// newWorld has a pod of a budget that allows so many more.
func newWorld(t *testing.T, allowed int32, deletes, updates bool, on interceptor.Funcs) world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, policy.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	b := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	b.Status = policy.PodUnavailableBudgetStatus{UnavailableAllowed: allowed, CurrentAvailable: 2 + allowed, DesiredAvailable: 2, TotalReplicas: 3}
	p := &corev1.Pod{}
	if err := json.Unmarshal([]byte(made), p); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(b, p).WithStatusSubresource(b).WithInterceptorFuncs(on).Build()
	e := rules.Engine(t, "")
	return world{&pod.Validator{Pods: c, Steps: []pod.ValidatingStep{budget.New(budget.Options{
		Ledger: accounting.New(c, c, accounting.NewEngineDecider(e)), Recent: protection.NewRecent(time.Now), Reporter: protection.NewReporter(e, explain.NewStore()),
		Deletes: deletes, Updates: updates,
	})}}, c}
}

func TestValidate(t *testing.T) {
	const evicts = `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"a","namespace":"shop"}}`
	image, cpu, free := edited("web:1", "web:2"), edited(`"cpu":"1"`, `"cpu":"2"`), edited(`"related-pub":"web"`, `"x":"y"`, "pub.kruise.io/related-pub", "x")
	for name, tc := range map[string]struct {
		op       admissionv1.Operation
		sub      string
		old, now string
		gates    string
		code     int32 // 0 is allowed
		records  string
	}{
		"a deletion":                          {op: admissionv1.Delete, old: made, code: http.StatusForbidden, records: "disrupted"},
		"an eviction":                         {op: admissionv1.Create, sub: "eviction", now: evicts, code: http.StatusTooManyRequests, records: "disrupted"},
		"an update":                           {op: admissionv1.Update, old: made, now: image, code: http.StatusForbidden, records: "unavailable"},
		"a resize":                            {op: admissionv1.Update, sub: "resize", old: made, now: cpu},
		"resources in an update":              {op: admissionv1.Update, old: made, now: cpu},
		"a deletion, with the gate off":       {op: admissionv1.Delete, old: made, gates: "update"},
		"an eviction, with the gate off":      {op: admissionv1.Create, sub: "eviction", now: evicts, gates: "update"},
		"an update, with the gate off":        {op: admissionv1.Update, old: made, now: image, gates: "delete"},
		"a change that is none":               {op: admissionv1.Update, old: made, now: made},
		"a pod that loses its budget":         {op: admissionv1.Update, old: made, now: strings.ReplaceAll(free, "web:1", "web:2")},
		"a pod that had none":                 {op: admissionv1.Update, old: free, now: image},
		"a deletion of what is there no more": {op: admissionv1.Delete},
		"a deletion of a subresource":         {op: admissionv1.Delete, sub: "status", old: made},
		"an update of the status":             {op: admissionv1.Update, sub: "status", old: made, now: image},
		"a creation":                          {op: admissionv1.Create, now: made},
		"an eviction of a pod that is gone":   {op: admissionv1.Create, sub: "eviction", now: strings.ReplaceAll(evicts, `"a"`, `"gone"`)},
		"a pod that is on its way out":        {op: admissionv1.Delete, old: edited(`"uid":"u"`, `"uid":"u","deletionTimestamp":"2026-01-02T00:00:00Z"`)},
	} {
		t.Run(name, func(t *testing.T) {
			for allowed := range int32(2) {
				w := newWorld(t, allowed, tc.gates != "update", tc.gates != "delete", interceptor.Funcs{})
				req := ask(tc.op, tc.sub, tc.old, tc.now)
				if strings.Contains(tc.now, `"gone"`) {
					req.Name = "gone"
				}
				got := w.Handle(t.Context(), req)
				if want := tc.code == 0 || allowed > 0; got.Allowed != want || !got.Allowed && got.Result.Code != tc.code {
					t.Errorf("with %d more allowed: %t, %+v", allowed, got.Allowed, got.Result)
				}
				if !got.Allowed && !strings.HasPrefix(got.Result.Message, `podunavailablebudget.policy.kruise.io "web" is forbidden: pub unavailable allowed is negative`) {
					t.Error(got.Result.Message)
				}
				b := &policy.PodUnavailableBudget{}
				if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, b); err != nil {
					t.Fatal(err)
				}
				records := ""
				if len(b.Status.DisruptedPods) > 0 {
					records += "disrupted"
				}
				if len(b.Status.UnavailablePods) > 0 {
					records += "unavailable"
				}
				if want := tc.records; records != want && (allowed > 0 || records != "") {
					t.Errorf("with %d more allowed, recorded in %q, want %q", allowed, records, want)
				}
			}
		})
	}
}

// A pod that cannot be recorded stays, and who drains a node tries again.
func TestValidateWithoutAnAnswer(t *testing.T) {
	broken := interceptor.Funcs{SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
		return errors.New("broken")
	}}
	for code, req := range map[int32]admission.Request{
		http.StatusInternalServerError: ask(admissionv1.Delete, "", made, ""),
		http.StatusTooManyRequests:     ask(admissionv1.Create, "eviction", "", `{"metadata":{"name":"a"}}`),
	} {
		got := newWorld(t, 1, true, true, broken).Handle(t.Context(), req)
		if got.Allowed || got.Result.Code != code || !strings.Contains(got.Result.Message, "broken") {
			t.Errorf("%t, %+v", got.Allowed, got.Result)
		}
	}
	slow := interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, _ client.Client, _ string, _ client.Object, _ ...client.SubResourceUpdateOption) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	w := newWorld(t, 1, true, true, slow)
	w.Patience = 100 * time.Millisecond
	if got := w.Handle(t.Context(), ask(admissionv1.Delete, "", made, "")); got.Allowed || !strings.Contains(got.Result.Message, "context deadline exceeded") {
		t.Errorf("%t, %+v", got.Allowed, got.Result)
	}
	for name, req := range map[string]admission.Request{
		"an old pod that is none": ask(admissionv1.Delete, "", `[]`, ""),
		"a new pod that is none":  ask(admissionv1.Update, "", made, `{"spec":1}`),
		"an eviction of nothing":  ask(admissionv1.Create, "eviction", "", `7`),
	} {
		if got := newWorld(t, 1, true, true, interceptor.Funcs{}).Handle(t.Context(), req); got.Allowed || got.Result.Code < 400 {
			t.Errorf("%s: %t, %+v", name, got.Allowed, got.Result)
		}
	}
}

func TestMutate(t *testing.T) {
	owned := func(version string) string {
		return edited(`"uid":"u"`, `"uid":"u","ownerReferences":[{"apiVersion":"`+version+`","kind":"X","name":"x","uid":"x","controller":true}]`)
	}
	note := pod.MutatingStep{Name: "noting", Mutate: func(_ context.Context, c *pod.Creation) (bool, error) {
		c.Pod.Annotations = map[string]string{"namespace": c.Namespace}
		return true, nil
	}}
	for name, tc := range map[string]struct {
		steps []pod.MutatingStep
		pod   string
		want  string
	}{
		"a pod of ours":                      {[]pod.MutatingStep{readinessgate.New(false)}, owned("apps.kruise.io/v1alpha1"), `[{"op":"add","path":"/spec/readinessGates","value":[{"conditionType":"KruisePodReady"}]}]`},
		"a pod of others":                    {[]pod.MutatingStep{readinessgate.New(false)}, owned("apps/v1"), `[]`},
		"any pod, with the gate":             {[]pod.MutatingStep{readinessgate.New(true)}, made, `[{"op":"add","path":"/spec/readinessGates","value":[{"conditionType":"KruisePodReady"}]}]`},
		"a pod that has another":             {[]pod.MutatingStep{readinessgate.New(true)}, edited(`"containers"`, `"readinessGates":[{"conditionType":"Mine"}],"containers"`), `[{"op":"add","path":"/spec/readinessGates/1","value":{"conditionType":"KruisePodReady"}}]`},
		"a pod that has it":                  {[]pod.MutatingStep{readinessgate.New(true)}, edited(`"containers"`, `"readinessGates":[{"conditionType":"KruisePodReady"}],"containers"`), `[]`},
		"what this release does not know of": {[]pod.MutatingStep{readinessgate.New(true)}, `{"spec":{"news":{"x":1},"containers":[]}}`, `[{"op":"add","path":"/spec/readinessGates","value":[{"conditionType":"KruisePodReady"}]}]`},
		"two steps":                          {[]pod.MutatingStep{note, readinessgate.New(true)}, `{"metadata":{"name":"a"},"spec":{"containers":[]}}`, `[{"op":"add","path":"/metadata/annotations","value":{"namespace":"shop"}},{"op":"add","path":"/spec/readinessGates","value":[{"conditionType":"KruisePodReady"}]}]`},
	} {
		got := (&pod.Mutator{Steps: tc.steps}).Handle(t.Context(), ask(admissionv1.Create, "", "", tc.pod))
		text := patchText(t, got.Patches)
		if !got.Allowed || text != tc.want {
			t.Errorf("%s: %t\n%s\nwant\n%s", name, got.Allowed, text, tc.want)
		}
	}
	fails := pod.MutatingStep{Name: "failing", Mutate: func(context.Context, *pod.Creation) (bool, error) { return false, errors.New("no") }}
	if got := (&pod.Mutator{Steps: []pod.MutatingStep{fails, note}}).Handle(t.Context(), ask(admissionv1.Create, "", "", made)); got.Allowed || got.Result.Code != http.StatusInternalServerError || got.Result.Message != "failing: no" {
		t.Errorf("%t, %+v", got.Allowed, got.Result)
	}
	if got := (&pod.Mutator{Steps: []pod.MutatingStep{fails}}).Handle(t.Context(), ask(admissionv1.Update, "", made, made)); !got.Allowed {
		t.Errorf("%+v", got.Result)
	}
	if got := (&pod.Mutator{}).Handle(t.Context(), ask(admissionv1.Create, "", "", `[]`)); got.Allowed {
		t.Error("what is no pod was let through")
	}
}

func patchText(t *testing.T, patch []jsonpatch.Operation) string {
	t.Helper()
	if len(patch) == 0 {
		return "[]"
	}
	slices.SortFunc(patch, func(a, b jsonpatch.Operation) int { return strings.Compare(a.Path, b.Path) })
	out, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Nothing that is sent has them panic, or let through what they cannot read.
func FuzzHandle(f *testing.F) {
	f.Add("DELETE", "", []byte(made), []byte(``))
	f.Add("UPDATE", "resize", []byte(made), []byte(made))
	f.Add("CREATE", "eviction", []byte(``), []byte(`{"metadata":{"name":"a"},"deleteOptions":{"dryRun":["All"]}}`))
	f.Add("CREATE", "", []byte(``), []byte(made))
	f.Fuzz(func(t *testing.T, op, sub string, old, now []byte) {
		p := &corev1.Pod{}
		if err := json.Unmarshal([]byte(made), p); err != nil {
			t.Fatal(err)
		}
		c := fake.NewClientBuilder().WithObjects(p).Build()
		allow := func(context.Context, decision.Subject, points.BudgetInput) (points.BudgetOutput, decision.Record) {
			return points.BudgetOutput{Allow: true, Reasons: []decision.Hold{{Reason: "Test", Message: "test"}}}, decision.Record{Outcome: decision.Decided}
		}
		v := &pod.Validator{Pods: c, Steps: []pod.ValidatingStep{budget.New(budget.Options{
			Ledger: accounting.New(c, c, allow), Recent: protection.NewRecent(time.Now), Reporter: protection.NewReporter(nil, explain.NewStore()),
		})}}
		req := ask(admissionv1.Operation(op), sub, string(old), string(now))
		_ = v.Handle(t.Context(), req)
		_ = (&pod.Mutator{Steps: []pod.MutatingStep{readinessgate.New(true)}}).Handle(t.Context(), req)
	})
}
