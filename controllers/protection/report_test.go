// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/record"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
)

// policy denies what is named so.
const policy = `package protection

# METADATA
# title: Named so
# labels:
#   id: test.named-so
deletion := {"allow": false, "reasons": [{"rule": "test.named-so", "reason": "NamedSo", "message": sprintf("%s is to stay.", [input.object.name]), "until": input.object.uid}, {"reason": "Also", "message": "And so it is."}]}

budget := deletion
`

// told is a reporter and everything it tells.
type told struct {
	*Reporter
	engine   *engine.Engine
	store    *explain.Store
	events   *record.FakeRecorder
	registry *prometheus.Registry
	log      strings.Builder
}

func newTold(t *testing.T) *told {
	t.Helper()
	e, err := engine.New(fstest.MapFS{"protection/p.rego": {Data: []byte(policy)}}, engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	out := &told{engine: e, store: explain.NewStore(), events: record.NewFakeRecorder(10), registry: prometheus.NewRegistry()}
	metrics, err := NewMetrics(out.registry)
	if err != nil {
		t.Fatal(err)
	}
	out.Reporter = NewReporter(e, out.store, WithEvents(out.events), WithMetrics(metrics), WithLog(NewLog(&out.log)))
	return out
}

func (w *told) counted(t *testing.T) string {
	t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		n, err := testutil.GatherAndCount(w.registry, f.GetName())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range f.Metric[:n] {
			line := f.GetName()
			for _, l := range m.Label {
				line += " " + l.GetValue()
			}
			out = append(out, line)
		}
	}
	return strings.Join(out, "; ")
}

func (w *told) event() string {
	select {
	case e := <-w.events.Events:
		return e
	default:
		return ""
	}
}

func TestRefusalsAreTold(t *testing.T) {
	for _, tc := range []struct {
		name, operation   string
		point             decision.Name
		object            points.Object
		dry               bool
		code              int32
		counted, log, evt string
	}{
		{"a pod that a budget keeps", "DELETE", "protection/budget",
			points.Object{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: "shop", Name: "web-0", Owner: &points.Owner{Kind: "CloneSet", Name: "web"}}, false, 403,
			"pod_unavailable_budget CloneSet_shop_web ann", `{"Event":"PodUnavailableBudget","Kind":"Pod","Namespace":"shop","Name":"web-0","UserAgent":"ann"}`,
			"Warning PubPreventPodDeletion openkruise pub prevents pod deletion"},
		{"an eviction of one without an owner is to be tried again", "EVICT", "protection/budget",
			points.Object{Version: "v1", Resource: "pods", Kind: "Pod", Namespace: "shop", Name: "web-0"}, false, 429,
			"pod_unavailable_budget unknown_shop_ ann", `{"Event":"PodUnavailableBudget","Kind":"Pod","Namespace":"shop","Name":"web-0","UserAgent":"ann"}`,
			"Warning PubPreventPodDeletion openkruise pub prevents pod deletion"},
		{"a namespace", "DELETE", "protection/deletion", points.Object{Version: "v1", Resource: "namespaces", Kind: "Namespace", Name: "shop"}, false, 403,
			"namespace_deletion_protection shop ann", `{"Event":"DeletionProtection","Kind":"Namespace","Namespace":"","Name":"shop","UserAgent":"ann"}`, ""},
		{"a CRD", "DELETE", "protection/deletion", points.Object{Resource: "customresourcedefinitions", Kind: "CustomResourceDefinition", Name: "x.y"}, false, 403,
			"crd_deletion_protection x.y ann", `{"Event":"DeletionProtection","Kind":"CustomResourceDefinition","Namespace":"","Name":"x.y","UserAgent":"ann"}`, ""},
		{"a workload", "DELETE", "protection/deletion", points.Object{Group: "apps", Resource: "deployments", Kind: "Deployment", Namespace: "shop", Name: "web"}, false, 403,
			"workload_deletion_protection Deployment_shop_web ann", `{"Event":"DeletionProtection","Kind":"Deployment","Namespace":"shop","Name":"web","UserAgent":"ann"}`, ""},
		{"a service is not counted", "DELETE", "protection/deletion", points.Object{Resource: "services", Kind: "Service", Namespace: "shop", Name: "web"}, false, 403,
			"", `{"Event":"DeletionProtection","Kind":"Service","Namespace":"shop","Name":"web","UserAgent":"ann"}`, ""},
		{"a dry run is only answered", "DELETE", "protection/deletion", points.Object{Group: "apps", Resource: "deployments", Kind: "Deployment", Namespace: "shop", Name: "web"}, true, 403, "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newTold(t)
			a := &Asked{points.Request{UID: "r1", Operation: tc.operation, DryRun: tc.dry, User: points.User{Name: "ann"}}, tc.object}
			var reasons []decision.Hold
			var rec decision.Record
			if tc.point == points.BudgetPoint().Name {
				var out points.BudgetOutput
				out, rec = engine.Decide(t.Context(), w.engine, points.BudgetPoint(), a.Subject(), points.BudgetInput{Object: a.Object})
				reasons = out.Reasons
			} else {
				var out points.DeletionOutput
				out, rec = engine.Decide(t.Context(), w.engine, points.DeletionPoint(), a.Subject(), points.DeletionInput{Object: a.Object})
				reasons = out.Reasons
			}
			got := w.RefuseRequest(a, rec, reasons)
			want := tc.object.Name + " is to stay. And so it is.\nWhy: regatta why --request r1"
			if tc.object.Namespace != "" {
				want += " -n shop"
			}
			if got.Allowed || got.Result.Code != tc.code || got.Result.Message != want {
				t.Errorf("answered %+v", got.Result)
			}
			if h := RefusedBy(fmt.Errorf("deleting it: %w", &apierrors.StatusError{ErrStatus: *got.Result})); h == nil || h.Rule != "test.named-so" || h.Reason != "NamedSo" || h.Message != reasons[0].Message {
				t.Errorf("refused by %+v", h)
			}
			if got.AuditAnnotations["rules"] != "test.named-so (NamedSo), protection (Also)" || got.AuditAnnotations["policies"] != rec.Revision {
				t.Errorf("audited %v", got.AuditAnnotations)
			}
			if c := w.counted(t); c != tc.counted {
				t.Errorf("counted %q, want %q", c, tc.counted)
			}
			if l := strings.TrimSuffix(w.log.String(), "\n"); l != tc.log {
				t.Errorf("logged %q, want %q", l, tc.log)
			}
			if e := w.event(); e != tc.evt {
				t.Errorf("event %q, want %q", e, tc.evt)
			}
			answers := w.store.FindRefusals(explain.RefusalFilter{UID: "r1"}, 10)
			if len(answers) != 1 {
				t.Fatalf("%d answers are kept", len(answers))
			}
			b := answers[0]
			if b.Verdict != explain.Refused || b.Reason != "NamedSo" || b.Rule != "test.named-so" || b.Title != "Named so" || b.Place != "protection/p.rego:3:1" ||
				cmp.Diff([]explain.Fact{{Name: "object.uid", Value: ""}}, b.Facts) != "" || len(b.Others) != 1 {
				t.Errorf("explained as %+v", b)
			}
			if b.Near == nil || b.Basis == nil || len(b.Basis.Records) != 1 || b.Basis.Records[0].Point != tc.point {
				t.Error("the answer cannot say what is nearest, or what would change it")
			}
		})
	}
}

func TestExceptionsAreTold(t *testing.T) {
	w := newTold(t)
	a := &Asked{
		points.Request{UID: "r1", Operation: "DELETE", User: points.User{Name: "ann"}},
		points.Object{Group: "apps", Resource: "deployments", Kind: "Deployment", Namespace: "shop", Name: "web"},
	}
	reasons := []decision.Hold{{Rule: "glass", Reason: "BreakGlass", Message: "ann breaks the glass: fire."}}
	rec := decision.Record{Point: "protection/deletion", Outcome: decision.Decided, Revision: "p1", Time: time.Unix(1, 0)}
	got := w.ExemptRequest(a, rec, reasons)
	if !got.Allowed || cmp.Diff([]string{"ann breaks the glass: fire."}, got.Warnings) != "" {
		t.Errorf("answered %+v", got)
	}
	if c := w.counted(t); c != "regatta_protection_exemptions_total deployments ann" {
		t.Errorf("counted %q", c)
	}
	if l := w.log.String(); l != `{"Event":"BreakGlass","Kind":"Deployment","Namespace":"shop","Name":"web","UserAgent":"ann","Reason":"ann breaks the glass: fire."}`+"\n" {
		t.Errorf("logged %q", l)
	}
	if e := w.event(); e != "Warning BreakGlass ann breaks the glass: fire." {
		t.Errorf("event %q", e)
	}
	a.Request.DryRun = true
	w.ExemptRequest(a, rec, reasons)
	if c := w.counted(t); c != "regatta_protection_exemptions_total deployments ann" || w.event() != "" || strings.Count(w.log.String(), "\n") != 1 {
		t.Error("a dry run is reported as if it had happened")
	}
	answers := w.store.FindRefusals(explain.RefusalFilter{User: "ann"}, 10)
	if len(answers) != 2 || answers[0].Verdict != explain.Exempted || !answers[0].Request.DryRun {
		t.Errorf("kept %+v", answers)
	}
}

func TestAReporterMayTellNobody(t *testing.T) {
	w := newTold(t)
	quiet := NewReporter(w.engine, w.store)
	a := asks("DELETE", "ann", "shop", "u")
	if quiet.RefuseRequest(a, decision.Record{}, nil).Allowed || !quiet.ExemptRequest(a, decision.Record{}, nil).Allowed || !quiet.AllowRequest(decision.Record{}, nil).Allowed {
		t.Error("it answers wrongly")
	}
	if _, err := NewMetrics(w.registry); err == nil {
		t.Error("metrics were registered twice")
	}
}

func TestOtherErrorsAreNoRefusals(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, err := range map[string]error{
		"none":                   nil,
		"one of no API server":   errors.New("broken"),
		"one of RBAC":            apierrors.NewForbidden(pods, "web-0", errors.New("cannot delete pods")),
		"a conflict":             apierrors.NewConflict(pods, "web-0", errors.New("changed")),
		"a schema's":             apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web-0", field.ErrorList{field.Required(field.NewPath("spec"), "")}),
		"a disruption budget's":  &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonTooManyRequests, Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: "DisruptionBudget"}}}}},
		"one of who is too fast": apierrors.NewTooManyRequests("slow down", 1),
	} {
		if h := RefusedBy(err); h != nil {
			t.Errorf("the error %s is taken for a refusal by %+v", name, h)
		}
	}
}
