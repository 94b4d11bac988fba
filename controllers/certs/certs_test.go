// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const service = "kruise-webhook-service.kruise-system.svc"

// pair is a CA and a certificate of it.
type pair struct{ ca, cert, key []byte }

func issue(t *testing.T, names ...string) pair {
	t.Helper()
	sign := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if parent == nil {
			parent, signer = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return cert, key
	}
	valid := func(serial int64) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		}
	}
	template := valid(1)
	template.IsCA, template.KeyUsage = true, x509.KeyUsageCertSign
	ca, caKey := sign(template, nil, nil)
	template = valid(2)
	template.DNSNames = names
	cert, key := sign(template, ca, caKey)
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		ca:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw}),
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}),
	}
}

func secret(p pair) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: "kruise-webhook-certs"},
		Data:       map[string][]byte{"ca.crt": p.ca, "tls.crt": p.cert, "tls.key": p.key},
	}
}

func mutating(ca []byte) client.Object {
	return &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: MutatingConfiguration},
		Webhooks:   []admissionv1.MutatingWebhook{{Name: "mcloneset.kb.io", ClientConfig: admissionv1.WebhookClientConfig{CABundle: ca}}},
	}
}

func validating(ca []byte) client.Object {
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ValidatingConfiguration},
		Webhooks:   []admissionv1.ValidatingWebhook{{Name: "vcloneset.kb.io", ClientConfig: admissionv1.WebhookClientConfig{CABundle: ca}}},
	}
}

func crd(ca []byte) client.Object {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clonesets.apps.kruise.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Conversion: &apiextensionsv1.CustomResourceConversion{
			Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: ca}},
		}},
	}
}

func newFiles(t *testing.T, external bool, objects ...client.Object) *files {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return &files{
		config: Config{
			Secret: types.NamespacedName{Namespace: "kruise-system", Name: "kruise-webhook-certs"}, Dir: filepath.Join(t.TempDir(), "certs"),
			Service: "kruise-webhook-service", CRDs: []string{"clonesets.apps.kruise.io"}, External: external,
		},
		reader: fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build(),
		state:  &Certificates{ready: make(chan struct{})},
	}
}

func TestSync(t *testing.T) {
	good, other, wrongName := issue(t, service, "localhost"), issue(t, service), issue(t, "example.com")
	half := secret(good)
	delete(half.Data, "tls.key")
	for name, tc := range map[string]struct {
		external bool
		objects  []client.Object
		want     []string
	}{
		"our own certificate":                  {objects: []client.Object{secret(good)}},
		"no secret":                            {want: []string{`reading secret kruise-system/kruise-webhook-certs: secrets "kruise-webhook-certs" not found`}},
		"a secret that is empty":               {objects: []client.Object{secret(pair{})}, want: []string{"it has no tls.crt yet"}},
		"a secret with a part":                 {objects: []client.Object{half}, want: []string{"it has no tls.key yet"}},
		"one of OpenKruise, with no CA":        {objects: []client.Object{secret(pair{cert: good.cert, key: good.key})}, want: []string{"of another installation: it is empty"}},
		"one of an installation before":        {objects: []client.Object{secret(pair{cert: good.cert, key: good.key, ca: other.ca})}, want: []string{"waiting for a new certificate in secret kruise-system/kruise-webhook-certs"}},
		"one for another name":                 {objects: []client.Object{secret(wrongName)}, want: []string{"valid for example.com, not " + service}},
		"no PEM in our secret":                 {objects: []client.Object{secret(pair{cert: []byte("x"), key: []byte("x")})}, want: []string{"there is none in it"}},
		"another's certificate that fits":      {external: true, objects: []client.Object{secret(good), mutating(good.ca), validating(good.ca), crd(good.ca)}},
		"one of several CAs fits":              {external: true, objects: []client.Object{secret(good), mutating(append(append([]byte{}, other.ca...), good.ca...))}},
		"objects that are not there":           {external: true, objects: []client.Object{secret(good)}},
		"no CA yet":                            {external: true, objects: []client.Object{secret(good), mutating(nil)}, want: []string{"MutatingWebhookConfiguration kruise-mutating-webhook-configuration: the caBundle of webhook mcloneset.kb.io does not fit the certificate of secret kruise-system/kruise-webhook-certs: it is empty"}},
		"a CA that is none":                    {external: true, objects: []client.Object{secret(good), mutating([]byte("nonsense"))}, want: []string{"there is no certificate in it"}},
		"another CA in all of them":            {external: true, objects: []client.Object{secret(good), mutating(other.ca), validating(other.ca), crd(other.ca)}, want: []string{"mcloneset.kb.io", "vcloneset.kb.io", "CustomResourceDefinition clonesets.apps.kruise.io: the caBundle does not fit"}},
		"a certificate of another name":        {external: true, objects: []client.Object{secret(wrongName), mutating(wrongName.ca)}, want: []string{"valid for example.com, not " + service}},
		"what is no certificate in the secret": {external: true, objects: []client.Object{secret(pair{cert: []byte("x"), key: []byte("x")})}, want: []string{"reading the certificate of secret kruise-system/kruise-webhook-certs: there is none in it"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFiles(t, tc.external, tc.objects...)
			err := f.syncFiles(t.Context())
			if len(tc.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(filepath.Join(f.config.Dir, "tls.crt"))
				if err != nil || string(got) != string(good.cert) {
					t.Errorf("tls.crt is %q, %v", got, err)
				}
				return
			}
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got  %v\nwant %s", err, want)
				}
			}
			if _, err := os.Stat(filepath.Join(f.config.Dir, "tls.crt")); err == nil {
				t.Error("there is a file")
			}
		})
	}
}

func TestFilesAreReplacedWhole(t *testing.T) {
	first, second := issue(t, service), issue(t, service)
	f := newFiles(t, false, secret(first))
	for _, p := range []pair{first, second, second} {
		if err := f.reader.(client.Client).Update(t.Context(), secret(p)); err != nil {
			t.Fatal(err)
		}
		if err := f.syncFiles(t.Context()); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(f.config.Dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
			if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s may be read by others: %v", e.Name(), info.Mode())
			}
		}
		if diff := cmp.Diff([]string{"ca.crt", "tls.crt", "tls.key"}, names); diff != "" {
			t.Error(diff)
		}
		if got, _ := os.ReadFile(filepath.Join(f.config.Dir, "tls.key")); string(got) != string(p.key) {
			t.Error("the key is another one")
		}
	}
}

func TestReadyWaitsForAnothersCertificate(t *testing.T) {
	good := issue(t, service)
	f := newFiles(t, true, mutating(good.ca))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = f.Start(ctx) }()
	for end := time.Now().Add(time.Minute); f.state.NotReadyError() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no error says what is missing")
		}
	}
	select {
	case <-f.state.Ready():
		t.Fatal("ready without a certificate")
	default:
	}
	if err := f.reader.(client.Client).Create(ctx, secret(good)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.state.Ready():
	case <-time.After(time.Minute):
		t.Errorf("not ready: %v", f.state.NotReadyError())
	}
	if err := f.state.NotReadyError(); err != nil {
		t.Error(err)
	}
	cancel()
	<-ended
}

func TestNames(t *testing.T) {
	c := newFiles(t, false).config
	for host, want := range map[string][]string{
		"":            {service, "localhost"},
		"localhost":   {"localhost", service},
		"example.com": {"example.com", service, "localhost"},
	} {
		c.Host = host
		if diff := cmp.Diff(want, c.dnsNames()); diff != "" {
			t.Errorf("%s: %s", host, diff)
		}
	}
}
