// Package certs gives the webhooks their certificates: self-signed ones that
// are renewed, kept in a secret, or those that another tool puts there
// (features.md 18, decisions.md PL-02).
package certs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the objects that carry the CA.
const (
	MutatingConfiguration   = "kruise-mutating-webhook-configuration"
	ValidatingConfiguration = "kruise-validating-webhook-configuration"
)

// Config says where certificates are and for what.
type Config struct {
	Secret      types.NamespacedName
	Dir         string // the files tls.crt, tls.key and ca.crt
	Service     string
	CRDs        []string // with a conversion webhook
	RenewBefore time.Duration
	// External leaves making, renewing and injecting certificates to another
	// tool, such as cert-manager (gate EnableExternalCerts).
	External bool
}

const (
	caName       = "webhook-cert-ca"
	organization = "kruise"
	validity     = 10 * 365 * 24 * time.Hour
	checkEvery   = 12 * time.Hour
	syncEvery    = 2 * time.Second
	settledEvery = time.Minute
)

// Setup keeps the certificates with a manager. The channel is closed when there
// are certificates on disk and their CA is where the API server looks.
func Setup(mgr ctrl.Manager, c Config, live client.Reader) (<-chan struct{}, error) {
	ready := make(chan struct{})
	files := &files{config: c, reader: live}
	if err := mgr.Add(files); err != nil {
		return nil, fmt.Errorf("adding the certificate files: %w", err)
	}
	if c.External {
		files.written = ready
		return ready, nil
	}
	hooks := []rotator.WebhookInfo{
		{Name: MutatingConfiguration, Type: rotator.Mutating},
		{Name: ValidatingConfiguration, Type: rotator.Validating},
	}
	for _, crd := range c.CRDs {
		hooks = append(hooks, rotator.WebhookInfo{Name: crd, Type: rotator.CRDConversion})
	}
	err := rotator.AddRotator(mgr, &rotator.CertRotator{
		SecretKey: c.Secret, CertDir: c.Dir, CAName: caName, CAOrganization: organization,
		DNSName: fmt.Sprintf("%s.%s.svc", c.Service, c.Secret.Namespace), ExtraDNSNames: []string{"localhost"},
		IsReady: ready, Webhooks: hooks,
		CaCertDuration: validity, ServerCertDuration: validity, LookaheadInterval: c.RenewBefore,
		RotationCheckFrequency: checkEvery, EnableReadinessCheck: true,
	})
	if err != nil {
		return nil, fmt.Errorf("adding the certificate rotator: %w", err)
	}
	return ready, nil
}

// files copies the secret to disk. A mounted secret would do, but the kubelet
// takes up to a minute and a half to show what was just written.
type files struct {
	config  Config
	reader  client.Reader
	written chan struct{} // closed at the first write; may be nil
}

// NeedLeaderElection is false: every replica serves webhooks.
func (f *files) NeedLeaderElection() bool { return false }

// Start copies until ctx is done: every 2 s until there is a certificate, then
// every minute. The webhook server reloads changed files by itself.
func (f *files) Start(ctx context.Context) error {
	every := syncEvery
	for {
		ok, err := f.sync(ctx)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "copying the certificates of the webhooks")
		}
		if ok && every == syncEvery {
			every = settledEvery
			if f.written != nil {
				close(f.written)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}

func (f *files) sync(ctx context.Context) (bool, error) {
	secret := &corev1.Secret{}
	if err := f.reader.Get(ctx, f.config.Secret, secret); err != nil {
		return false, fmt.Errorf("reading secret %s: %w", f.config.Secret, err)
	}
	if len(secret.Data[corev1.TLSCertKey]) == 0 || len(secret.Data[corev1.TLSPrivateKeyKey]) == 0 {
		return false, nil // the rotator has not written it yet
	}
	if err := os.MkdirAll(f.config.Dir, 0o700); err != nil {
		return false, fmt.Errorf("making the certificate directory: %w", err)
	}
	for _, name := range []string{"ca.crt", corev1.TLSPrivateKeyKey, corev1.TLSCertKey} {
		if err := replace(filepath.Join(f.config.Dir, name), secret.Data[name]); err != nil {
			return false, err
		}
	}
	return true, nil
}

// replace writes a file so that a reader sees the old one or the new one.
func replace(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && string(old) == string(data) {
		return nil
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return fmt.Errorf("writing certificate: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("writing certificate: %w", err)
	}
	return nil
}
