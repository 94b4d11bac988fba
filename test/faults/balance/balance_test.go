// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestConnectionsGoToWhoListens(t *testing.T) {
	backend := func(name string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, name) }))
		t.Cleanup(s.Close)
		return s
	}
	a, c := backend("a"), backend("c")
	b, err := Listen(t.Context(), strings.TrimPrefix(a.URL, "http://"), strings.TrimPrefix(c.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	get := func() string {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d", b.Port()))
		if err != nil {
			return "error"
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if got := get() + get() + get() + get(); strings.Count(got, "a") != 2 || strings.Count(got, "c") != 2 {
		t.Errorf("with both: %s", got)
	}
	a.Close()
	if got := get() + get() + get(); got != "ccc" {
		t.Errorf("with one: %s", got)
	}
	c.Close()
	if got := get(); got != "error" {
		t.Errorf("with none: %s", got)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
