// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/regatta-sh/regatta/controllers/explain/replicas"
)

// webhooks is the object with the CA of the manager's certificate. Decisions are served with the same
// certificate.
const webhooks = "kruise-validating-webhook-configuration"

// authority is the CA that signed the certificate of the managers, and the name
// in it. Without a pool the CA is not known.
type authority struct {
	pool *x509.CertPool
	name string
}

// findAuthority reads the CA from the object that the API server uses. Many users may not read that
// object, so it is no error if they cannot.
func findAuthority(ctx context.Context, client kubernetes.Interface) authority {
	found := authority{}
	config, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, webhooks, metav1.GetOptions{})
	if err != nil {
		return found
	}
	for i := range config.Webhooks {
		c := &config.Webhooks[i].ClientConfig
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(c.CABundle) {
			continue // not written yet
		}
		found.pool = pool
		switch {
		case c.Service != nil:
			found.name = c.Service.Name + "." + c.Service.Namespace + ".svc"
		case c.URL != nil:
			if u, err := url.Parse(*c.URL); err == nil {
				found.name = u.Hostname()
			}
		}
		return found
	}
	return found
}

// newEndpointCheck checks the certificate of a manager that is asked over the network:
// it must be the manager's own, or be valid for the host in the URL, such as that of an ingress.
func (a authority) newEndpointCheck(host string) replicas.Check {
	return func(s tls.ConnectionState) error {
		err := (authority{name: host}).verifyConnection(s) // by the CAs of this machine
		if err == nil || a.pool == nil {
			return err
		}
		if own := a.verifyConnection(s); own != nil {
			return errors.Join(err, own)
		}
		return nil
	}
}

func (a authority) verifyConnection(s tls.ConnectionState) error {
	return replicas.VerifyCertificate(s, a.name, a.pool)
}

func acceptAnyCertificate(tls.ConnectionState) error { return nil }
