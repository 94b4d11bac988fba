// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/engine/decision"
)

// round is a workload's with one pod.
type round struct{}

func (round) ExplainWorkload() explain.Answer { return explain.Answer{Message: "the workload"} }
func (round) CountBytes() int                 { return 0 }
func (round) ExplainPods() []explain.Answer   { return []explain.Answer{{Message: "the pod in short"}} }
func (round) ExplainPod(_, name string) (explain.Answer, bool) {
	return explain.Answer{Message: "the pod"}, name == "web-1"
}

// authority makes certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	c, key := a.issue("ca", &x509.Certificate{IsCA: true, KeyUsage: x509.KeyUsageCertSign})
	cert, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	a.cert, a.key = cert, key
	return a
}

func (a *authority) issue(name string, template *x509.Certificate) (tls.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber, template.Subject, template.BasicConstraintsValid = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}, true
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, key
}

func (a *authority) client(name string) *tls.Certificate {
	c, _ := a.issue(name, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return &c
}

// write writes a server's certificate as the manager finds it.
func (a *authority) write(dir string) {
	a.t.Helper()
	c, key := a.issue("server", &x509.Certificate{DNSNames: []string{"localhost"}})
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, "tls.key": {Type: "EC PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
}

// asked is an authorizer that lets jane get everything and notes the questions.
type asked struct{ list []authorizer.AttributesRecord }

func (a *asked) authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	r := attributes.(authorizer.AttributesRecord)
	r.User = &user.DefaultInfo{Name: r.User.GetName()} // the rest tells which certificate it was
	a.list = append(a.list, r)
	switch r.User.GetName() {
	case "jane":
		return authorizer.DecisionAllow, "", nil
	case "broken":
		return authorizer.DecisionNoOpinion, "", errors.New("dial tcp 10.96.0.1:443: secret address")
	}
	return authorizer.DecisionNoOpinion, "no binding", nil
}

func tokens(_ context.Context, token string) (*authenticator.Response, bool, error) {
	if name, ok := strings.CutPrefix(token, "token-of-"); ok {
		return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, true, nil
	}
	return nil, false, errors.New("invalid bearer token, dial tcp 10.96.0.1:443")
}

// start serves, and gives its address and what it asked.
func start(t *testing.T, clients, servers *authority, edits ...func(*Server)) (string, *asked) {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	roots := x509.NewCertPool()
	roots.AddCert(clients.cert)
	options := x509request.DefaultVerifyOptions()
	options.Roots = roots
	may := &asked{}
	store := explain.NewStore()
	store.PutRound(decision.Subject{Group: "apps.kruise.io", Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "1"}, round{})
	ready := make(chan struct{})
	s := &Server{
		Addr: addr, CertDir: dir, Ready: ready, Store: store, Replica: "replica-1", May: authorizer.AuthorizerFunc(may.authorize),
		Who: union.New(x509request.New(options, x509request.CommonNameUserConversion), bearertoken.New(authenticator.TokenFunc(tokens))),
	}
	for _, edit := range edits {
		edit(s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	if _, err := net.DialTimeout("tcp", addr, 100*time.Millisecond); err == nil {
		t.Error("it serves without a certificate")
	}
	servers.write(dir)
	close(ready)
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			break
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	return addr, may
}

func TestWhoAsksOverTLS(t *testing.T) {
	clients, servers, strangers := newAuthority(t), newAuthority(t), newAuthority(t)
	addr, may := start(t, clients, servers)
	jane := clients.client("jane")
	pod := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "jane"}, Verb: "get", Namespace: "shop", APIVersion: "*", Resource: "pods", Name: "web-1", ResourceRequest: true}
	set := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "jane"}, Verb: "get", Namespace: "shop", APIGroup: "apps.kruise.io", APIVersion: "*", Resource: "clonesets", Name: "web", ResourceRequest: true}
	asking := func(name string, about authorizer.AttributesRecord) authorizer.AttributesRecord {
		about.User, about.APIGroup, about.APIVersion, about.Resource = &user.DefaultInfo{Name: name}, explain.Group, explain.Version, explain.Explanations
		return about
	}
	const aPod, aSet = "kind=Pod&namespace=shop&name=web-1", "kind=CloneSet&namespace=shop&name=web"
	for name, tc := range map[string]struct {
		query, token, method, path string
		cert                       *tls.Certificate
		code                       int
		want                       []string
		asked                      []authorizer.AttributesRecord
	}{
		"a pod, by a certificate":              {query: aPod, cert: jane, code: 200, want: []string{`"the pod"`, `"replica":"replica-1"`}, asked: []authorizer.AttributesRecord{asking("jane", pod), pod}},
		"a pod, by a token":                    {query: aPod, token: "token-of-jane", code: 200, want: []string{`"the pod"`}, asked: []authorizer.AttributesRecord{asking("jane", pod), pod}},
		"a workload":                           {query: aSet, cert: jane, code: 200, want: []string{`"the workload"`}, asked: []authorizer.AttributesRecord{asking("jane", set), set}},
		"a workload with its pods":             {query: aSet + "&pods=true", cert: jane, code: 200, want: []string{`"the workload"`, `"the pod in short"`}, asked: []authorizer.AttributesRecord{asking("jane", set), set}},
		"a kind in lower case":                 {query: "kind=pod&namespace=shop&name=web-1", cert: jane, code: 400, want: []string{"want kind"}},
		"an anonymous caller":                  {query: aPod, code: 401, want: []string{"does not know the caller"}},
		"a certificate of another CA":          {query: aPod, cert: strangers.client("jane"), code: 401, want: []string{"does not know the caller"}},
		"a certificate of the server's own CA": {query: aPod, cert: servers.client("jane"), code: 401, want: []string{"does not know the caller"}},
		"a wrong token":                        {query: aPod, token: "guess", code: 401, want: []string{"does not know the caller"}},
		"who may not":                          {query: aPod, token: "token-of-joe", code: 403, want: []string{"joe may not get explanations.decisions.kruise.io shop/web-1: no binding"}, asked: []authorizer.AttributesRecord{asking("joe", pod)}},
		"an API server that does not answer":   {query: aSet, token: "token-of-broken", code: 403, want: []string{"broken may not get explanations.decisions.kruise.io shop/web"}, asked: []authorizer.AttributesRecord{asking("broken", set)}},
		"another path":                         {path: "/debug/pprof/", cert: jane, code: 404},
		"a write":                              {query: aPod, method: http.MethodPost, cert: jane, code: 405},
	} {
		t.Run(name, func(t *testing.T) {
			may.list = nil
			code, body, kind := get(t, servers, tc.cert, tc.method, "https://"+addr+or(tc.path, urlOf(tc.query)), tc.token)
			if code != tc.code {
				t.Errorf("got %d %s, want %d", code, body, tc.code)
			}
			for _, want := range tc.want {
				if !strings.Contains(body, want) {
					t.Errorf("got %s\nwant %s", body, want)
				}
			}
			for _, leak := range []string{"10.96.0.1", "the pod", "the workload"} {
				if tc.code != 200 && strings.Contains(body, leak) {
					t.Errorf("%s tells %s", body, leak)
				}
			}
			if tc.want != nil && (kind != "application/json" || !json.Valid([]byte(body))) {
				t.Errorf("%s is of type %s", body, kind)
			}
			switch {
			case tc.asked != nil:
				if diff := cmp.Diff(tc.asked, may.list); diff != "" {
					t.Errorf("the API server was asked for something else: %s", diff)
				}
			case tc.code == 401:
				if len(may.list) != 0 {
					t.Errorf("asked for %v", may.list)
				}
			}
		})
	}
}

func or(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func get(t *testing.T, servers *authority, cert *tls.Certificate, method, url, token string) (code int, body, kind string) {
	t.Helper()
	resp := open(t, servers, cert, method, url, token)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw), resp.Header.Get("Content-Type")
}

// open asks for a URL. The headers are pairs.
func open(t *testing.T, servers *authority, cert *tls.Certificate, method, url, token string, headers ...string) *http.Response {
	t.Helper()
	resp, err := try(t, servers, cert, method, url, token, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func try(t *testing.T, servers *authority, cert *tls.Certificate, method, url, token string, headers ...string) (*http.Response, error) {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(servers.cert)
	config := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	if cert != nil {
		// Not Certificates: a client does not send those of a CA that the server does not name.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return cert, nil }
	}
	req, err := http.NewRequestWithContext(t.Context(), or(method, http.MethodGet), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	return (&http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}).Do(req)
}

func TestOldTLSIsRefused(t *testing.T) {
	a := newAuthority(t)
	addr, _ := start(t, a, a)
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10})
	if err == nil {
		c.Close()
		t.Error("TLS 1.1 is taken")
	}
}

func TestSlowCallersAreLetGo(t *testing.T) {
	s := (&Server{}).newHTTPServer(nil)
	for what, d := range map[string]time.Duration{"headers": s.ReadHeaderTimeout, "request": s.ReadTimeout, "answer": s.WriteTimeout, "pause": s.IdleTimeout} {
		if d <= 0 || d > 2*time.Minute {
			t.Errorf("the %s may take %s", what, d)
		}
	}
	if s.MaxHeaderBytes <= 0 || s.MaxHeaderBytes > 1<<16 {
		t.Errorf("headers may have %d bytes", s.MaxHeaderBytes)
	}
}
