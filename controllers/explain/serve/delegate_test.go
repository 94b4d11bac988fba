// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/explain"
)

// reviewer is as much of an API server as Delegate takes. It knows no token, and lets jane do
// everything.
type reviewer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []authorizationv1.SubjectAccessReviewSpec
}

func newReviewer(t *testing.T, config map[string]string) *reviewer {
	t.Helper()
	const configMaps = "GET /api/v1/namespaces/kube-system/configmaps"
	r := &reviewer{}
	published := corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: authNamespace, Name: authConfigMap, ResourceVersion: "1"}, Data: config,
	}
	mux := http.NewServeMux()
	mux.HandleFunc(configMaps+"/"+authConfigMap, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, published) })
	mux.HandleFunc(configMaps, func(w http.ResponseWriter, req *http.Request) {
		switch q := req.URL.Query(); {
		case q.Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusBadRequest) // it is older than that, and has lists
			return
		case q.Get("watch") != "":
			<-req.Context().Done()
			return
		}
		writeJSON(w, http.StatusOK, corev1.ConfigMapList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.ConfigMap{published},
		})
	})
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body) // its status says nothing
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, req *http.Request) {
		review := authorizationv1.SubjectAccessReview{}
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		review.Status.Allowed = review.Spec.User == "jane"
		r.mu.Lock()
		r.asked = append(r.asked, review.Spec)
		r.mu.Unlock()
		writeJSON(w, http.StatusCreated, review)
	})
	r.Server = httptest.NewServer(mux)
	t.Cleanup(func() { r.CloseClientConnections(); r.Close() })
	return r
}

// The API server passes on requests of users under its own certificate, and tells who they are in
// headers. No other caller is believed.
func TestWhoseHeadersAreBelieved(t *testing.T) {
	users, proxies, servers := newAuthority(t), newAuthority(t), newAuthority(t)
	ca := func(a *authority) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
	}
	api := newReviewer(t, map[string]string{
		clientCAKey: ca(users), proxyCAKey: ca(proxies),
		"requestheader-username-headers": `["X-Remote-User"]`, "requestheader-group-headers": `["X-Remote-Group"]`,
		"requestheader-extra-headers-prefix": `["X-Remote-Extra-"]`, "requestheader-allowed-names": `["front-proxy-client"]`,
	})
	who, may, err := NewDelegatedAuth(t.Context(), &rest.Config{Host: api.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	address, _ := start(t, users, servers, func(s *Server) { s.Who, s.May = who, may })
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // until it is known who passes on requests
		code, _, _ := get(t, servers, users.client("jane"), "", "https://"+address+urlOf("kind=Pod&namespace=shop&name=web-1"), "")
		res := open(t, servers, proxies.client("front-proxy-client"), "", "https://"+address+urlOf("kind=Pod&namespace=shop&name=web-1"), "", "X-Remote-User", "jane")
		res.Body.Close()
		if code == http.StatusOK && res.StatusCode == http.StatusOK {
			break
		} else if time.Now().After(end) {
			t.Fatalf("a user's own certificate gets %d, and the API server's %d", code, res.StatusCode)
		}
	}
	jane := []string{"X-Remote-User", "jane", "X-Remote-Group", "developers", "X-Remote-Extra-Tenant", "a"}
	for name, tc := range map[string]struct {
		cert    *authority
		cn      string
		headers []string
		code    int
		user    string // whose rights were asked for
	}{
		"the API server's":                      {proxies, "front-proxy-client", jane, 200, "jane"},
		"the API server's about another user":   {proxies, "front-proxy-client", []string{"X-Remote-User", "joe"}, 403, "joe"},
		"those of nobody":                       {nil, "", jane, 401, ""},
		"those of a user, who is who they are":  {users, "joe", jane, 403, "joe"},
		"those of another name of the CA":       {proxies, "impostor", jane, 401, ""},
		"those under a certificate of no CA":    {servers, "front-proxy-client", jane, 401, ""},
		"none, under the API server's own name": {proxies, "front-proxy-client", nil, 401, ""},
	} {
		t.Run(name, func(t *testing.T) {
			api.mu.Lock()
			api.asked = nil
			api.mu.Unlock()
			address := "https://" + address + urlOf("kind=Pod&namespace=shop&name=web-1")
			var res *http.Response
			if tc.cert != nil {
				res = open(t, servers, tc.cert.client(tc.cn), "", address, "", tc.headers...)
			} else {
				res = open(t, servers, nil, "", address, "", tc.headers...)
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != tc.code {
				t.Errorf("%d %s", res.StatusCode, body)
			}
			api.mu.Lock()
			defer api.mu.Unlock()
			for _, spec := range api.asked {
				if spec.User != tc.user {
					t.Errorf("the rights of %s are asked for", spec.User)
				}
				if tc.code == 200 && (!slices.Contains(spec.Groups, "developers") || spec.Extra["tenant"][0] != "a") {
					t.Errorf("not with all that the API server tells: %+v", spec)
				}
			}
			if tc.code == 200 && len(api.asked) == 0 {
				t.Errorf("asked %+v", api.asked)
			}
		})
	}
}

// The API server finds out that an API is there without naming a user.
func TestDiscovery(t *testing.T) {
	handler := (&Server{}).newHTTPServer(nil).Handler
	for path, want := range map[string]any{"/apis/" + explain.Group: explain.APIGroup(), explain.APIPath: explain.APIResources()} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		text, err := json.Marshal(want)
		if err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || strings.TrimSpace(w.Body.String()) != string(text) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, r := range explain.APIResources().APIResources {
		for _, verb := range r.Verbs {
			if verb != "get" && verb != "list" { // what can be deleted keeps namespaces from being deleted
				t.Errorf("%s has the verb %s", r.Name, verb)
			}
		}
	}
	if !strings.Contains(string(mustMarshal(t, explain.APIResources())), `"kind":"APIResourceList","apiVersion":"v1","groupVersion":"decisions.kruise.io/v1alpha1"`) {
		t.Error("the list says not what it is")
	}
}

func mustMarshal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
