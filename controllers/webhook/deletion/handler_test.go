// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/webhook/server"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	points "github.com/regatta-sh/regatta/engine/decision/protection"
	"github.com/regatta-sh/regatta/test/rules"
)

type protected struct {
	kind *points.ProtectedKind
	err  error
}

func (p protected) Kind(context.Context, string, string) (*points.ProtectedKind, error) {
	return p.kind, p.err
}
func (p protected) FeatureGates() points.Gates { return points.Gates{Deletion: true} }

func newHandler(t testing.TB, text string) *Handler {
	t.Helper()
	e, err := engine.New(fstest.MapFS{"protection/deletion.rego": {Data: []byte("package protection\n\n" + text)}}, engine.WithPatience(20)) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return &Handler{
		Engine: e, Kinds: protected{kind: &points.ProtectedKind{Group: "apps", Resource: "deployments", Cascading: points.CascadeReplicas}},
		Reporter: protection.NewReporter(e, explain.NewStore()), Recent: protection.NewRecent(time.Now), Now: time.Now,
		Metadata: live(t),
	}
}

// live has what the API server has of the objects that tests delete.
func live(t testing.TB) *metadatafake.FakeMetadataClient {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object := func(uid types.UID, name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", UID: uid, Name: name},
		}
	}
	going := object("w", "going")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"x"}
	return metadatafake.NewSimpleMetadataClient(scheme, object("u", "web"), object("v", "other"), going)
}

func deletes(old string) admission.Request {
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "r", Operation: admissionv1.Delete, Namespace: "shop", Name: "web", Kind: metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Resource: metav1.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, OldObject: runtime.RawExtension{Raw: []byte(old)},
	}}
}

const (
	stored = `{"metadata":{"uid":"u","namespace":"shop","name":"web","labels":{"policy.kruise.io/delete-protection":"Cascading"}},"spec":{"replicas":3}}`
	refuse = `deletion := {"allow": false, "reasons": [{"rule": "r", "reason": "No", "message": sprintf("%v of %v", [input.replicas, input.request.operation])}]}`
)

func TestHandle(t *testing.T) {
	h := newHandler(t, refuse)
	scale, update := deletes(stored), deletes(stored)
	scale.SubResource = "scale"
	update.Operation = admissionv1.Update
	create := deletes(stored)
	create.Operation = admissionv1.Create
	for name, tc := range map[string]struct {
		request admission.Request
		code    int32
		want    string
	}{
		"a delete is decided about, with the replicas":     {deletes(stored), 403, "3 of DELETE\nWhy: regatta why --request r"},
		"so is an update, which only users' rules see":     {update, 403, "3 of UPDATE\nWhy: regatta why --request r"},
		"one of a sub-resource passes":                     {scale, 0, ""},
		"one without what is stored passes":                {deletes(""), 0, ""},
		"one of what is going passes":                      {deletes(`{"metadata":{"uid":"u","deletionTimestamp":"2026-01-02T03:04:05Z"}}`), 0, ""},
		"one that cannot be read is bad":                   {deletes(`[]`), 400, "reading the stored object of the request: json: cannot unmarshal array into Go value of type v1.PartialObjectMetadata"},
		"so is an operation that no policy is asked about": {create, 400, "reading the request: CREATE of deployments is nothing that protection is asked about"},
		"replicas of another form are no replicas at all":  {deletes(`{"metadata":{"uid":"u"},"spec":{"replicas":"x"}}`), 403, "No policy could decide"},
	} {
		got := h.Handle(t.Context(), tc.request)
		if got.Allowed != (tc.code == 0) || !got.Allowed && (got.Result.Code != tc.code || len(got.Result.Message) < len(tc.want) || got.Result.Message[:len(tc.want)] != tc.want) {
			t.Errorf("%s: %t %v", name, got.Allowed, got.Result)
		}
	}
}

// A rule that fails refuses, and takes no exemption of the platform away: who breaks the glass does so in an incident.
func TestAnExemptionHoldsWhereARuleFails(t *testing.T) {
	read := func(name, text string, opts ...bundle.Option) *bundle.Bundle {
		b, err := bundle.FromFiles(name, map[string]string{name + ".rego": "package extend.protection." + name + "\n\n" + text}, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	const failing = `deny contains {"rule": "r", "reason": "No", "message": "m"} if to_number(input.object.name) > 0`
	glass := read("glass", `exempt contains {"rule": "glass", "reason": "BreakGlass", "message": "ann breaks the glass."} if input.request.user.name == "ann"`)
	e := rules.Engine(t, "")
	h := newHandler(t, refuse)
	h.Engine, h.Kinds = e, protected{}
	for name, set := range map[string]bundle.Set{
		"of a team":     {read("own", failing, bundle.AsTenant("shop")), glass},
		"of a platform": {read("own", failing), glass},
	} {
		if err := e.ActivateBundles(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		for user, allowed := range map[string]bool{"ann": true, "bob": false} {
			request := deletes(`{"metadata":{"uid":"u","namespace":"shop","name":"web"}}`)
			request.UserInfo.Username = user
			got := h.Handle(t.Context(), request)
			if got.Allowed != allowed || allowed && (len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "ann breaks the glass.")) {
				t.Errorf("a rule %s fails, and %s is answered %t, %v %v", name, user, got.Allowed, got.Warnings, got.Result)
			}
		}
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{read("own", failing, bundle.AsTenant("shop")), read("glass", "exempt contains {\"rule\": \"glass\", \"reason\": \"B\", \"message\": \"m\"} if to_number(input.object.name) > 0")}); err != nil {
		t.Fatal(err)
	}
	if got := h.Handle(t.Context(), deletes(`{"metadata":{"uid":"u","namespace":"shop","name":"web"}}`)); got.Allowed {
		t.Error("an exemption that fails lets it pass")
	}
}

// A policy that does not answer by the time that the API server gives up refuses before that, whatever time the decision has: with
// a CPU limit, the time in which the process is stopped does not count for the decision.
func TestADecisionEndsWithItsRequest(t *testing.T) {
	h := newHandler(t, "deletion := {\"allow\": true, \"reasons\": []} if {\n\tr := numbers.range(1, 100000)\n\tsome a in r\n\tsome b in r\n\tsome c in r\n\ta + b + c == 0\n}")
	review := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}}
	request := deletes(stored)
	review.Request = &request.AdmissionRequest
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	hook := server.AnswerInTime(&admission.Webhook{Handler: h})
	r := httptest.NewRequest(http.MethodPost, "/validate-deletion?timeout=1s", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	start := time.Now()
	hook.ServeHTTP(w, r)
	if took := time.Since(start); took > 10*time.Second { // the decision has 20 s here
		t.Errorf("it took %s", took)
	}
	if answer := w.Body.String(); !strings.Contains(answer, `"allowed":false`) || !strings.Contains(answer, "No policy could decide") {
		t.Errorf("got %s", answer)
	}
}

// A bundle of a namespace has a say about the objects of the namespace, but not about those by which the administrator of the
// cluster limits the namespace: no kind, no operation.
func TestABundleOfANamespaceDoesNotVetoTheAdministrator(t *testing.T) {
	const denial = "package extend.protection.%s\n\ndeny contains {\"rule\": \"own\", \"reason\": \"No\", \"message\": \"%s\"}\n"
	read := func(name, text string, opts ...bundle.Option) *bundle.Bundle {
		b, err := bundle.FromFiles(name, map[string]string{name + ".rego": fmt.Sprintf(denial, name, text)}, opts...)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	e := rules.Engine(t, "")
	h := newHandler(t, refuse)
	h.Engine, h.Kinds = e, protected{}
	handle := func(group, resource, kind, object string, op admissionv1.Operation) string {
		request := deletes(object)
		request.Operation = op
		request.Kind, request.Resource = metav1.GroupVersionKind{Group: group, Version: "v1", Kind: kind}, metav1.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
		if got := h.Handle(t.Context(), request); !got.Allowed {
			return got.Result.Message
		}
		return ""
	}
	const inShop = `{"metadata":{"uid":"u","namespace":"shop","name":"web"}}`
	administered := [][3]string{
		{"rbac.authorization.k8s.io", "rolebindings", "RoleBinding"}, {"rbac.authorization.k8s.io", "roles", "Role"}, {"", "resourcequotas", "ResourceQuota"},
		{"", "limitranges", "LimitRange"}, {"networking.k8s.io", "networkpolicies", "NetworkPolicy"}, {"policy.kruise.io", "policybundles", "PolicyBundle"},
	}
	for _, step := range []struct {
		set  bundle.Set
		want string // of what the administrator is told
	}{
		{bundle.Set{read("team", "the team says no", bundle.AsTenant("shop"))}, ""},
		{bundle.Set{read("team", "the team says no", bundle.AsTenant("shop")), read("platform", "the platform says no")}, "the platform says no"},
	} {
		if err := e.ActivateBundles(t.Context(), step.set); err != nil {
			t.Fatal(err)
		}
		for _, op := range []admissionv1.Operation{admissionv1.Delete, admissionv1.Update} {
			if got := handle("", "configmaps", "ConfigMap", inShop, op); !strings.Contains(got, "the team says no") {
				t.Errorf("%s of a ConfigMap: %q", op, got)
			}
			for _, k := range administered {
				got := handle(k[0], k[1], k[2], inShop, op)
				if strings.Contains(got, "the team says no") || (got == "") != (step.want == "") || !strings.Contains(got, step.want) {
					t.Errorf("%s of a %s: %q, want %q", op, k[2], got, step.want)
				}
			}
			if got := handle("", "namespaces", "Namespace", `{"metadata":{"uid":"u","name":"shop"}}`, op); strings.Contains(got, "the team says no") {
				t.Errorf("%s of the Namespace: %q", op, got)
			}
		}
	}
}

// What went counts, and what was refused or tried does not.
func TestWhatWentIsRemembered(t *testing.T) {
	h := newHandler(t, `deletion := {"allow": input.recent.deletes < 1, "reasons": [{"rule": "r", "reason": "No", "message": "m"}]}`)
	dry := deletes(stored)
	dry.DryRun = new(bool)
	*dry.DryRun = true
	other := deletes(`{"metadata":{"uid":"v","namespace":"shop","name":"other"}}`)
	for i, tc := range []struct {
		request admission.Request
		want    bool
	}{{dry, true}, {deletes(stored), true}, {deletes(stored), true}, {other, false}} {
		if got := h.Handle(t.Context(), tc.request); got.Allowed != tc.want {
			t.Errorf("request %d: %t", i, got.Allowed)
		}
	}
}

// Reviews that no API server sent must not use up what a rule lets go.
func TestOnlyWhatTheAPIServerHasIsRemembered(t *testing.T) {
	for name, tc := range map[string]struct {
		old   string
		fails error
		want  int
	}{
		"an object that is there":                 {stored, nil, 1},
		"one of another UID":                      {`{"metadata":{"uid":"x","namespace":"shop","name":"web"}}`, nil, 0},
		"one of another name":                     {`{"metadata":{"uid":"u","namespace":"shop","name":"none"}}`, nil, 0},
		"one of another namespace":                {`{"metadata":{"uid":"u","namespace":"bank","name":"web"}}`, nil, 0},
		"one that is deleted already":             {`{"metadata":{"uid":"w","namespace":"shop","name":"going"}}`, nil, 0},
		"one of a kind that cannot be read":       {stored, apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", errors.New("no")), 1},
		"one while the API server does not reply": {stored, context.DeadlineExceeded, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(t, `deletion := {"allow": true, "reasons": [{"rule": "r", "reason": "Free", "message": "m"}]}`)
			objects := live(t)
			if tc.fails != nil {
				objects.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.fails })
			}
			h.Metadata = objects
			for range 3 { // of one object
				if got := h.Handle(t.Context(), deletes(tc.old)); !got.Allowed {
					t.Fatal(got.Result)
				}
			}
			namespace := "shop"
			if strings.Contains(tc.old, "bank") {
				namespace = "bank"
			}
			asked := &protection.Asked{Object: points.Object{Group: "apps", Version: "v1", Resource: "deployments", Namespace: namespace, UID: "new"}}
			if got := h.Recent.CountDeletes(asked).Deletes; got != tc.want {
				t.Errorf("%d deletions count, want %d", got, tc.want)
			}
		})
	}
}

func TestAnExceptionIsTold(t *testing.T) {
	h := newHandler(t, `deletion := {"allow": true, "exempt": true, "reasons": [{"rule": "r", "reason": "Glass", "message": "It burns."}]}`)
	if got := h.Handle(t.Context(), deletes(stored)); !got.Allowed || len(got.Warnings) != 1 {
		t.Errorf("got %t, %v", got.Allowed, got.Warnings)
	}
}

func TestWithoutADecisionItStays(t *testing.T) {
	h := newHandler(t, `deletion := 1`)
	if got := h.Handle(t.Context(), deletes(stored)); got.Allowed || got.Result.Code != 403 {
		t.Errorf("got %t, %v", got.Allowed, got.Result)
	}
}

// While no policy says how the label protects, objects with the label stay.
func TestWithoutKnownKindsWhatIsLabelledStays(t *testing.T) {
	h := newHandler(t, `deletion := {"allow": true, "reasons": [{"rule": "r", "reason": "Free", "message": "m"}]}`)
	h.Kinds = protected{err: errors.New("asking which kinds are protected: Undefined")}
	if got := h.Handle(t.Context(), deletes(stored)); got.Allowed || got.Result.Code != 500 {
		t.Errorf("with the label: %t, %v", got.Allowed, got.Result)
	}
	if got := h.Handle(t.Context(), deletes(`{"metadata":{"uid":"u","name":"web"}}`)); !got.Allowed {
		t.Errorf("without it: %v", got.Result)
	}
}

func FuzzHandle(f *testing.F) {
	h := newHandler(f, refuse)
	f.Add("DELETE", "", []byte(stored))
	f.Add("UPDATE", "status", []byte(`{"spec":[]}`))
	f.Add("DELETE", "", []byte(`{"metadata":{"uid":"u"},"spec":{"replicas":99999999999999999999}}`))
	f.Fuzz(func(t *testing.T, operation, sub string, old []byte) {
		r := deletes(string(old))
		r.Operation, r.SubResource = admissionv1.Operation(operation), sub
		if got := h.Handle(t.Context(), r); !got.Allowed && got.Result.Message == "" {
			t.Error("it says nothing")
		}
	})
}
