// SPDX-License-Identifier: Apache-2.0

package support

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/regatta-sh/regatta/charts/release/archive/archivetest"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/check"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/version"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/install"
)

// planted is in every secret that must not come out.
const planted = "PLANTED"

// secret is one of its own.
func secret(n int) string { return fmt.Sprintf("%s-%d-hunter2", planted, n) }

// running answers in place of kubelets and managers, which there are none of: what they print, and fail to.
type running struct {
	http.RoundTripper
	logs, previous, metrics, decisions string
}

func (r *running) RoundTrip(req *http.Request) (*http.Response, error) {
	text, path := "", req.URL.Path
	switch {
	case strings.HasSuffix(path, "/log") && req.URL.Query().Get("previous") == "true":
		text = r.previous
	case strings.HasSuffix(path, "/log"):
		text = r.logs
	case strings.HasSuffix(path, "/proxy/metrics"):
		text = r.metrics
	case strings.Contains(path, "/apis/decisions.kruise.io/") && strings.HasSuffix(path, "/decisions"):
		text = r.decisions
	default:
		return r.RoundTripper.RoundTrip(req)
	}
	return &http.Response{StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(text)), Request: req}, nil
}

// shop is a cluster with the chart.
type shop struct {
	client.Client
	env *envtest.Environment
}

func newShop(t *testing.T) *shop {
	t.Helper()
	env := apiserver.Start(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := install.Root()
	if err != nil {
		t.Fatal(err)
	}
	values := filepath.Join(t.TempDir(), "values.yaml")
	text := `
webhookConfiguration: {url: "https://localhost:1"}
daemon: {namespace: kruise-agents}
manager:
  decisions: {apiService: {enabled: false}}
  extraEnv: [{name: HTTPS_PROXY, value: "http://ann:` + secret(1) + `@proxy.example.com:3128"}, {name: PLAIN, value: ` + secret(2) + `}]
decisionLogs:
  http: {url: "https://logs.example.com/x?sig=` + secret(3) + `", headers: {X-Tenant: ` + secret(4) + `}}
`
	if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := install.Helm(t, "", "install", "kruise", filepath.Join(root, "charts", "kruise"), "--kubeconfig", kubeconfig, "-f", values); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	known, err := preflight.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{env: env}
	env.Config.QPS, env.Config.Burst = 50, 100 // as the command has it
	if s.Client, err = client.New(env.Config, client.Options{Scheme: known}); err != nil {
		t.Fatal(err)
	}
	return s
}

// options are those of the command, without its defaults that take long.
func options() Options {
	return Options{
		Options: check.Options{Namespace: "kruise-system", Release: "kruise", ReleaseNamespace: "default", Timeout: 20 * time.Second, Program: version.Version{Regatta: "v0.0.1"}},
		Objects: 50, Agents: 3, Decisions: 10, LogBytes: 1 << 20, MaxSize: 16 << 20,
	}
}

// writes gathers an archive, and returns its files by name and its size.
func (s *shop) writes(t *testing.T, config *rest.Config, o Options) (map[string]string, int) {
	t.Helper()
	var out bytes.Buffer
	n, err := WriteArchive(t.Context(), config, o, &out)
	if err != nil {
		t.Fatal(err)
	}
	size := out.Len()
	files := readArchive(t, &out)
	if len(files) != n {
		t.Errorf("it says that there are %d files, and there are %d", n, len(files))
	}
	return files, size
}

// readArchive reads an archive by the names of its files in the folder that it has.
func readArchive(t *testing.T, from io.Reader) map[string]string {
	t.Helper()
	files := map[string]string{}
	for name, text := range archivetest.ReadTarGz(t, from) {
		files[strings.TrimPrefix(name, "regatta-support/")] = text
	}
	return files
}

// findPlanted fails for each file that has what was planted, in a form that is easily read.
func findPlanted(t *testing.T, files map[string]string) {
	t.Helper()
	forms := []string{planted, hex.EncodeToString([]byte(planted)), strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(secret(2))), "=")}
	for name, text := range files {
		for _, form := range forms {
			if at := strings.Index(text, form); at >= 0 {
				t.Errorf("%s has it: %s", name, text[max(0, at-150):min(len(text), at+60)])
			}
		}
		if strings.Contains(name, planted) {
			t.Errorf("the name of %s has it", name)
		}
	}
}

func newCertificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	cert, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}
