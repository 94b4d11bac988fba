// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

func (f *Fetcher) fetchHTTP(ctx context.Context, from HTTP, before *Fetched) (*Fetched, error) {
	address, err := from.parseURL()
	if err != nil {
		return nil, err
	}
	what := redactedURL(address)
	connect, err := newTransport(f.hosts, from.CABundle)
	if err != nil {
		return nil, err
	}
	defer connect.CloseIdleConnections()
	through := &gate{next: connect, hosts: f.hosts, plain: address.Scheme == "http"}
	if from.Secret != nil {
		if through.authorize, err = f.newAuthorizer(ctx, *from.Secret, address); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, SourceError{"http.url", fmt.Errorf("it cannot be asked for")}
	}
	req.Header.Set("User-Agent", "regatta")
	known := before != nil && before.ETag != "" && before.origin == from.URL
	if known {
		req.Header.Set("If-None-Match", before.ETag)
	}
	resp, err := (&http.Client{Transport: through}).Do(req)
	if err != nil {
		return nil, readableError(ctx, what, err)
	}
	defer resp.Body.Close()
	if known && resp.StatusCode == http.StatusNotModified {
		return before, nil
	}
	if resp.StatusCode != http.StatusOK {
		return nil, responseError(what, resp.StatusCode)
	}
	archive, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, readableError(ctx, what, err)
	}
	got, err := newFetched(what, archive)
	if err != nil {
		return nil, err
	}
	got.Reference, got.ETag, got.origin = what+"@"+got.Digest, resp.Header.Get("ETag"), from.URL
	return got, nil
}
