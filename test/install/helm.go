// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/regatta-sh/regatta/test/cluster/binaries"
)

// Helm runs Helm in a folder, with nothing of the user who runs the tests: no plugins, no
// cluster. It is $HELM, or the pinned one, which is built once into the cache of the local
// cluster if the machine has none. What it returns with an error is what Helm says of it.
func Helm(t testing.TB, dir, command string, args ...string) (string, error) {
	t.Helper()
	path := os.Getenv("HELM")
	if path == "" {
		var err error
		if path, err = binaries.Path(t.Context(), os.Stderr, "helm"); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.CommandContext(t.Context(), path, append([]string{command}, args...)...)
	run.Dir = dir
	run.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "KUBECONFIG=/dev/null"}
	stdout, stderr := &bytes.Buffer{}, &bytes.Buffer{}
	run.Stdout, run.Stderr = stdout, stderr
	if err := run.Run(); err != nil {
		return stderr.String(), err
	}
	return stdout.String(), nil
}
