// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/policyhost"
	"github.com/regatta-sh/regatta/controllers/protection"
	"github.com/regatta-sh/regatta/controllers/webhook/deletion"
	webhookserver "github.com/regatta-sh/regatta/controllers/webhook/server"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// patience is how long the API server may take to answer before a manager that starts uses the
// policies on its disk.
const patience = 5 * time.Second

// offline answers webhook requests while the manager cannot reach the API server. It uses the
// certificate and the policies that an earlier process left on disk.
type offline struct {
	*Options
	config *rest.Config
	host   *policyhost.Host
}

// serveOffline returns when the API server answers; at once if there is nothing on disk. A
// controller-runtime manager needs the API server to start, for its caches and its certificate, and
// would end without it.
func (o *offline) serveOffline(ctx context.Context, scheme *runtime.Scheme) error {
	if o.PolicyDir == "" || o.apiServerAnswers(ctx) {
		return nil
	}
	certificate, err := tls.LoadX509KeyPair(filepath.Join(o.webhooks.certDir, "tls.crt"), filepath.Join(o.webhooks.certDir, "tls.key"))
	if err != nil {
		klog.ErrorS(err, "The API server does not answer, and there is no certificate on disk to serve with")
		return nil
	}
	if _, err := o.host.RestoreFromDisk(ctx); err != nil {
		klog.ErrorS(err, "The API server does not answer, and there are no policies on disk to decide by")
		return nil
	}
	decides, err := o.newDeletionHandler(scheme)
	if err != nil {
		return err
	}
	clients, err := o.newWebhookClients()
	if err != nil {
		return err
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	clients.AskFor(secure)
	hooks := http.NewServeMux()
	hooks.Handle(webhookconfig.ValidateDeletionPath, clients.RequireCertificate(webhookserver.AnswerInTime(&webhook.Admission{Handler: decides})))
	hooks.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the API server does not answer, without which this cannot be decided", http.StatusServiceUnavailable)
	})
	health := http.NewServeMux()
	for _, path := range []string{"/healthz", "/readyz"} {
		health.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	recovery.GoUntilDone(ctx, "webhook", func(ctx context.Context) { clients.WatchCA(ctx) })
	ended := make(chan error, 2)
	running := 1
	end := func(err error) { ended <- err }
	recovery.Go("offline", func() {
		ended <- serveUntil(ctx, fmt.Sprintf(":%d", o.webhooks.port), hooks, secure)
	}, end)
	if o.ProbeAddr != "0" {
		running++
		recovery.Go("offline", func() { ended <- serveUntil(ctx, o.ProbeAddr, health, nil) }, end)
	}
	klog.InfoS("The API server does not answer; until it does, deletions are decided by the policies on disk", "policies", bundle.ShortRevision(o.host.Engine().ActiveSnapshot().Revision()))
	_ = wait.PollUntilContextCancel(ctx, time.Second, false, func(context.Context) (bool, error) { // it is no error if ctx ends
		return o.apiServerAnswers(ctx) || len(ended) > 0, nil
	})
	cancel()
	for range running {
		err = errors.Join(err, <-ended)
	}
	klog.InfoS("The API server answers again")
	return err
}

// newDeletionHandler makes the handler of deletions. Objects that cannot be counted without the API
// server count as existing.
func (o *offline) newDeletionHandler(scheme *runtime.Scheme) (*deletion.Handler, error) {
	live, err := client.New(o.config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	objects, err := metadata.NewForConfig(o.config)
	if err != nil {
		return nil, fmt.Errorf("making a client for what deletions take along: %w", err)
	}
	return &deletion.Handler{
		Engine: o.host.Engine(), Kinds: webhookconfig.NewRules(o.host.Engine(), o.protectionGates()),
		Reporter: protection.NewReporter(o.host.Engine(), explain.NewStore(), protection.WithLog(o.protectionLog())),
		Recent:   protection.NewRecent(time.Now), Live: live, Metadata: objects, Now: time.Now,
	}, nil
}

// apiServerAnswers reports whether the API server answers a cheap request.
func (o *offline) apiServerAnswers(ctx context.Context) bool {
	config := rest.CopyConfig(o.config)
	config.Timeout = patience
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return true // the manager reports the error when it starts
	}
	err = c.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	return err == nil || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// serveUntil serves until ctx is done.
func serveUntil(ctx context.Context, addr string, handler http.Handler, secure *tls.Config) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if ctx.Err() != nil && err != nil {
		return nil // the process ends before it has served anything
	}
	if err != nil {
		return fmt.Errorf("listening on %s: %w", addr, err)
	}
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	s := &http.Server{Handler: handler, ReadHeaderTimeout: patience}
	stop := context.AfterFunc(ctx, func() {
		// Requests in progress are completed; idle connections are closed.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		_ = s.Shutdown(last)
	})
	defer stop()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", addr, err)
	}
	return nil
}
