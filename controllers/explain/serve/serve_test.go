// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/nearest"
)

// urlOf is where the API answers a question that is given as parameters.
func urlOf(query string) string {
	values, _ := url.ParseQuery(query)
	q, path := explain.ParseQuestion(values), explain.APIPath
	if q.Namespace != "" {
		path += "/namespaces/" + q.Namespace
	}
	path += "/" + q.APIResource().Resource
	if !q.AsksForRefusals() {
		path += "/" + q.Name
	}
	return path + "?" + q.APIValues().Encode()
}

// one is a round about a workload with one pod.
type one struct{}

func (one) ExplainWorkload() explain.Answer { return explain.Answer{Verdict: explain.Updating} }
func (one) CountBytes() int                 { return 0 }
func (one) ExplainPods() []explain.Answer   { return []explain.Answer{{Verdict: explain.Held}} }
func (one) ExplainPod(namespace, name string) (explain.Answer, bool) {
	return explain.Answer{Verdict: explain.Held}, namespace == "shop" && name == "web-1"
}

// named takes the token for the name of who asks.
func named() authenticator.Request {
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		name := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
		return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, name != "", nil
	})
}

func TestWhoIsToldWhat(t *testing.T) {
	store := explain.NewStore()
	store.PutRound(decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u"}, one{})
	for _, subject := range []decision.Subject{
		{Group: "apps.kruise.io", Kind: "AdvancedCronJob", Namespace: "shop", Name: "backup", UID: "v"}, {Group: "apps.kruise.io", Kind: "SidecarSet", Name: "logs", UID: "w"},
	} {
		store.PutRound(subject, one{})
	}
	for _, r := range []struct{ uid, user, resource, namespace, name string }{
		{"r1", "bob", "pods", "shop", "web-1"}, {"r2", "bob", "pods", "shop", "db-0"}, {"r3", "bob", "namespaces", "", "shop"}, {"r4", "bob", "pods", "hidden", "x"},
	} {
		store.PutRefusal(explain.Answer{
			Verdict: explain.Refused, Reason: r.uid, Subject: decision.Subject{Namespace: r.namespace, Name: r.name},
			Request: &explain.Request{UID: r.uid, User: r.user, Resource: r.resource},
		})
	}
	tests := []struct {
		name, query, token string
		code               int
		asked              string // of the API server
		want               string
	}{
		{"a pod, to who may get it", "kind=Pod&namespace=shop&name=web-1", "jane", 200, "get pods shop/web-1", `"verdict":"Held"`},
		{"a CloneSet without its pods", "kind=CloneSet&namespace=shop&name=web", "jane", 200, "get clonesets.apps.kruise.io shop/web", `"verdict":"Updating"`},
		{"a CloneSet with its group", "group=apps.kruise.io&kind=CloneSet&namespace=shop&name=web", "jane", 200, "get clonesets.apps.kruise.io shop/web", `"verdict":"Updating"`},
		{"nothing about the kind of another group", "group=apps&kind=CloneSet&namespace=shop&name=web", "jane", 400, "", "with its group"},
		{"a CloneSet with its pods", "kind=CloneSet&namespace=shop&name=web&pods=true", "jane", 200, "get clonesets.apps.kruise.io shop/web", `"pods":[`},
		{"a job, by its resource", "resource=advancedcronjobs.apps.kruise.io&namespace=shop&name=backup", "jane", 200, "get advancedcronjobs.apps.kruise.io shop/backup", `"verdict":"Updating"`},
		{"no job without its namespace", "resource=advancedcronjobs.apps.kruise.io&name=backup", "jane", 400, "", "want kind"},
		{"a SidecarSet, which is in no namespace", "resource=sidecarsets.apps.kruise.io&name=logs", "jane", 200, "get sidecarsets.apps.kruise.io /logs", `"verdict":"Updating"`},
		{"nothing to who may not", "kind=Pod&namespace=shop&name=web-1", "eve", 403, "get pods shop/web-1", "eve may not get pods shop/web-1"},
		{"nothing where the API server cannot be asked", "kind=Pod&namespace=shop&name=web-1", "lost", 403, "get pods shop/web-1", "may not"},
		{"nothing to an anonymous caller", "kind=Pod&namespace=shop&name=web-1", "", 401, "", "does not know the caller"},
		{"not even what there is to who may not", "kind=Pod&namespace=shop&name=gone", "eve", 403, "get pods shop/gone", "may not"},
		{"that a pod is not known", "kind=Pod&namespace=shop&name=web-2", "jane", 404, "get pods shop/web-2", "no manager has decided anything about Pod shop/web-2 (1 asked)"},
		{"that another namespace has none", "kind=Pod&namespace=other&name=web-1", "jane", 404, "get pods other/web-1", "has decided anything"},
		{"a pod, and what was refused about it", "kind=Pod&namespace=shop&name=web-1", "jane", 200, "get pods shop/web-1", `"refusals":[{`},
		{"a pod of which there is only what was refused", "kind=Pod&namespace=shop&name=db-0", "jane", 200, "get pods shop/db-0", `"reason":"r2"`},
		{"an object of any kind, by resource", "resource=namespaces&name=shop", "jane", 200, "get namespaces /shop", `"reason":"r3"`},
		{"not an object of another group", "resource=namespaces.example.com&name=shop", "jane", 404, "get namespaces.example.com /shop", "decided anything about namespaces.example.com shop"},
		{"a request, to who may get its object", "request=r1", "jane", 200, "get pods shop/web-1", `"reason":"r1"`},
		{"not that there was a request, to who may not", "request=r1", "eve", 404, "get pods shop/web-1", "no manager remembers that you may know of request r1"},
		{"no request to an anonymous caller", "request=r1", "", 401, "", "does not know the caller"},
		{"no request that is not known", "request=r9", "jane", 404, "", "remembers that you may know of request r9"},
		{"what a user was refused, the latest first and the rest besides", "user=bob", "jane", 200, "get pods shop/web-1", `"refusals":[{`},
		{"that a kind is not decided about", "kind=Secret&namespace=shop&name=web", "jane", 400, "", "want kind"},
		{"that something is missing", "namespace=shop&name=web", "jane", 400, "", "want kind"},
		{"nothing to who may not ask in the namespace", "kind=Pod&namespace=shop&name=web-1", "outsider", 403, "", "outsider may not get explanations.decisions.kruise.io shop/web-1"},
		{"no request to who may not ask for all", "request=r1", "outsider", 403, "", "outsider may not list refusals.decisions.kruise.io"},
		{"a request in its namespace", "request=r1&namespace=shop", "jane", 200, "get pods shop/web-1", `"reason":"r1"`},
		{"no request of another namespace", "request=r1&namespace=hidden", "jane", 404, "", "may know of request r1"},
		{"an object of the API, as others have it", "kind=Pod&namespace=shop&name=web-1", "jane", 200, "get pods shop/web-1", `{"kind":"Explanation","apiVersion":"decisions.kruise.io/v1alpha1","metadata":{"namespace":"shop","name":"web-1"}`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			asked := ""
			s := &Server{
				Store: store, Replica: "manager-x",
				Who: named(),
				May: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
					if a.GetAPIGroup() == explain.Group { // outsiders may not ask at all
						if a.GetUser().GetName() == "outsider" {
							return authorizer.DecisionNoOpinion, "", nil
						}
						return authorizer.DecisionAllow, "", nil
					}
					resource := a.GetResource()
					if g := a.GetAPIGroup(); g != "" {
						resource += "." + g
					}
					asked = a.GetVerb() + " " + resource + " " + a.GetNamespace() + "/" + a.GetName()
					switch a.GetUser().GetName() {
					case "jane":
						return authorizer.DecisionAllow, "", nil
					case "lost":
						return authorizer.DecisionAllow, "", errors.New("no API server")
					}
					return authorizer.DecisionNoOpinion, "", nil
				}),
			}
			req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, urlOf(tc.query), nil)
			if tc.token != "" {
				req.Header.Set("Authorization", "Bearer "+tc.token)
			}
			w := httptest.NewRecorder()
			s.newHTTPServer(nil).Handler.ServeHTTP(w, req)
			if body := w.Body.String(); w.Code != tc.code || !strings.Contains(body, tc.want) || asked != tc.asked {
				t.Errorf("%d %s, asked %q", w.Code, body, asked)
			}
			var reply explain.Reply
			if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil || (w.Code == 200 && reply.Answer.Replica != "manager-x") {
				t.Errorf("%v, answered by %q", err, reply.Answer.Replica)
			}
		})
	}
}

// near is a round about a pod whose nearest rule takes work to find.
type near struct {
	one
	found *int
}

func (n near) ExplainPod(string, string) (explain.Answer, bool) {
	return explain.Answer{Verdict: explain.Held, Near: func(ctx context.Context) *nearest.Result {
		if _, bounded := ctx.Deadline(); !bounded {
			return nil
		}
		*n.found++
		return &nearest.Result{Almost: []nearest.Rule{{Rule: "close.by"}}}
	}}, true
}

func TestTheNearestRuleIsFoundForWhoAsks(t *testing.T) {
	found := 0
	store := explain.NewStore()
	store.PutRound(decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u"}, near{found: &found})
	s := &Server{Store: store, Who: named(), May: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	})}
	handler := s.newHTTPServer(nil).Handler
	for _, tc := range []struct {
		query string
		found int
		want  bool
	}{{"", 0, false}, {"&nearest=true", 1, true}, {"&nearest=false", 1, false}} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, urlOf("kind=Pod&namespace=shop&name=web-1"+tc.query), nil)
		req.Header.Set("Authorization", "Bearer jane")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		if got := strings.Contains(w.Body.String(), "close.by"); w.Code != http.StatusOK || got != tc.want || found != tc.found {
			t.Errorf("%s: %d %s, found %d times", tc.query, w.Code, w.Body.String(), found)
		}
	}
}
