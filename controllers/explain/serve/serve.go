// Package serve tells the answers of a manager over HTTPS, to whom the API server
// lets read what they are about. It is apart from its parent so that who only
// reads answers, such as the command line, is not linked with an API server.
package serve

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/regatta-sh/regatta/controllers/explain"
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
	go func() { _ = watcher.Start(ctx) }() // it ends with ctx; a failed reload keeps the old one
	go func() {
		<-ctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(stop)
	}()
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

func (s *Server) why(w http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	kind, namespace, name := q.Get("kind"), q.Get("namespace"), q.Get("name")
	resource, ok := map[string]authorizer.AttributesRecord{
		"Pod":      {Resource: "pods", APIVersion: "v1"},
		"CloneSet": {APIGroup: "apps.kruise.io", APIVersion: "v1beta1", Resource: "clonesets"},
	}[kind]
	if !ok || namespace == "" || name == "" {
		fail(w, http.StatusBadRequest, "want kind (Pod or CloneSet), namespace and name")
		return
	}
	who, ok, err := s.Who.AuthenticateRequest(req)
	if err != nil || !ok {
		fail(w, http.StatusUnauthorized, "the API server does not know who asks; use the credentials of your kubeconfig")
		return
	}
	resource.User, resource.Verb, resource.Namespace, resource.Name, resource.ResourceRequest = who.User, "get", namespace, name, true
	if verdict, reason, err := s.May.Authorize(req.Context(), resource); err != nil || verdict != authorizer.DecisionAllow {
		fail(w, http.StatusForbidden, fmt.Sprintf("%s may not get %s %s/%s: %s", nameOf(who.User), resource.Resource, namespace, name, reason))
		return
	}
	reply := explain.Reply{}
	if kind == "Pod" {
		reply.Answer, ok = s.Store.Pod(namespace, name)
	} else if reply.Answer, ok = s.Store.Workload(kind, namespace, name); ok && q.Get("pods") == "true" {
		reply.Pods, _ = s.Store.PodsOf(kind, namespace, name)
	}
	if !ok {
		fail(w, http.StatusNotFound, fmt.Sprintf("this replica has decided nothing about %s %s/%s", kind, namespace, name))
		return
	}
	reply.Answer.Replica = s.Replica
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(reply) // the caller has gone if it fails
}

func nameOf(u user.Info) string {
	if u == nil {
		return "nobody"
	}
	return u.GetName()
}

func fail(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": message})
}
