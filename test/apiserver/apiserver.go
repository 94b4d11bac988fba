// SPDX-License-Identifier: Apache-2.0

// Package apiserver starts a Kubernetes API server without nodes for tests, of
// the programs that make test-unit builds.
package apiserver

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/api"
	"github.com/regatta-sh/regatta/controllers/webhook/convert"
	"github.com/regatta-sh/regatta/test/cluster/binaries"
	"github.com/regatta-sh/regatta/test/install"
)

// patience is how long an API server may take to start, to serve CRDs, or to stop,
// each of which takes seconds where nothing else runs, and 20 s or 10 s is all that
// envtest gives it.
const patience = 2 * time.Minute

// newEnvironment is an API server that is not started. It skips the test
// where neither KUBEBUILDER_ASSETS nor the cache has the programs, since
// building them takes many minutes.
func newEnvironment(t testing.TB) *envtest.Environment {
	t.Helper()
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		cache, err := binaries.CacheDir()
		if err != nil {
			t.Fatal(err)
		}
		paths, ok := binaries.Find(t.Context(), cache, "etcd", "kube-apiserver", "kubectl")
		if !ok {
			t.Skip("needs an API server: KUBEBUILDER_ASSETS=$(go run ./test/cluster bin etcd kube-apiserver kubectl)")
		}
		if dir, err = binaries.Link(cache, paths); err != nil {
			t.Fatal(err)
		}
	}
	env := &envtest.Environment{BinaryAssetsDirectory: dir, ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience}
	// etcd maps more than its quota at once, 10 GiB without one, which a limit of the address space may not have room for.
	env.ControlPlane.Etcd = &envtest.Etcd{}
	env.ControlPlane.Etcd.Configure().Set("quota-backend-bytes", "1073741824")
	return env
}

// Start starts an API server for as long as the test runs, or skips the test where the
// programs are not built. Edits change its settings before it starts.
func Start(t testing.TB, edits ...func(*envtest.Environment)) *envtest.Environment {
	t.Helper()
	env := newEnvironment(t)
	for _, edit := range edits {
		edit(env)
	}
	if _, err := env.Start(); err != nil {
		t.Fatalf("starting an API server with %s: %v", env.BinaryAssetsDirectory, err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("stopping the API server: %v", err)
		}
	})
	return env
}

// Serve starts an API server that has the CRDs of the chart, and makes a client
// for all kinds.
func Serve(t testing.TB) (*envtest.Environment, client.Client) {
	t.Helper()
	env := Start(t)
	Install(t, env, CRDs(t, ""))
	c, err := client.New(env.Config, client.Options{Scheme: Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	return env, c
}

// Run runs a manager until the test ends.
func Run(t testing.TB, mgr manager.Manager) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := mgr.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// Eventually waits for f to return nothing, and fails the test with the last thing that it
// returned.
func Eventually(t testing.TB, what string, f func() string) {
	t.Helper()
	got := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = f(); got == "" {
			return
		}
	}
	t.Fatalf("%s: %s", what, got)
}

// Install makes CRDs and waits until the API server serves them.
func Install(t testing.TB, env *envtest.Environment, crds []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	if _, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: crds, MaxTime: patience}); err != nil {
		t.Fatal(err)
	}
}

// Scheme knows all kinds.
func Scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// CRDs are those of the chart. Those whose versions differ convert at a URL, as the
// chart has it for a manager outside of the cluster; none if it is empty.
func CRDs(t testing.TB, url string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	root, err := install.Root()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(root, "charts", "kruise", "files", "crds", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("finding the CRDs of the chart: %v", err)
	}
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	converting := map[string]bool{}
	for _, resource := range convert.ConvertibleResources(scheme) {
		converting[resource.String()] = true
	}
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			t.Fatalf("reading %s: %v", path, err)
		}
		if url != "" && converting[crd.Name] {
			crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ConversionReviewVersions: []string{"v1"}, ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url},
				},
			}
		}
		out = append(out, crd)
	}
	return out
}
