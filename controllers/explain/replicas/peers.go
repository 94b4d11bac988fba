// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch
// +kubebuilder:rbac:urls=/v1/replica/why;/v1/replica/decisions,verbs=get

// ManagerLabels are the labels of the manager's pods, in OpenKruise's chart and in Regatta's.
func ManagerLabels() map[string]string {
	return map[string]string{"control-plane": "controller-manager"}
}

// Peers are the other managers of this manager's Deployment.
type Peers struct {
	// Reader reads pods.
	Reader client.Reader
	// Namespace and Pod are the namespace and the pod of this manager.
	Namespace, Pod string
	// Port is the port at which each manager serves its API.
	Port int

	http    *http.Client
	reading chan struct{}
}

// Bounds of the answers of other managers.
const (
	// MostPeerAnswer is how many bytes an answer may have; a pod takes half a kilobyte.
	MostPeerAnswer = 8 << 20
	// PeerAnswersAtOnce is how many answers are read at once.
	PeerAnswersAtOnce = 1
)

// NewPeers makes Peers that send the credentials of this manager, and accept a certificate for the
// name that the CA in certDir signed.
func NewPeers(config *rest.Config, reader client.Reader, namespace, pod string, port int, certDir, name string) (*Peers, error) {
	http, err := HTTPClient(config, &http.Transport{DialContext: (&net.Dialer{}).DialContext, MaxIdleConnsPerHost: 2}, ownCertificate(certDir, name))
	if err != nil {
		return nil, err
	}
	return &Peers{Reader: reader, Namespace: namespace, Pod: pod, Port: port, http: http, reading: make(chan struct{}, PeerAnswersAtOnce)}, nil
}

// ownCertificate accepts certificates of the CA that signed this manager's certificate, which all
// managers share. If another tool made the certificate and stored no CA beside it, only this manager's
// own certificate is accepted.
func ownCertificate(dir, name string) Check {
	return func(s tls.ConnectionState) error {
		roots := x509.NewCertPool()
		for _, file := range []string{"ca.crt", "tls.crt"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("reading the certificate of this manager: %w", err)
			}
			if roots.AppendCertsFromPEM(text) {
				break
			}
		}
		return VerifyCertificate(s, name, roots)
	}
}

// ListPeers lists the other managers that run now.
func (p *Peers) ListPeers(ctx context.Context) ([]Replica, error) {
	pods := &corev1.PodList{}
	if err := p.Reader.List(ctx, pods, client.InNamespace(p.Namespace), client.MatchingLabels(ManagerLabels())); err != nil {
		return nil, fmt.Errorf("finding the other managers: %w", err)
	}
	var out []Replica
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Name == p.Pod || pod.Status.Phase != corev1.PodRunning || pod.Status.PodIP == "" {
			continue
		}
		c, err := NewClient(&url.URL{Scheme: "https", Host: net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(p.Port))}, p.http)
		if err != nil {
			return nil, err
		}
		out = append(out, Replica{Name: pod.Name, Client: c, Most: MostPeerAnswer, Reading: p.reading})
	}
	return out, nil
}
