// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// HTTP posts lines as OPA posts its decision logs: a JSON array, compressed with
// gzip (https://www.openpolicyagent.org/docs/management-decision-logs).
type HTTP struct {
	url      string
	client   *http.Client
	headers  map[string]string
	token    string // the name of a file
	min, max time.Duration
	onRetry  func(error)
}

// HTTPOption changes an HTTP output.
type HTTPOption func(*HTTP)

// WithHeaders adds headers to every request.
func WithHeaders(headers map[string]string) HTTPOption {
	return func(h *HTTP) { h.headers = maps.Clone(headers) }
}

// WithTokenFile sends the bearer token in a file, which is read for every request, since tokens are
// renewed.
func WithTokenFile(path string) HTTPOption { return func(h *HTTP) { h.token = path } }

// WithDelay sets how long to wait before a failed request is retried: the least after the first time,
// then longer, up to the most. A part of the delay is random, so that replicas do not retry at the
// same time. If unset it is 1 s to 60 s.
func WithDelay(least, most time.Duration) HTTPOption {
	return func(h *HTTP) { h.min, h.max = least, most }
}

// WithClient sets the client; the default one has a timeout of 30 s. A later WithCAs replaces its
// transport.
func WithClient(c *http.Client) HTTPOption {
	return func(h *HTTP) {
		copied := *c
		h.client = &copied
	}
}

// WithRetries makes the output call f with the error before each retry.
func WithRetries(f func(error)) HTTPOption { return func(h *HTTP) { h.onRetry = f } }

// NewHTTP makes an output that posts to a URL.
func NewHTTP(target string, opts ...HTTPOption) (*HTTP, error) {
	u, err := url.Parse(target)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("the URL of decision logs is %q, want http:// or https:// and a host", target)
	}
	if u.User != nil {
		return nil, errors.New("the URL of decision logs has a user in it; put a token into a file, or a header")
	}
	h := &HTTP{
		url: target, min: time.Second, max: time.Minute, onRetry: func(error) {},
		client: &http.Client{Timeout: 30 * time.Second, Transport: defaultTransport()},
	}
	for _, o := range opts {
		o(h)
	}
	h.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a redirect would send the token along
	return h, nil
}

// statusError is a response without success.
type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("the server answers %d %s %s", e.code, http.StatusText(e.code), e.text))
}

// isFinal reports whether a retry of the same request cannot succeed. A token may be renewed, and a
// path may be created, so 401 to 404 are not final.
func (e *statusError) isFinal() bool {
	switch e.code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.code < 500
}

// Write implements Output. A failed request is retried until ctx is done, unless the server will never
// accept it.
func (h *HTTP) Write(ctx context.Context, lines [][]byte) error {
	body, err := compressLines(lines)
	if err != nil {
		return err
	}
	delays := &backoff.ExponentialBackOff{InitialInterval: h.min, MaxInterval: h.max, Multiplier: 2, RandomizationFactor: 0.5}
	delays.Reset()
	for {
		err := h.postBody(ctx, body)
		var status *statusError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &status) && status.code == http.StatusRequestEntityTooLarge && len(lines) > 1:
			half := len(lines) / 2
			return errors.Join(h.Write(ctx, lines[:half]), h.Write(ctx, lines[half:]))
		case errors.As(err, &status) && status.isFinal():
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		h.onRetry(err)
		timer := time.NewTimer(delays.NextBackOff())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

func (h *HTTP) postBody(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("making the request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	for name, value := range h.headers {
		req.Header.Set(name, value)
	}
	if h.token != "" {
		token, err := os.ReadFile(h.token)
		if err != nil {
			return fmt.Errorf("reading the token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	res, err := h.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(res.Body, 512)) // only the code matters
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return &statusError{code: res.StatusCode, text: strings.TrimSpace(string(said))}
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 1<<16)) // so that the connection can be reused
	return nil
}

// compressLines returns lines as a compressed JSON array.
func compressLines(lines [][]byte) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	_, _ = zip.Write([]byte("["))
	for i, line := range lines {
		if i > 0 {
			_, _ = zip.Write([]byte(","))
		}
		_, _ = zip.Write(line)
	}
	_, _ = zip.Write([]byte("]"))
	if err := zip.Close(); err != nil { // it returns any earlier error
		return nil, fmt.Errorf("compressing records: %w", err)
	}
	return out.Bytes(), nil
}

// Close implements Output.
func (h *HTTP) Close() error {
	h.client.CloseIdleConnections()
	return nil
}
