// SPDX-License-Identifier: Apache-2.0

// Package serve answers over HTTPS why a manager decided something, to users that may read the object
// in the API server. It is separate from its parent so that programs that only read answers, such as
// the command line, do not link an API server.
package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/replicas"
	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/engine/nearest"
	"github.com/regatta-sh/regatta/engine/record"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// Server answers over HTTPS: users through the API that the API server aggregates, and other managers
// at paths of their own. It asks the API server whether a user may use the API, and whether they may
// read the object that they ask about: a user who may get a pod may know why it was not updated.
type Server struct {
	Addr    string
	CertDir string
	// Ready is closed when CertDir has certificates.
	Ready   <-chan struct{}
	Store   *explain.Store
	Replica string
	Who     authenticator.Request
	May     authorizer.Authorizer
	// Peers lists the other managers, which a user's question is passed on to; nil if there are none.
	Peers func(context.Context) ([]replicas.Replica, error)
	// PeerTimeout is how long each of them may take to answer, 5 s if 0.
	PeerTimeout time.Duration
	// Records are the decisions of this replica, and Lines encodes them for
	// callers.
	Records *record.Buffer
	Lines   *record.Encoder
	// Now is the time, time.Now if nil.
	Now func() time.Time

	// RoomWait is how long a question waits for others before it is refused, 5 s if 0.
	RoomWait time.Duration

	finding chan struct{} // has room for one question whose answer evaluates policies
	// users has the slots of answers to users, managers those of answers to other managers.
	users, managers room
}

// NeedLeaderElection is false: every replica is asked, and the leader has the answers.
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
	server := s.newHTTPServer(watcher.GetCertificate)
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

// newHTTPServer makes a server that slow callers cannot block.
func (s *Server) newHTTPServer(certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)) *http.Server {
	s.finding, s.users, s.managers = make(chan struct{}, 1), newRoom(), newRoom()
	mux := http.NewServeMux()
	for path, serve := range map[string]http.HandlerFunc{
		"/apis/" + explain.Group: func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, explain.APIGroup()) },
		explain.APIPath:          func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, explain.APIResources()) },
		explain.APIPath + "/namespaces/{namespace}/" + explain.Explanations + "/{name}": s.serveExplanation,
		explain.APIPath + "/" + explain.ClusterExplanations + "/{name}":                 s.serveExplanation,
		explain.APIPath + "/namespaces/{namespace}/" + explain.Refusals:                 s.serveRefusals,
		explain.APIPath + "/" + explain.Refusals:                                        s.serveRefusals,
		explain.APIPath + "/" + explain.Decisions:                                       s.serveDecisions,
		explain.ReplicaPath:          s.servePeer,
		explain.ReplicaDecisionsPath: s.servePeerDecisions,
	} {
		mux.Handle("GET "+path, serve)
	}
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

// nearestTime is how long it may take to find the nearest rule, and to decide again with other facts.
const nearestTime = 2 * time.Second

// findNearest calls near for one caller at a time, since near evaluates policies.
func (s *Server) findNearest(ctx context.Context, near func(context.Context) *nearest.Result) (out *nearest.Result) {
	s.evaluateAlone(ctx, func(ctx context.Context) { out = near(ctx) }) // the answer is complete without it
	return out
}

// decideAgain makes the decisions of an answer again with changed facts. Of facts that the answer does not have it leaves their values out.
func (s *Server) decideAgain(ctx context.Context, answer *explain.Answer, texts []string) (out *whatif.Result) {
	changes, err := whatif.ParseChanges(texts)
	if err != nil {
		return &whatif.Result{Invalid: err.Error()}
	}
	if !s.evaluateAlone(ctx, func(ctx context.Context) { out = answer.Basis.DecideAgain(ctx, changes) }) {
		return &whatif.Result{Error: s.Replica + " answers other such questions; ask again in a moment"}
	}
	var shown []string
	for _, f := range answer.Facts {
		shown = append(shown, f.Name)
	}
	out.HideValues(shown)
	return out
}

// evaluateAlone calls a function that evaluates policies, for one caller at a time. It returns false if it was not the
// turn of the caller in time.
func (s *Server) evaluateAlone(ctx context.Context, evaluate func(context.Context)) bool {
	ctx, cancel := context.WithTimeout(ctx, nearestTime)
	defer cancel()
	select {
	case s.finding <- struct{}{}:
		defer func() { <-s.finding }()
		evaluate(ctx)
		return true
	case <-ctx.Done():
		return false
	}
}
