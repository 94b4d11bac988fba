// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/regatta-sh/regatta/engine/record/sink"
)

// authority is a CA, with a certificate of it for this machine.
type authority struct {
	pem    []byte
	server tls.Certificate
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	made := func(of, by *x509.Certificate, key *ecdsa.PrivateKey, signer *ecdsa.PrivateKey) []byte {
		der, err := x509.CreateCertificate(rand.Reader, of, by, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	newKey := func() *ecdsa.PrivateKey {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	caKey, key := newKey(), newKey()
	from, to := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "A CA of our own"}, NotBefore: from, NotAfter: to, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caDER := made(ca, ca, caKey, caKey)
	der := made(&x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: from, NotAfter: to, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, ca, key, caKey)
	return authority{
		pem:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		server: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAPrivateCAIsTrustedAndMayChange(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	var shown atomic.Pointer[tls.Certificate]
	shown.Store(&first.server)
	log := newLogServer(t, nil)
	server := httptest.NewUnstartedServer(log.Config.Handler)
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*shown.Load()}}, nil
	}}
	server.StartTLS()
	defer server.Close()

	file := filepath.Join(t.TempDir(), "ca.crt")
	write(t, file, first.pem)
	cas, err := sink.OpenCAs(file)
	if err != nil {
		t.Fatal(err)
	}
	var wrong []string
	out, err := sink.NewHTTP(server.URL, sink.WithCAs(cas), sink.WithDelay(time.Millisecond, time.Millisecond), sink.WithRetries(func(err error) {
		wrong = append(wrong, err.Error())
		write(t, file, second.pem) // an administrator corrects the file
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	post := func(what, trouble string) {
		t.Helper()
		wrong = nil
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := out.Write(ctx, [][]byte{[]byte(`{"decision_id":"1"}`)}); err != nil {
			t.Fatalf("%s: %v, after %d times", what, err, len(wrong))
		}
		if got := strings.Join(wrong, "; "); (trouble == "") != (got == "") || !strings.Contains(got, trouble) {
			t.Errorf("%s: it was tried again for %q, want %q", what, got, trouble)
		}
	}
	post("the CA of the server", "")
	post("the same, with a connection that is there", "")
	shown.Store(&second.server)
	write(t, file, second.pem)
	post("another CA that the server changed to", "")
	write(t, file, first.pem)
	post("a CA that is trusted no more, though its connection is there", "certificate signed by unknown authority")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	post("a file that is gone for a moment", "no such file")
	write(t, file, []byte("half of"))
	post("a file that is being written", "has none in PEM")
	write(t, file, append(append([]byte{}, first.pem...), second.pem...))
	post("both CAs, while one follows the other", "")
	if got := log.ids(); got != strings.TrimSpace(strings.Repeat("1 ", 7)) {
		t.Errorf("the server has %s", got)
	}
}

func TestFilesWithoutACA(t *testing.T) {
	dir := t.TempDir()
	key := filepath.Join(dir, "key.pem")
	write(t, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("x")}))
	for file, want := range map[string]string{
		filepath.Join(dir, "none"): "no such file",
		dir:                        "is a directory",
		key:                        key + " has none in PEM",
	} {
		if _, err := sink.OpenCAs(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
}
