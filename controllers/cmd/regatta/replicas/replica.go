// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/transport"

	"github.com/regatta-sh/regatta/controllers/explain"
)

// largest is what an answer may take; a pod takes half a kilobyte.
const largest = 256 << 20

// replica is one manager and a way to it.
type replica struct {
	name  string
	url   *url.URL
	http  *http.Client
	close func()
}

func (a *Asker) endpoint(text string) (*replica, error) {
	u, err := parseEndpoint(text)
	if err != nil {
		return nil, err
	}
	checked := check(anything)
	if !a.flags.Insecure {
		checked = a.trust.endpoint(u.Hostname())
	}
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{}).DialContext}
	return a.replica(u.Host, u, t, checked)
}

func (a *Asker) pod(pod *corev1.Pod) (*replica, error) {
	way, err := newTunnel(a.client, a.config, pod)
	if err != nil {
		return nil, err
	}
	t := &http.Transport{DialContext: way.dial}
	r, err := a.replica(pod.Name, &url.URL{Scheme: "https", Host: pod.Name}, t, a.trust.tunnel())
	if err != nil {
		return nil, err
	}
	idle := r.close
	r.close = func() {
		idle()
		way.close()
	}
	return r, nil
}

// replica shows the manager the credentials that the API server is shown:
// tokens in whatever way they are come by, and client certificates.
func (a *Asker) replica(name string, u *url.URL, t *http.Transport, checked check) (*replica, error) {
	config, err := a.config.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("reading credentials: %w", err)
	}
	// What says how to know the API server does not say how to know a manager.
	config.TLS.CAData, config.TLS.CAFile, config.TLS.ServerName, config.TLS.Insecure, config.TLS.NextProtos = nil, "", "", false, nil
	config.Username, config.Password = "", ""
	if t.TLSClientConfig, err = transport.TLSConfigFor(config); err != nil {
		return nil, fmt.Errorf("reading the client certificate: %w", err)
	}
	if t.TLSClientConfig == nil { // there is none
		t.TLSClientConfig = &tls.Config{}
	}
	t.TLSClientConfig.MinVersion = tls.VersionTLS12
	t.TLSClientConfig.InsecureSkipVerify = true // checked verifies, at every connection
	t.TLSClientConfig.VerifyConnection = checked
	t.IdleConnTimeout = time.Minute
	round, err := transport.HTTPWrappersForConfig(config, t)
	if err != nil {
		return nil, fmt.Errorf("reading credentials: %w", err)
	}
	return &replica{name: name, url: u, close: t.CloseIdleConnections, http: &http.Client{
		Transport: round,
		// The credentials would go along.
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects, and no manager does") },
	}}, nil
}

func (r *replica) ask(ctx context.Context, q Question) (explain.Reply, error) {
	query := url.Values{}
	for key, value := range map[string]string{
		"group": q.Group, "kind": q.Kind, "resource": q.Resource, "namespace": q.Namespace, "name": q.Name, "request": q.Request, "user": q.User,
	} {
		if value != "" {
			query.Set(key, value)
		}
	}
	if q.Pods {
		query.Set("pods", "true")
	}
	if q.Nearest {
		query.Set(explain.NearestQuery, "true")
	}
	var reply explain.Reply
	err := r.get(ctx, explain.Path, query, func(res *http.Response) error {
		return json.NewDecoder(io.LimitReader(res.Body, largest)).Decode(&reply)
	})
	if err != nil {
		return explain.Reply{}, err
	}
	return reply, nil
}

// get asks for a path, and has read what is answered if it is an answer.
func (r *replica) get(ctx context.Context, path string, query url.Values, read func(*http.Response) error) error {
	u := *r.url
	u.Path, u.RawQuery = path, query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	res, err := r.http.Do(req)
	if err != nil {
		var in *url.Error
		if errors.As(err, &in) { // its URL has the name of the pod as the host, which does not help the user
			err = in.Err
		}
		return err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		if err := read(res); err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		return nil
	}
	var said struct {
		Error string `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, largest)).Decode(&said); err != nil {
		return fmt.Errorf("it answers %s, and is hardly a manager, or one that has no %s yet", res.Status, path)
	}
	switch res.StatusCode {
	case http.StatusNotFound:
		return errUndecided
	case http.StatusUnauthorized, http.StatusForbidden:
		return &RefusedError{Replica: r.name, Path: path, Code: res.StatusCode, Message: said.Error}
	}
	return fmt.Errorf("it answers %s: %s", res.Status, said.Error)
}
