// SPDX-License-Identifier: Apache-2.0

// Package certs gives the webhooks their certificates: self-signed ones that
// are renewed, kept in a secret, or certificates that another tool puts there (PL-02, PL-03).
package certs

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
)

// Names of the objects that carry the CA.
const (
	MutatingConfiguration   = "kruise-mutating-webhook-configuration"
	ValidatingConfiguration = "kruise-validating-webhook-configuration"
)

// Config says where the certificates are stored, and what they are used for.
type Config struct {
	Secret  types.NamespacedName
	Dir     string // the files tls.crt, tls.key and ca.crt
	Service string
	Host    string   // that the API server calls the webhooks by, if it is not the service
	CRDs    []string // with a conversion webhook
	// APIService is the name of the APIService that leads to the manager; empty for none. Nothing else
	// waits until it has the CA: its own status says when it is not available.
	APIService  string
	RenewBefore time.Duration
	// External leaves making, renewing and injecting certificates to another
	// tool, such as cert-manager (gate EnableExternalCerts).
	External bool
	// Expiry has the end of the certificate; nil for no metric.
	Expiry *ExpiryMetric
}

const (
	caName       = "webhook-cert-ca"
	organization = "kruise"
	validity     = 10 * 365 * 24 * time.Hour
	checkEvery   = 12 * time.Hour
)

// Certificates are what a manager serves with.
type Certificates struct {
	ready chan struct{}

	mu  sync.Mutex
	why error
}

// Ready is closed when certificates are on disk and the objects that the API server reads have their
// CA.
func (c *Certificates) Ready() <-chan struct{} { return c.ready }

// NotReadyError says what is missing before Ready is closed, as far as it is known.
func (c *Certificates) NotReadyError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.why
}

func (c *Certificates) setNotReadyError(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = why
}

// +kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,verbs=get;list;watch;update

// SetupWithManager adds the tasks that keep the certificates to a manager.
func SetupWithManager(mgr ctrl.Manager, c Config, live client.Reader) (*Certificates, error) {
	state := &Certificates{ready: make(chan struct{})}
	if err := mgr.Add(crecovery.WrapRunnable("certs", &files{config: c, reader: live, state: state})); err != nil {
		return nil, fmt.Errorf("adding the certificate files: %w", err)
	}
	if c.External {
		return state, nil
	}
	hooks := []rotator.WebhookInfo{
		{Name: MutatingConfiguration, Type: rotator.Mutating},
		{Name: ValidatingConfiguration, Type: rotator.Validating},
	}
	for _, crd := range c.CRDs {
		hooks = append(hooks, rotator.WebhookInfo{Name: crd, Type: rotator.CRDConversion})
	}
	if c.APIService != "" {
		hooks = append(hooks, rotator.WebhookInfo{Name: c.APIService, Type: rotator.APIService})
	}
	names := c.dnsNames()
	err := rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey: c.Secret, CertDir: c.Dir, CAName: caName, CAOrganization: organization,
		DNSName: names[0], ExtraDNSNames: names[1:],
		IsReady: state.ready, Webhooks: hooks,
		CaCertDuration: validity, ServerCertDuration: validity, LookaheadInterval: c.RenewBefore,
		RotationCheckFrequency: checkEvery, EnableReadinessCheck: true,
	})
	if err != nil {
		return nil, fmt.Errorf("adding the certificate rotator: %w", err)
	}
	return state, nil
}

// ServerName is a name that a certificate of the manager has, whoever made it.
func (c Config) ServerName() string { return c.dnsNames()[0] }

// dnsNames are the host names that the webhooks are called by. A certificate of the manager must have
// the first one.
func (c Config) dnsNames() []string {
	var names []string
	for _, name := range []string{c.Host, fmt.Sprintf("%s.%s.svc", c.Service, c.Secret.Namespace), "localhost"} {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
