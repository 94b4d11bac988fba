// SPDX-License-Identifier: Apache-2.0

// Package serve tells the answers of a manager over HTTPS, to whom the API server
// lets read what they are about. It is apart from its parent so that who only
// reads answers, such as the command line, is not linked with an API server.
package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/engine/nearest"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// Server answers over HTTPS. It asks the API server who the caller is and
// whether they may read the object they ask about: who may get a pod may know
// why it was not updated.
type Server struct {
	Addr    string
	CertDir string
	// Ready is closed when there are certificates in CertDir.
	Ready   <-chan struct{}
	Store   *explain.Store
	Replica string
	Who     authenticator.Request
	May     authorizer.Authorizer
	// Records are the decisions of this replica, and Lines encodes them for
	// callers.
	Records *record.Buffer
	Lines   *record.Encoder
	// Now is the time, time.Now if nil.
	Now func() time.Time

	finding chan struct{} // has room for one who looks for the nearest rule
	writing chan struct{} // has room for the answers that are in memory at a time
}

// NeedLeaderElection is false: a caller asks every replica, and the one that
// decides has answers.
func (s *Server) NeedLeaderElection() bool { return false }

// Start serves until ctx is done.
func (s *Server) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.Ready:
	}
	watcher, err := certwatcher.New(filepath.Join(s.CertDir, "tls.crt"), filepath.Join(s.CertDir, "tls.key"))
	if err != nil {
		return fmt.Errorf("reading the certificate for decisions: %w", err)
	}
	server := s.server(watcher.GetCertificate)
	recovery.GoUntilDone(ctx, "explain", func(ctx context.Context) { _ = watcher.Start(ctx) }) // it ends with ctx; a failed reload keeps the old one
	recovery.Go("explain", func() {
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(stop)
	}, nil)
	ctrl.LoggerFrom(ctx).Info("Explaining decisions", "address", s.Addr)
	if err := server.ListenAndServeTLS("", ""); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving decisions: %w", err)
	}
	return nil
}

// server is a server that slow callers cannot hold up.
func (s *Server) server(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET "+explain.Path, http.HandlerFunc(s.why))
	s.writing = make(chan struct{}, AnswersAtOnce)
	s.finding = make(chan struct{}, 1)
	mux.Handle("GET "+explain.DecisionsPath, http.HandlerFunc(s.decisions))
	return &http.Server{
		Addr: s.Addr, Handler: mux,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 1 << 15, // names and tokens are short
		TLSConfig: &tls.Config{
			GetCertificate: certificate, MinVersion: tls.VersionTLS12,
			ClientAuth: tls.RequestClientCert, // verified by Who, as the API server does
		},
	}
}

// refusalsTold is how many refusals one answer lists.
const refusalsTold = 20

func (s *Server) why(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	kind, namespace, name := schema.GroupKind{Group: q.Get("group"), Kind: q.Get("kind")}, q.Get("namespace"), q.Get("name")
	if uid, by := q.Get("request"), q.Get("user"); uid != "" || by != "" {
		s.refused(w, req, explain.Sought{UID: uid, User: by})
		return
	}
	about := schema.ParseGroupResource(q.Get("resource"))
	pod, namespaced := kind == schema.GroupKind{Kind: "Pod"}, kind.Kind != ""
	if pod {
		about = schema.GroupResource{Resource: "pods"}
	} else if w, ok := kinds.Asked(kind); ok {
		kind, about = w.GroupKind(), w.GroupResource()
	} else if k, in, ok := kinds.Explained(about); ok {
		kind, namespaced = k, in
	}
	if about.Resource == "" || name == "" || namespace == "" && namespaced {
		fail(w, http.StatusBadRequest, "want kind (Pod, "+kinds.List("or")+") with its group, or resource, namespace and name; or request or user")
		return
	}
	who, ok := s.caller(w, req)
	if !ok {
		return
	}
	if reason, ok := s.mayGet(req, who, about, namespace, name); !ok {
		fail(w, http.StatusForbidden, fmt.Sprintf("%s may not get %s %s/%s: %s", nameOf(who), about.Resource, namespace, name, reason))
		return
	}
	reply := explain.Reply{Refusals: s.Store.Refusals(explain.Sought{Resource: about.String(), Namespace: namespace, Name: name}, refusalsTold)}
	if pod {
		reply.Answer, ok = s.Store.Pod(namespace, name)
		if placed, found := s.Store.Placed(namespace, name); found && ok {
			reply.Placed = &placed
		} else if found {
			reply.Answer, ok = placed, true
		}
		reply.Sidecars = s.Store.Sidecars(namespace, name)
		if !ok && len(reply.Sidecars) > 0 {
			reply.Answer, reply.Sidecars, ok = reply.Sidecars[0], reply.Sidecars[1:], true
		}
		reply.Lacks = s.Store.Lacks(namespace, name)
		if !ok && len(reply.Lacks) > 0 {
			reply.Answer, reply.Lacks, ok = reply.Lacks[0], reply.Lacks[1:], true
		}
	} else if reply.Answer, ok = s.Store.Workload(kind, namespace, name); ok && q.Get("pods") == "true" {
		reply.Pods, _ = s.Store.PodsOf(kind, namespace, name)
	}
	s.answer(w, req, reply, ok, fmt.Sprintf("about %s %s/%s", cmp.Or(kind.Kind, about.String()), namespace, name))
}

// refused tells of requests whose objects the caller may get. Of others it does
// not even tell that they were.
func (s *Server) refused(w http.ResponseWriter, req *http.Request, sought explain.Sought) {
	who, ok := s.caller(w, req)
	if !ok {
		return
	}
	reply := explain.Reply{}
	for _, a := range s.Store.Refusals(sought, refusalsTold) {
		about := schema.GroupResource{Group: a.Request.Group, Resource: a.Request.Resource}
		if _, ok := s.mayGet(req, who, about, a.Subject.Namespace, a.Subject.Name); ok {
			reply.Refusals = append(reply.Refusals, a)
		}
	}
	s.answer(w, req, reply, false, "that you may know of: neither about this request nor for this user")
}

// answer sends a reply. Where nothing but a refusal is known that is the answer.
func (s *Server) answer(w http.ResponseWriter, req *http.Request, reply explain.Reply, known bool, about string) {
	for i := range reply.Refusals {
		reply.Refusals[i].Replica = s.Replica
	}
	if !known && len(reply.Refusals) > 0 {
		reply.Answer, reply.Refusals, known = reply.Refusals[0], reply.Refusals[1:], true
	}
	if !known {
		fail(w, http.StatusNotFound, "this replica has decided nothing "+about)
		return
	}
	reply.Answer.Replica = s.Replica
	if near := reply.Answer.Near; near != nil && req.URL.Query().Get(explain.NearestQuery) == "true" {
		reply.Answer.Nearest = s.nearest(req.Context(), near)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply) // the caller has gone if it fails
}

// nearestTime is how long it may take to find the nearest rule.
const nearestTime = 2 * time.Second

// nearest is worked out for one caller at a time, since it evaluates policies.
func (s *Server) nearest(ctx context.Context, near func(context.Context) *nearest.Result) *nearest.Result {
	ctx, cancel := context.WithTimeout(ctx, nearestTime)
	defer cancel()
	select {
	case s.finding <- struct{}{}:
		defer func() { <-s.finding }()
		return near(ctx)
	case <-ctx.Done():
		return nil // the answer is there without it
	}
}

// caller is who asks; without one there is an answer already.
func (s *Server) caller(w http.ResponseWriter, req *http.Request) (user.Info, bool) {
	who, ok, err := s.Who.AuthenticateRequest(req)
	if err != nil || !ok {
		fail(w, http.StatusUnauthorized, "the API server does not know who asks; use the credentials of your kubeconfig")
		return nil, false
	}
	return who.User, true
}

func (s *Server) mayGet(req *http.Request, who user.Info, about schema.GroupResource, namespace, name string) (reason string, ok bool) {
	verdict, reason, err := s.May.Authorize(req.Context(), authorizer.AttributesRecord{
		User: who, Verb: "get", APIGroup: about.Group, APIVersion: "*", Resource: about.Resource, Namespace: namespace, Name: name, ResourceRequest: true,
	})
	return reason, err == nil && verdict == authorizer.DecisionAllow
}

func nameOf(u user.Info) string {
	if u == nil {
		return "an anonymous user"
	}
	return u.GetName()
}

func fail(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}
