// SPDX-License-Identifier: Apache-2.0

// Package credentials makes what a cluster proves identities with: a
// certificate authority, a key for service account tokens, and users with
// static tokens.
package credentials

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Names of the files that WriteCertificates makes.
const (
	AuthorityFile    = "ca.crt"
	AuthorityKeyFile = "ca.key"
	ServerFile       = "apiserver.crt"
	ServerKeyFile    = "apiserver.key"
	AccountsFile     = "accounts.pub"
	AccountsKeyFile  = "accounts.key"
	// The API server passes on requests for aggregated APIs with a certificate of a CA that signs
	// nothing else: the user that a client with such a certificate names is trusted.
	FrontProxyAuthorityFile = "front-proxy-ca.crt"
	FrontProxyFile          = "front-proxy-client.crt"
	FrontProxyKeyFile       = "front-proxy-client.key"
)

// lifetime of the certificates: a cluster for tests is not kept that long.
const lifetime = 365 * 24 * time.Hour

// WriteCertificates fills dir with an authority, a certificate of the API
// server for the given addresses, and the key of service accounts.
func WriteCertificates(dir string, now time.Time, addresses ...string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the certificate directory: %w", err)
	}
	authorityKey, err := writeKey(filepath.Join(dir, AuthorityKeyFile))
	if err != nil {
		return err
	}
	authority := authorityTemplate(now, "regatta-test-cluster")
	if err := writeCertificate(filepath.Join(dir, AuthorityFile), authority, authority, &authorityKey.PublicKey, authorityKey); err != nil {
		return err
	}
	if err := writeFrontProxy(dir, now); err != nil {
		return err
	}

	serverKey, err := writeKey(filepath.Join(dir, ServerKeyFile))
	if err != nil {
		return err
	}
	server := template(now, 2, "kube-apiserver")
	server.KeyUsage = x509.KeyUsageDigitalSignature
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	server.DNSNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	for _, address := range addresses {
		server.IPAddresses = append(server.IPAddresses, net.ParseIP(address))
	}
	if err := writeCertificate(filepath.Join(dir, ServerFile), server, authority, &serverKey.PublicKey, authorityKey); err != nil {
		return err
	}

	accountsKey, err := writeKey(filepath.Join(dir, AccountsKeyFile))
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&accountsKey.PublicKey)
	if err != nil {
		return fmt.Errorf("encoding the service account key: %w", err)
	}
	return writePEM(filepath.Join(dir, AccountsFile), "PUBLIC KEY", public)
}

// writeFrontProxy makes the certificate of the API server as a client of aggregated APIs. The key
// of its authority is not kept.
func writeFrontProxy(dir string, now time.Time) error {
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the key of the front proxy's authority: %w", err)
	}
	authority := authorityTemplate(now, "front-proxy-ca")
	if err := writeCertificate(filepath.Join(dir, FrontProxyAuthorityFile), authority, authority, &authorityKey.PublicKey, authorityKey); err != nil {
		return err
	}
	key, err := writeKey(filepath.Join(dir, FrontProxyKeyFile))
	if err != nil {
		return err
	}
	client := template(now, 2, frontProxy)
	client.KeyUsage, client.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return writeCertificate(filepath.Join(dir, FrontProxyFile), client, authority, &key.PublicKey, authorityKey)
}

// frontProxy is who the API server is to aggregated APIs.
const frontProxy = "front-proxy-client"

// FrontProxyFlags are those of the API server that have it serve aggregated APIs, with the
// certificates in dir, by their names.
func FrontProxyFlags(dir string) map[string]string {
	return map[string]string{
		"proxy-client-cert-file":             filepath.Join(dir, FrontProxyFile),
		"proxy-client-key-file":              filepath.Join(dir, FrontProxyKeyFile),
		"requestheader-client-ca-file":       filepath.Join(dir, FrontProxyAuthorityFile),
		"requestheader-allowed-names":        frontProxy,
		"requestheader-username-headers":     "X-Remote-User",
		"requestheader-group-headers":        "X-Remote-Group",
		"requestheader-extra-headers-prefix": "X-Remote-Extra-",
	}
}

func authorityTemplate(now time.Time, name string) *x509.Certificate {
	authority := template(now, 1, name)
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign
	return authority
}

func template(now time.Time, serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		// An hour back, for clocks that are set while the cluster runs.
		NotBefore: now.Add(-time.Hour),
		NotAfter:  now.Add(lifetime),
	}
}

func writeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key %s: %w", filepath.Base(path), err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the key %s: %w", filepath.Base(path), err)
	}
	return key, writePEM(path, "EC PRIVATE KEY", der)
}

func writeCertificate(path string, certificate, issuer *x509.Certificate, public *ecdsa.PublicKey, signer *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, certificate, issuer, public, signer)
	if err != nil {
		return fmt.Errorf("signing the certificate %s: %w", filepath.Base(path), err)
	}
	return writePEM(path, "CERTIFICATE", der)
}

func writePEM(path, kind string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", filepath.Base(path), err)
	}
	return nil
}
