// SPDX-License-Identifier: Apache-2.0

// Package httpget sends HTTP requests to containers, for hooks and probes.
package httpget

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// MostBody is how many bytes of a response body are read.
const MostBody = 10 << 10

// MostHeaders is how many bytes the headers of a response may have.
const MostHeaders = 64 << 10

// Answer is the response of a container.
type Answer struct {
	// Code is the status code, and Status the text with it.
	Code   int
	Status string
	// Body is the beginning of the body.
	Body []byte
	// URL is the URL of the request.
	URL string
}

// RunAction sends the request of an action to an address. It does not verify certificates, like the
// kubelet, since certificates of pods are rarely of a known CA. It does not follow a redirect to
// another host, and returns it as the answer.
func RunAction(ctx context.Context, action *corev1.HTTPGetAction, address, agent string) (Answer, error) {
	path, query, _ := strings.Cut(action.Path, "?")
	to := url.URL{Scheme: strings.ToLower(string(action.Scheme)), Host: address, Path: path, RawQuery: query}
	if to.Scheme == "" {
		to.Scheme = "http"
	}
	out := Answer{URL: to.String()}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, out.URL, nil)
	if err != nil {
		return out, fmt.Errorf("asking %s: %w", out.URL, err)
	}
	if agent != "" {
		request.Header.Set("User-Agent", agent)
	}
	own := map[string]bool{}
	for _, h := range action.HTTPHeaders {
		if key := http.CanonicalHeaderKey(h.Name); !own[key] {
			own[key] = true
			request.Header.Del(key)
		}
		request.Header.Add(h.Name, h.Value)
		if http.CanonicalHeaderKey(h.Name) == "Host" {
			request.Host = h.Value
		}
	}
	client := &http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true, MaxResponseHeaderBytes: MostHeaders}, //nolint:gosec // see above
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			if next.URL.Hostname() != to.Hostname() || len(via) >= 10 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	response, err := client.Do(request)
	if err != nil {
		return out, fmt.Errorf("asking %s: %w", out.URL, err)
	}
	out.Code, out.Status = response.StatusCode, response.Status
	out.Body, err = io.ReadAll(io.LimitReader(response.Body, MostBody))
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return out, fmt.Errorf("reading the answer of %s: %w", out.URL, err)
	}
	return out, nil
}
