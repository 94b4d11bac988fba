// SPDX-License-Identifier: Apache-2.0

package internet_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/regatta-sh/regatta/charts/release/helmchart"
	"github.com/regatta-sh/regatta/test/cluster/binaries"
	"github.com/regatta-sh/regatta/test/e2e/internet"
)

// pushChart pushes our chart to a registry.
func pushChart(t *testing.T, hub http.Handler) {
	t.Helper()
	server := httptest.NewServer(hub)
	defer server.Close()
	chart, err := helmchart.PackChart("../../../charts/kruise", "0.2.0", v1.Hash{Algorithm: "sha256", Hex: strings.Repeat("a", 64)}, nil, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/charts/kruise:0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chart.PushChart(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
}

// Helm is the program whose commands it is for.
func TestHelmReachesStandInsByTheNamesOfHosts(t *testing.T) {
	helm := os.Getenv("HELM")
	if helm == "" {
		var err error
		if helm, err = binaries.Path(t.Context(), os.Stderr, "helm"); err != nil {
			t.Fatal(err)
		}
	}
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
			fmt.Fprintf(response, "apiVersion: v1\nentries: {a: [{apiVersion: v2, name: a, version: %s, urls: [a.tgz]}]}\n", text)
		})
	}
	folder := t.TempDir()
	hub := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	pushChart(t, hub)
	i, err := internet.Serve(map[string]http.Handler{"one.example": says("1.0.0"), "two.example": says("2.0.0"), "registry.example": hub}, folder)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	run := func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), helm, args...)
		command.Env = append(i.Env("127.0.0.1"), "HOME="+folder, "PATH="+os.Getenv("PATH"))
		out, err := command.CombinedOutput()
		return string(out), err
	}
	for host, want := range map[string]string{"one": "1.0.0", "two": "2.0.0"} {
		if out, err := run("repo", "add", host, "https://"+host+".example/charts"); err != nil {
			t.Fatal(err, out)
		}
		if out, err := run("search", "repo", host+"/a"); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", host, err, out)
		}
	}
	if out, err := run("show", "chart", "oci://registry.example/charts/kruise", "--version", "0.2.0"); err != nil || !strings.Contains(out, "name: kruise") {
		t.Errorf("from a registry: %v\n%s", err, out)
	}
	if out, err := run("repo", "add", "three", "https://three.example/charts"); err == nil || !strings.Contains(out, "Bad Gateway") {
		t.Errorf("a host that nothing stands in for: %v\n%s", err, out)
	}
}
