// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// verifyTrusted finds out whether the API server will trust a certificate that
// another tool made: each object that carries CAs must carry one that has signed the certificate. An
// object that does not exist calls no webhook, so it is skipped.
func (c Config) verifyTrusted(ctx context.Context, live client.Reader, chain []byte) error {
	leaf, between, err := parseChain(chain)
	if err != nil {
		return fmt.Errorf("reading the certificate of secret %s: %w", c.Secret, err)
	}
	objects := []carrier{
		{schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"}, MutatingConfiguration},
		{schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}, ValidatingConfiguration},
	}
	for _, name := range c.CRDs {
		objects = append(objects, carrier{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, name})
	}
	var wrong []error
	for _, o := range objects {
		found, err := o.caBundles(ctx, live)
		if err != nil {
			return err
		}
		for _, ca := range found {
			if err := verifyChain(leaf, between, ca.pem, c.dnsNames()[0]); err != nil {
				wrong = append(wrong, fmt.Errorf("%s %s: the caBundle%s does not fit the certificate of secret %s: %w", o.kind.Kind, o.name, ca.of, c.Secret, err))
				break // the same tool writes the other CAs of the object
			}
		}
	}
	return errors.Join(wrong...)
}

// verifyOwnCertificate checks whether a certificate was signed by the CA beside it, and is for the name
// that the webhooks are called by. Any other certificate is of an earlier installation, such as one of
// OpenKruise, and is about to be replaced. If it was served until then, the API server would not trust
// it.
func (c Config) verifyOwnCertificate(secret *corev1.Secret) error {
	leaf, between, err := parseChain(secret.Data[corev1.TLSCertKey])
	if err == nil {
		err = verifyChain(leaf, between, secret.Data["ca.crt"], c.dnsNames()[0])
	}
	if err != nil {
		return fmt.Errorf("waiting for a new certificate in secret %s, since the one there is of another installation: %w", c.Secret, err)
	}
	return nil
}

// carrier is an object that says which CA the API server trusts.
type carrier struct {
	kind schema.GroupVersionKind
	name string
}

type authority struct {
	of  string
	pem []byte
}

// caBundles are the CAs of an object, one for each webhook.
func (o carrier) caBundles(ctx context.Context, live client.Reader) ([]authority, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(o.kind)
	err := live.Get(ctx, types.NamespacedName{Name: o.name}, obj)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", o.kind.Kind, o.name, err)
	}
	if config, ok, _ := unstructured.NestedMap(obj.Object, "spec", "conversion", "webhook", "clientConfig"); ok {
		return []authority{{"", decodeCABundle(config)}}, nil
	}
	hooks, _, _ := unstructured.NestedSlice(obj.Object, "webhooks")
	var out []authority
	for _, h := range hooks {
		if hook, ok := h.(map[string]any); ok {
			config, _, _ := unstructured.NestedMap(hook, "clientConfig")
			out = append(out, authority{fmt.Sprintf(" of webhook %v", hook["name"]), decodeCABundle(config)})
		}
	}
	return out, nil
}

// decodeCABundle returns an empty bundle, which fits no certificate, for a value that is no caBundle.
func decodeCABundle(config map[string]any) []byte {
	text, _ := config["caBundle"].(string)
	raw, _ := base64.StdEncoding.DecodeString(text)
	return raw
}

// VerifyChain reads the certificate that a chain in PEM begins with, and checks whether a CA signed it and whether it is for a name. The
// certificate is nil if it cannot be read.
func VerifyChain(chain, ca []byte, name string) (*x509.Certificate, error) {
	leaf, between, err := parseChain(chain)
	if err != nil {
		return nil, err
	}
	return leaf, verifyChain(leaf, between, ca, name)
}

func parseChain(chain []byte) (leaf *x509.Certificate, between *x509.CertPool, err error) {
	between = x509.NewCertPool()
	for block, rest := pem.Decode(chain); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, nil, err
		}
		if leaf == nil {
			leaf = cert
		} else {
			between.AddCert(cert)
		}
	}
	if leaf == nil {
		return nil, nil, errors.New("there is none in it")
	}
	return leaf, between, nil
}

func verifyChain(leaf *x509.Certificate, between *x509.CertPool, ca []byte, name string) error {
	if len(ca) == 0 {
		return errors.New("it is empty")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return errors.New("there is no certificate in it")
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: name})
	return err
}
