// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// fetch pulls an image with its layer, once.
func fetch(t *testing.T, url, image string) error {
	t.Helper()
	tag, err := name.NewTag(strings.Replace(image, Host, strings.TrimPrefix(url, "http://"), 1), name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	got, err := remote.Image(tag, remote.WithContext(ctx), remote.WithRetryStatusCodes(), remote.WithRetryBackoff(remote.Backoff{Steps: 1}))
	if err != nil {
		return err
	}
	layers, err := got.Layers()
	if err != nil {
		return err
	}
	content, err := layers[0].Compressed()
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(io.Discard, content)
	return err
}

func TestImagesAreHardToGet(t *testing.T) {
	for fault, want := range map[string]string{
		"401": "401", "429": "429", "500": "500", Hang: "deadline exceeded", Truncate: "EOF",
	} {
		t.Run(fault, func(t *testing.T) {
			h, err := newHub(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			h.now = func() time.Time { return now }
			server := httptest.NewServer(h)
			t.Cleanup(server.Close)
			for _, awhile := range []bool{true, false} {
				if err := fetch(t, server.URL, Image(fault, awhile)); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v, want %s", Image(fault, awhile), err, want)
				}
			}
			h.mu.Lock() // requests of before may still be under way
			now = now.Add(Awhile)
			h.mu.Unlock()
			if err := fetch(t, server.URL, Image(fault, true)); err != nil {
				t.Errorf("after a while: got %v", err)
			}
			if err := fetch(t, server.URL, Image(fault, false)); err == nil {
				t.Error("an image that is hard to get for good was got")
			}
		})
	}
}
