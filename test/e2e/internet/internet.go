// SPDX-License-Identifier: Apache-2.0

// Package internet serves in place of hosts of the internet, so that commands with their names work as they are on a machine that reaches none.
package internet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Internet is a proxy that leads connections to some hosts to handlers on this machine, by TLS with a certificate of its own.
type Internet struct {
	hosts        map[string]http.Handler
	proxy, front *httptest.Server
	certificate  string
}

// Serve answers requests to hosts by handlers. Its certificate is written to a folder.
func Serve(hosts map[string]http.Handler, folder string) (*Internet, error) {
	names := slices.Sorted(maps.Keys(hosts))
	certificate, err := newCertificate(names)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %v: %w", names, err)
	}
	i := &Internet{hosts: hosts, certificate: filepath.Join(folder, "internet.pem")}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	if err := os.WriteFile(i.certificate, text, 0o600); err != nil {
		return nil, fmt.Errorf("writing the certificate for %v: %w", names, err)
	}
	i.front = httptest.NewUnstartedServer(http.HandlerFunc(i.answer))
	i.front.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	i.front.Config.ErrorLog = log.New(io.Discard, "", 0)
	i.front.StartTLS()
	i.proxy = httptest.NewServer(http.HandlerFunc(i.connect))
	return i, nil
}

// Close ends it.
func (i *Internet) Close() {
	i.proxy.CloseClientConnections()
	i.proxy.Close()
	i.front.CloseClientConnections()
	i.front.Close()
}

// Env has programs use it for all hosts but one, which is none of the internet's.
func (i *Internet) Env(but string) []string {
	return []string{"HTTPS_PROXY=" + i.proxy.URL, "NO_PROXY=" + but, "SSL_CERT_FILE=" + i.certificate}
}

// newCertificate makes one that is its own authority.
func newCertificate(hosts []string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "stand-in"}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
}

// answer has the handler of the host answer.
func (i *Internet) answer(response http.ResponseWriter, request *http.Request) {
	host, _, err := net.SplitHostPort(request.Host)
	if err != nil {
		host = request.Host // no port is that of the scheme
	}
	handler, ok := i.hosts[host]
	if !ok {
		http.Error(response, "nothing stands in for "+host, http.StatusMisdirectedRequest)
		return
	}
	handler.ServeHTTP(response, request)
}

// connect leads a connection to one of the hosts to the server of all of them.
func (i *Internet) connect(response http.ResponseWriter, request *http.Request) {
	host, port, err := net.SplitHostPort(request.Host)
	if _, ok := i.hosts[host]; err != nil || !ok || port != "443" || request.Method != http.MethodConnect {
		http.Error(response, "nothing stands in for "+request.Host, http.StatusBadGateway)
		return
	}
	to, err := (&net.Dialer{}).DialContext(request.Context(), "tcp", i.front.Listener.Addr().String())
	if err != nil {
		http.Error(response, err.Error(), http.StatusBadGateway)
		return
	}
	defer to.Close()
	from, buffered, err := http.NewResponseController(response).Hijack()
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	defer from.Close()
	if _, err := io.WriteString(from, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	for _, one := range []struct {
		to   io.Writer
		from io.Reader
	}{{to, buffered}, {from, to}} {
		go func() {
			_, _ = io.Copy(one.to, one.from) // it ends when either side does
			done <- struct{}{}
		}()
	}
	<-done
}
