// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// apiServer answers as one of a version, without some groups.
func apiServer(t *testing.T, v version.Info, without ...string) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = v
		if group, ok := strings.CutPrefix(r.URL.Path, "/apis/"); ok {
			answer = metav1.APIResourceList{GroupVersion: group}
			for _, g := range without {
				if g == group {
					http.NotFound(w, r)
					return
				}
			}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestCheckUpgrade(t *testing.T) {
	current := version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.0"}
	for _, tc := range []struct {
		name    string
		version version.Info
		without []string
		want    string
	}{
		{"a cluster that has all", current, nil, ""},
		{"the oldest that has all, of a provider", version.Info{Major: "1", Minor: "30+", GitVersion: "v1.30.1-eks"}, nil, ""},
		{"an old cluster", version.Info{Major: "1", Minor: "28+", GitVersion: "v1.28.4-eks"}, nil, "is Kubernetes v1.28.4-eks, want 1.30 or newer"},
		{"an unknown major version", version.Info{Major: "2", Minor: "0", GitVersion: "v2.0.0"}, nil, `says that it is "v2.0.0"`},
		{"an API that is off", current, []string{"policy/v1", "batch/v1"}, "does not serve batch/v1\nthe API server does not serve policy/v1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := CheckUpgrade(t.Context(), apiServer(t, tc.version, tc.without...))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := CheckUpgrade(ended, apiServer(t, current)); err == nil {
		t.Error("a check that is ended says that all is well")
	}
}
