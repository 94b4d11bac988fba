// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/certs"
)

// certificateSecret has the certificate of the webhooks.
const certificateSecret = "kruise-webhook-certs"

// soon is how long before it expires a certificate is a finding. The manager renews its own certificates long
// before.
const soon = 30 * 24 * time.Hour

// serving is the certificate that the manager serves webhooks with.
type serving struct {
	chain []byte // of certificates, in PEM; nil if it is not known
	name  string // that the API server calls it by
}

// findServing reads the certificate of the webhooks, and checks its dates. The key beside it is dropped at once.
func (i *inspector) findServing(ctx context.Context) serving {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: i.Namespace, Name: certificateSecret}
	of := serving{name: certs.Config{Secret: key, Service: webhookService, Host: i.webhookHost()}.ServerName()}
	object := nameOf("Secret", key.Namespace, key.Name)
	err := i.askServer(ctx, func(ctx context.Context) error { return i.Get(ctx, key, secret) })
	switch {
	case apierrors.IsNotFound(err):
		i.addFinding(Finding{Blocks, "certificates", object, "metadata.name", "it is not there, so that no manager can keep a certificate", "helm upgrade " + i.Release + " charts/kruise, which makes it"})
		return of
	case err != nil:
		i.addError("certificates", object, "get", err)
		return of
	}
	of.chain = secret.Data[corev1.TLSCertKey]
	leaf, err := certs.VerifyChain(of.chain, secret.Data["ca.crt"], of.name)
	switch {
	case leaf == nil:
		i.addFinding(Finding{Blocks, "certificates", object, "data[tls.crt]", "there is no certificate yet: " + err.Error(), "kubectl -n " + i.Namespace + " logs deployment/kruise-controller-manager; with EnableExternalCerts=true, look at the tool that makes it"})
		of.chain = nil
		return of
	case err != nil && len(secret.Data["ca.crt"]) > 0 && !isExpired(err):
		i.addFinding(Finding{Warns, "certificates", object, "data[ca.crt]", "it is not the CA of the certificate beside it: " + err.Error(), "kubectl -n " + i.Namespace + " logs deployment/kruise-controller-manager"})
	}
	i.addFinding(i.judgeDates(object, "data[tls.crt]", leaf))
	return of
}

func isExpired(err error) bool {
	var invalid x509.CertificateInvalidError
	return errors.As(err, &invalid) && invalid.Reason == x509.Expired
}

// webhookHost is the host name that webhooks are called by if the manager runs outside the cluster.
func (i *inspector) webhookHost() string {
	return findManagerEnv(&i.manager, "WEBHOOK_HOST")
}

// judgeDates reports whether a certificate is valid now, and for how long.
func (i *inspector) judgeDates(object, field string, c *x509.Certificate) Finding {
	left := c.NotAfter.Sub(i.now())
	f := Finding{Fine, "certificates", object, field, "it is valid until " + c.NotAfter.UTC().Format(time.RFC3339), ""}
	renew := "kubectl -n " + i.Namespace + " rollout restart deployment/kruise-controller-manager, which looks at it at once; with EnableExternalCerts=true, look at the tool that makes it"
	switch {
	case c.NotBefore.After(i.now()):
		f.Status, f.Message, f.Fix = Blocks, "it is valid from "+c.NotBefore.UTC().Format(time.RFC3339)+" only", "set the clocks"
	case left <= 0:
		f.Status, f.Message, f.Fix = Blocks, "it ended at "+c.NotAfter.UTC().Format(time.RFC3339), renew
	case left < soon:
		f.Status, f.Message, f.Fix = Warns, fmt.Sprintf("it ends in %d days", int(left.Hours()/24)), renew
	}
	return f
}

// judgeBundle reports whether the API server will trust the manager by a caBundle. An empty one beside a URL may be intended: the API server then
// trusts the CAs of its system.
func (i *inspector) judgeBundle(object, field string, bundle []byte, byURL bool, of serving) Finding {
	f := Finding{Blocks, "certificates", object, field, "", "kubectl -n " + i.Namespace + " logs deployment/kruise-controller-manager says why the manager did not write it; with EnableExternalCerts=true, look at externalCerts.annotations and the tool that injects it"}
	authority, err := firstCertificate(bundle)
	switch {
	case err != nil && byURL && len(bundle) == 0:
		f.Status, f.Message = Warns, "it is empty, so that the API server trusts the certificate of the URL only if its system does"
		return f
	case err != nil:
		f.Message = "the API server trusts no certificate of the manager: " + err.Error()
		return f
	}
	if of.chain != nil {
		if _, err := certs.VerifyChain(of.chain, bundle, of.name); err != nil && !isExpired(err) {
			f.Message = "it does not fit the certificate of Secret " + i.Namespace + "/" + certificateSecret + ": " + err.Error()
			return f
		}
	}
	return i.judgeDates(object, field, authority)
}

// firstCertificate reads PEM.
func firstCertificate(text []byte) (*x509.Certificate, error) {
	if len(text) == 0 {
		return nil, errors.New("it is empty")
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errors.New("there is no certificate in it")
}
