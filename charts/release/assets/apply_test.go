// SPDX-License-Identifier: Apache-2.0

package assets_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/install"
)

// Without Helm, twice, as at an upgrade; and Helm takes it over.
func TestAnAPIServerTakesTheManifests(t *testing.T) {
	cluster := apiserver.Start(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, cluster.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	o, _ := commonRelease(t)
	kubectl := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), filepath.Join(cluster.BinaryAssetsDirectory, "kubectl"), append(args, "--kubeconfig", kubeconfig)...)
		command.Dir = o.Folder
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, output)
		}
		return string(output)
	}
	for range 2 {
		kubectl("apply", "--server-side", "-f", "install-crds.yaml", "-f", "install.yaml")
	}
	if got, want := kubectl("get", "-n", "kruise-system", "deployment/kruise-controller-manager", "-o", "jsonpath={.spec.template.spec.containers[0].image}"), strings.TrimSpace(read(t, o.Folder, "image.digest")); got != want {
		t.Errorf("the image is %s, want %s", got, want)
	}
	if out, err := install.Helm(t, o.Folder, "upgrade", "--install", "kruise", "kruise-0.2.0.tgz", "--take-ownership", "--kubeconfig", kubeconfig); err != nil {
		t.Errorf("Helm does not take it over: %v\n%s", err, out)
	}
	if got := kubectl("get", "crd", "clonesets.apps.kruise.io", "-o", `jsonpath={.metadata.labels.app\.kubernetes\.io/managed-by}`); got != "Helm" {
		t.Errorf("after that the CRD is managed by %s", got)
	}
	kubectl("delete", "-f", "install.yaml", "--wait=false")
	if got := kubectl("get", "crd", "-o", "name"); strings.Count(got, "\n") != 20 {
		t.Errorf("of the 20 CRDs these are left:\n%s", got)
	}
}
