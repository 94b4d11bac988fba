// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/regatta-sh/regatta/engine/recovery"
)

// Clients admits requests with a client certificate of the API server only. A nil Clients admits all requests.
//
// The certificate is verified for each request and not in the TLS handshake: the API server presents one to admission
// webhooks, but has no setting to present one to conversion webhooks.
type Clients struct {
	ca       *dynamiccertificates.DynamicFileCAContent
	verifier authenticator.Request
	refused  *prometheus.CounterVec
	log      rate.Sometimes
}

// Values of the metric's label for why requests are refused.
const (
	missing = "missing"
	invalid = "invalid"
)

// NewClients makes a Clients. The file has the certificates of CAs in PEM, and is watched for changes. The names are the
// common names that a client may have, any if there are none.
func NewClients(file string, names []string) (*Clients, error) {
	ca, err := dynamiccertificates.NewDynamicCAContentFromFile("webhook-client-ca", file)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of the clients of webhooks: %w", err)
	}
	verified := authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
		return &authenticator.Response{}, true, nil
	})
	return &Clients{
		ca:       ca,
		verifier: x509.NewDynamicCAVerifier(ca.VerifyOptions, verified, x509.StaticStringSlice(names)),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "regatta_webhook_clients_refused_total", Help: "Requests to webhooks without a valid client certificate of the API server, by whether it was missing or invalid.",
		}, []string{"certificate"}),
		log: rate.Sometimes{First: 1, Interval: time.Minute}, // many requests may be refused at once
	}, nil
}

// RegisterMetric registers the metric.
func (c *Clients) RegisterMetric(registry prometheus.Registerer) error {
	if c == nil {
		return nil
	}
	if err := registry.Register(c.refused); err != nil {
		return fmt.Errorf("registering the metric of refused clients: %w", err)
	}
	return nil
}

// WatchCA follows changes of the CA until ctx is done.
func (c *Clients) WatchCA(ctx context.Context) {
	if c != nil {
		c.ca.Run(ctx, 1)
	}
}

// AskFor makes a TLS server ask its clients for a certificate.
func (c *Clients) AskFor(config *tls.Config) {
	if c != nil {
		config.ClientAuth = tls.RequestClientCert
	}
}

// RequireCertificate calls the handler for requests with a valid certificate. It answers all others with an HTTP error, which is not an
// admission response: the failure policy of the webhook applies.
func (c *Clients) RequireCertificate(handler http.Handler) http.Handler {
	if c == nil {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, ok, err := c.verifier.AuthenticateRequest(r)
		switch {
		case err != nil:
			c.recordRefusal(r, invalid, err.Error())
			http.Error(w, "The client certificate is not valid for this webhook: "+err.Error(), http.StatusForbidden)
		case !ok:
			c.recordRefusal(r, missing, "no client certificate was presented")
			http.Error(w, "This webhook requires the client certificate of the API server. Set it in the kubeConfigFile of the API server's AdmissionConfiguration.", http.StatusUnauthorized)
		default:
			handler.ServeHTTP(w, r)
		}
	})
}

func (c *Clients) recordRefusal(r *http.Request, certificate, why string) {
	c.refused.WithLabelValues(certificate).Inc()
	c.log.Do(func() {
		klog.ErrorS(nil, "Refused a request to a webhook; this is logged once a minute at most", "path", r.URL.Path, "client", r.RemoteAddr, "reason", why)
	})
}

// isOpenPath reports whether a path needs no certificate: such a path decides nothing and stores nothing.
func isOpenPath(path string) bool { return path == ConvertPath || path == HealthPath }

// VerifiedServer is a server whose webhooks accept requests only from these clients.
func (c *Clients) VerifiedServer(server webhook.Server) webhook.Server {
	if c == nil {
		return server
	}
	return &verified{Server: server, clients: c}
}

type verified struct {
	webhook.Server
	clients *Clients
}

// Register implements webhook.Server.
func (v *verified) Register(path string, hook http.Handler) {
	if !isOpenPath(path) {
		hook = v.clients.RequireCertificate(hook)
	}
	v.Server.Register(path, hook)
}

// Start implements webhook.Server.
func (v *verified) Start(ctx context.Context) error {
	recovery.GoUntilDone(ctx, "webhook", func(ctx context.Context) { v.clients.WatchCA(ctx) })
	return v.Server.Start(ctx)
}
