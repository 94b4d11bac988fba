// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/record"
)

// fakeManager serves an answer over TLS, or a refusal.
type fakeManager struct {
	*httptest.Server
	decided time.Time
	code    int // of a refusal
	auth    atomic.Value
	peer    atomic.Value
	query   atomic.Value
	records []decision.Record
}

func newManager(t *testing.T, decided int64, code int) *fakeManager {
	t.Helper()
	m := &fakeManager{decided: time.Unix(decided, 0).UTC(), code: code}
	m.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		m.auth.Store(req.Header.Get("Authorization"))
		m.query.Store(req.URL.RequestURI())
		if len(req.TLS.PeerCertificates) > 0 {
			m.peer.Store(req.TLS.PeerCertificates[0].Subject.CommonName)
		}
		if m.code == 0 && req.URL.Path == explain.DecisionsPath {
			w.Header().Set(explain.OmittedHeader, fmt.Sprint(decided))
			_ = record.Write(w, m.records)
			return
		}
		switch m.code {
		case 0:
			_ = json.NewEncoder(w).Encode(explain.Reply{Answer: explain.Answer{Verdict: explain.Held, Decided: m.decided, Replica: fmt.Sprint("at ", decided)}})
		case http.StatusFound:
			http.Redirect(w, req, "/elsewhere", m.code)
		case http.StatusTeapot:
			http.Error(w, "<html>", m.code)
		case http.StatusGatewayTimeout:
			<-req.Context().Done()
		default:
			w.WriteHeader(m.code)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": "jane may not get it"})
		}
	}))
	m.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	m.Config.ErrorLog = quiet()
	m.StartTLS()
	t.Cleanup(m.Close)
	return m
}

// ca is the certificate of the manager, which signs itself.
func (m *fakeManager) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.Certificate().Raw})
}

// fakeCluster is as much of an API server as asking replicas takes: it lists
// pods, knows the CA, and forwards to the managers by the names of their pods.
type fakeCluster struct {
	*httptest.Server
	managers  map[string]*fakeManager
	webhook   *admissionv1.WebhookClientConfig
	noSockets bool // it is older than WebSockets
	forbidden bool // no user may forward
	sockets   atomic.Int32
	spdy      atomic.Int32
}

func newCluster(t *testing.T, managers map[string]*fakeManager) *fakeCluster {
	t.Helper()
	c := &fakeCluster{managers: managers}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/kruise-system/pods", c.pods)
	mux.HandleFunc("GET /apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"+webhooks, c.configuration)
	mux.HandleFunc("/api/v1/namespaces/kruise-system/pods/{name}/portforward", c.portforward)
	c.Server = httptest.NewUnstartedServer(mux)
	c.Config.ErrorLog = quiet()
	c.StartTLS()
	t.Cleanup(c.Close)
	return c
}

func (c *fakeCluster) config() *rest.Config {
	return &rest.Config{Host: c.URL, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw}),
	}}
}

func (c *fakeCluster) pods(w http.ResponseWriter, req *http.Request) {
	if req.URL.Query().Get("labelSelector") != label {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	for name := range c.managers {
		list.Items = append(list.Items, corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kruise-system", Name: name, UID: types.UID(name)},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "decisions", ContainerPort: 9999}}}}},
		})
	}
	write(w, http.StatusOK, list)
}

func (c *fakeCluster) configuration(w http.ResponseWriter, _ *http.Request) {
	if c.webhook == nil {
		write(w, http.StatusForbidden, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 403, Reason: metav1.StatusReasonForbidden})
		return
	}
	write(w, http.StatusOK, admissionv1.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		Webhooks: []admissionv1.ValidatingWebhook{{Name: "x", ClientConfig: *c.webhook}},
	})
}

func write(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func (c *fakeCluster) portforward(w http.ResponseWriter, req *http.Request) {
	const protocol = "portforward.k8s.io"
	streams := make(chan httpstream.Stream, 4)
	accept := func(s httpstream.Stream, _ <-chan struct{}) error {
		streams <- s
		return nil
	}
	socket := strings.EqualFold(req.Header.Get("Upgrade"), "websocket")
	switch {
	case c.forbidden:
		write(w, http.StatusForbidden, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden,
			Message: "jane cannot create resource pods/portforward",
		})
	case socket && c.noSockets:
		w.WriteHeader(http.StatusBadRequest)
	case socket:
		c.sockets.Add(1)
		ws, err := (&websocket.Upgrader{Subprotocols: []string{"SPDY/3.1+" + protocol}}).Upgrade(w, req, nil)
		if err != nil {
			return
		}
		if conn, err := spdy.NewServerConnection(portforward.NewTunnelingConnection("server", ws), accept); err == nil {
			c.forward(conn, streams, req.PathValue("name"))
		}
	default:
		c.spdy.Add(1)
		if _, err := httpstream.Handshake(req, w, []string{protocol}); err != nil {
			return
		}
		if conn := spdy.NewResponseUpgrader().UpgradeResponse(w, req, accept); conn != nil {
			c.forward(conn, streams, req.PathValue("name"))
		}
	}
}

// forward does what a kubelet does.
func (c *fakeCluster) forward(conn httpstream.Connection, streams <-chan httpstream.Stream, name string) {
	defer conn.Close()
	for {
		select {
		case <-conn.CloseChan():
			return
		case failure := <-streams:
			data := <-streams
			go func() {
				defer failure.Close()
				defer data.Close()
				target, err := net.Dial("tcp", c.managers[name].Listener.Addr().String())
				if err != nil || data.Headers().Get("port") != "9999" {
					fmt.Fprint(failure, "connection refused")
					return
				}
				go func() {
					_, _ = io.Copy(target, data)
					_ = target.Close()
				}()
				_, _ = io.Copy(data, target)
			}()
		}
	}
}
