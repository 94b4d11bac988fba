// SPDX-License-Identifier: Apache-2.0

package pod_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
)

// Any workload in the cluster can post an AdmissionReview. A review counts only if the API server has the pod as the review
// says.
func TestForgedReviewsDoNotUseUpABudget(t *testing.T) {
	image := func(text string) string { return strings.ReplaceAll(text, "web:1", "web:2") }
	ghost, free := edited(`"name":"a"`, `"name":"ghost"`), edited(`"name":"a"`, `"name":"free"`, `"uid":"u"`, `"uid":"f"`)
	replaced, terminating := edited(`"uid":"u"`, `"uid":"old"`), edited(`"uid":"u"`, `"uid":"u","deletionTimestamp":"2026-01-02T00:00:00Z"`)
	labelled := edited(`"uid":"u"`, `"uid":"u","labels":{"app":"web"}`)
	for name, req := range map[string]admission.Request{
		"a deletion of a pod that does not exist":         named("ghost", ask(admissionv1.Delete, "", ghost, "")),
		"an update of a pod that does not exist":          named("ghost", ask(admissionv1.Update, "", ghost, image(ghost))),
		"a resize of a pod that does not exist":           named("ghost", ask(admissionv1.Update, "resize", ghost, strings.ReplaceAll(ghost, `"cpu":"1"`, `"cpu":"2"`))),
		"an eviction of a pod that does not exist":        named("ghost", ask(admissionv1.Create, "eviction", "", `{"metadata":{"name":"ghost"}}`)),
		"a deletion of a pod that was replaced":           ask(admissionv1.Delete, "", replaced, ""),
		"an update of a pod that was replaced":            ask(admissionv1.Update, "", replaced, image(replaced)),
		"a deletion of a pod with other labels":           ask(admissionv1.Delete, "", labelled, ""),
		"an update of a pod with other labels":            ask(admissionv1.Update, "", labelled, image(labelled)),
		"a deletion of a pod that no budget is for":       named("free", ask(admissionv1.Delete, "", free, "")),
		"a deletion of a pod that is not terminating":     ask(admissionv1.Delete, "", terminating, ""),
		"a deletion of a pod in another namespace":        ask(admissionv1.Delete, "", edited(`"namespace":"shop"`, `"namespace":"other"`), ""),
		"a deletion of another pod than the one it names": named("b", ask(admissionv1.Delete, "", made, "")),
		"an update that makes it another pod":             ask(admissionv1.Update, "", made, image(replaced)),
		"an update that changed the pod already":          ask(admissionv1.Update, "", image(made), made),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1, true, true, interceptor.Funcs{})
			other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "free", UID: "f"}}
			if err := w.Create(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			w.Handle(t.Context(), req)
			if b := w.budget(t); b.Status.UnavailableAllowed != 1 || len(b.Status.DisruptedPods)+len(b.Status.UnavailablePods) > 0 {
				t.Errorf("it was counted: %d are allowed, %v and %v are recorded", b.Status.UnavailableAllowed, b.Status.DisruptedPods, b.Status.UnavailablePods)
			}
			if got := w.Handle(t.Context(), ask(admissionv1.Delete, "", made, "")); !got.Allowed {
				t.Errorf("the pod that the budget has room for may not be deleted: %v", got.Result)
			}
		})
	}
}

// What the old object says of a pod other than what identifies it does not decide.
func TestTheLivePodDecides(t *testing.T) {
	unready := edited(`"conditions":[{"type":"Ready","status":"True"}]`, `"conditions":[]`)
	recreated := edited("2026-01-01T00:00:00Z", "2126-01-01T00:00:00Z")
	for name, old := range map[string]string{"a pod that is ready meanwhile": unready, "a pod of another age": recreated} {
		w := newWorld(t, 0, true, true, interceptor.Funcs{})
		b := w.budget(t)
		b.Status.DisruptedPods = map[string]metav1.Time{}
		if strings.Contains(name, "age") { // a record of the pod itself lets it go, one of an earlier pod does not
			b.Status.DisruptedPods["a"] = metav1.NewTime(time.Now().Truncate(time.Second))
		}
		if err := w.Status().Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		got := w.Handle(t.Context(), ask(admissionv1.Delete, "", old, ""))
		if want := strings.Contains(name, "age"); got.Allowed != want {
			t.Errorf("%s: %t, %v", name, got.Allowed, got.Result)
		}
		if after := w.budget(t); !maps.EqualFunc(b.Status.DisruptedPods, after.Status.DisruptedPods, func(a, b metav1.Time) bool { return a.Unix() <= b.Unix() }) {
			t.Errorf("%s: %v is recorded", name, after.Status.DisruptedPods)
		}
	}
}

func TestTheReviewMustBeAboutPods(t *testing.T) {
	w := newWorld(t, 1, true, true, interceptor.Funcs{})
	req := ask(admissionv1.Delete, "", made, "")
	req.Resource.Resource = "deployments"
	if got := w.Handle(t.Context(), req); got.Allowed || got.Result.Code != http.StatusBadRequest {
		t.Errorf("%t, %v", got.Allowed, got.Result)
	}
	if b := w.budget(t); b.Status.UnavailableAllowed != 1 {
		t.Error("it was counted")
	}
}

func named(name string, req admission.Request) admission.Request {
	req.Name = name
	return req
}

func (w world) budget(t *testing.T) *policy.PodUnavailableBudget {
	t.Helper()
	b := &policy.PodUnavailableBudget{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web"}, b); err != nil {
		t.Fatal(err)
	}
	return b
}
