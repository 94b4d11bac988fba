// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/engine/record"
)

// decided is a round of a replica at a time.
type decided struct {
	replica string
	at      int64
}

func (d decided) ExplainWorkload() explain.Answer {
	return explain.Answer{Message: d.replica, Decided: time.Unix(d.at, 0)}
}
func (d decided) CountBytes() int                                  { return 0 }
func (d decided) ExplainPods() []explain.Answer                    { return nil }
func (d decided) ExplainPod(string, string) (explain.Answer, bool) { return explain.Answer{}, false }
func storeOf(d decided, refused ...string) *explain.Store {
	store := explain.NewStore()
	store.PutRound(decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "1"}, d)
	for i, name := range refused {
		store.PutRefusal(explain.Answer{
			Message: d.replica, Decided: time.Unix(d.at+int64(i), 0), Subject: decision.Subject{Namespace: "shop", Name: name},
			Request: &explain.Request{UID: fmt.Sprintf("%s-%s", d.replica, name), User: "bob", Resource: "pods"},
		})
	}
	return store
}

// mayGetAll but one: jane may not get secret pods, and managers may ask one of them alone.
func mayGetAll(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	who, replica := a.GetUser().GetName(), strings.HasPrefix(a.GetPath(), "/v1/replica/")
	if who == "manager" && replica || who == "jane" && !replica && a.GetName() != "secret" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func recordsOf(replica string, n int) *record.Buffer {
	buffer := record.NewBuffer()
	for i := range n {
		buffer.RecordDecision(decision.Record{ID: uint64(i + 1), Time: time.Unix(int64(i), 0), Point: rollout.PlanPoint().Name, Input: rollout.PlanInput{}, Subject: decision.Subject{Name: replica}})
	}
	return buffer
}

// pair is two replicas, of which the first is asked. It shows the second one a token, and trusts
// a CA, which is that of both unless one is given.
func pair(t *testing.T, token string, trusted *authority, edit func(*Server)) (address string, servers *authority) {
	t.Helper()
	clients, servers := newAuthority(t), newAuthority(t)
	noPeers := func(context.Context) ([]replicas.Replica, error) {
		t.Error("a replica that another one asks asks further ones")
		return nil, nil
	}
	second, _ := start(t, clients, servers, func(s *Server) {
		s.Replica, s.Store, s.Peers = "second", storeOf(decided{"second", 20}, "web-1", "secret"), noPeers
		s.Records, s.Lines, s.May = recordsOf("second", 3), record.NewEncoder(record.WithOrigin("second")), authorizer.AuthorizerFunc(mayGetAll)
	})
	host, text, _ := net.SplitHostPort(second)
	port, _ := strconv.Atoi(text)
	pod := func(name, ip string, phase corev1.PodPhase, label string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: name, Labels: map[string]string{"control-plane": label}},
			Status:     corev1.PodStatus{Phase: phase, PodIP: ip},
		}
	}
	const label = "controller-manager"
	pods := []client.Object{
		pod("first", "192.0.2.1", corev1.PodRunning, label), pod("second", host, corev1.PodRunning, label),
		pod("pending", "192.0.2.2", corev1.PodPending, label), pod("agent", "192.0.2.3", corev1.PodRunning, "daemon"),
	}
	dir, ca := t.TempDir(), servers
	if trusted != nil {
		ca = trusted
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	peers, err := replicas.NewPeers(&rest.Config{BearerToken: token}, fake.NewClientBuilder().WithObjects(pods...).Build(), "kruise-system", "first", port, dir, "localhost")
	if err != nil {
		t.Fatal(err)
	}
	address, _ = start(t, clients, servers, func(s *Server) {
		s.Replica, s.Store, s.Peers, s.May = "first", storeOf(decided{"first", 10}, "web-1", "web-2"), peers.ListPeers, authorizer.AuthorizerFunc(mayGetAll)
		s.Records, s.Lines = recordsOf("first", 2), record.NewEncoder(record.WithOrigin("first"))
		if edit != nil {
			edit(s)
		}
	})
	return address, servers
}

func request(t *testing.T, address string, servers *authority, path string) (explain.Reply, string, http.Header) {
	t.Helper()
	res := open(t, servers, nil, "", "https://"+address+path, "token-of-jane")
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", path, res.StatusCode, body, err)
	}
	var reply explain.Reply
	_ = json.Unmarshal(body, &reply) // of records it is none
	return reply, string(body), res.Header
}

const (
	aSetURL   = explain.APIPath + "/namespaces/shop/explanations/web?group=apps.kruise.io&kind=CloneSet"
	bobsURL   = explain.APIPath + "/namespaces/shop/refusals?user=bob"
	recordURL = explain.APIPath + "/decisions"
)

func TestAReplicaThatIsAskedAsksTheOthers(t *testing.T) {
	address, servers := pair(t, "token-of-manager", nil, nil)
	reply, _, h := request(t, address, servers, aSetURL)
	if reply.Answer.Replica != "second" || reply.Answer.Message != "second" || len(h.Values("Warning")) != 0 {
		t.Errorf("the newest answer is not that of the other one: %+v, %v", reply, h)
	}
	reply, body, _ := request(t, address, servers, bobsURL)
	var got []string
	for _, a := range append([]explain.Answer{reply.Answer}, reply.Refusals...) {
		got = append(got, a.Request.UID)
	}
	// That of the pod which she may not get is of the second replica, which does not know her.
	if want := []string{"second-web-1", "first-web-2", "first-web-1"}; !slices.Equal(got, want) || strings.Contains(body, "secret") {
		t.Errorf("she is told of %v, want %v", got, want)
	}
	_, body, h = request(t, address, servers, recordURL+"?limit=2")
	records, err := record.Read(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, r := range records {
		got = append(got, fmt.Sprint(r.Origin, r.ID))
	}
	if want := []string{"first1", "first2", "second2", "second3"}; !slices.Equal(got, want) {
		t.Errorf("records %v, want %v", got, want)
	}
	if w := h.Values("Warning"); len(w) != 1 || !strings.Contains(w[0], "second remembers 1 older decisions") {
		t.Errorf("warnings %v", w)
	}
}

// An answer that is missing is a warning besides that of the others. It names no address.
func TestReplicasThatDoNotAnswer(t *testing.T) {
	const unknown = "asking second: no answer: the log of first has the reason"
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
	defer slow.Close()
	at, err := url.Parse(slow.URL)
	if err != nil {
		t.Fatal(err)
	}
	hangs, err := replicas.NewClient(at, slow.Client())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		token   string
		trusted *authority
		edit    func(*Server)
		want    string
	}{
		"one that does not know the manager": {"token-of-jane", nil, nil, unknown},
		"one with another certificate":       {"token-of-manager", newAuthority(t), nil, unknown},
		"pods that cannot be listed": {"token-of-manager", nil, func(s *Server) {
			s.Peers = func(context.Context) ([]replicas.Replica, error) { return nil, errors.New("dial tcp 192.0.2.9:443") }
		}, "asking other managers: no answer: the log of first has the reason"},
		"one that takes too long": {"token-of-manager", nil, func(s *Server) {
			s.PeerTimeout = 100 * time.Millisecond
			s.Peers = func(context.Context) ([]replicas.Replica, error) {
				return []replicas.Replica{{Name: "slow", Client: hangs, Most: 1}}, nil
			}
		}, "asking slow: no answer: it took too long"},
	} {
		t.Run(name, func(t *testing.T) {
			address, servers := pair(t, tc.token, tc.trusted, tc.edit)
			for _, path := range []string{aSetURL, bobsURL, recordURL} {
				_, body, h := request(t, address, servers, path)
				if w := h.Values("Warning"); !strings.Contains(body, "first") || len(w) != 1 || !strings.Contains(w[0], tc.want) {
					t.Errorf("%s: %s, warnings %v", path, body, w)
				}
			}
		})
	}
}

// A list of records that has no end is not taken for a whole one.
func TestRecordsThatBreakOff(t *testing.T) {
	breaks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "{}")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer breaks.Close()
	at, err := url.Parse(breaks.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := replicas.NewClient(at, breaks.Client())
	if err != nil {
		t.Fatal(err)
	}
	address, servers := pair(t, "token-of-manager", nil, func(s *Server) {
		s.Peers = func(context.Context) ([]replicas.Replica, error) {
			return []replicas.Replica{{Name: "x", Client: client}}, nil
		}
	})
	res, err := try(t, servers, nil, "", "https://"+address+recordURL, "token-of-jane")
	if err != nil {
		return // it broke off before the first bytes came
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("it ended well with %s", body)
	}
}

// Users may not ask one replica alone: it does not look at what they may get.
func TestNoUserAsksOneReplicaAlone(t *testing.T) {
	address, servers := pair(t, "token-of-manager", nil, nil)
	for _, path := range []string{explain.ReplicaPath + "?user=bob", explain.ReplicaDecisionsPath} {
		for token, want := range map[string]int{"token-of-jane": http.StatusForbidden, "": http.StatusUnauthorized, "token-of-manager": http.StatusOK} {
			if code, body, _ := get(t, servers, nil, "", "https://"+address+path, token); code != want || code != http.StatusOK && strings.Contains(body, "web-1") {
				t.Errorf("%s with %q: %d %s", path, token, code, body)
			}
		}
	}
}
