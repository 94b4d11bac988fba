// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("the plugin of kubectl", func() {
	It("runs, and completes words with the script of a release", func(ctx SpecContext) {
		folder := GinkgoT().TempDir()
		for name, file := range map[string]string{
			"kubectl-regatta":          shared.programs["regatta"],
			"kubectl_complete-regatta": filepath.Join(shared.root, "charts/release/assets/kubectl_complete-regatta"),
			"kubectl":                  filepath.Join(shared.installed.Tools, "kubectl"),
		} {
			Expect(os.Symlink(file, filepath.Join(folder, name))).To(Succeed())
		}
		run := func(args ...string) string {
			GinkgoHelper()
			command := exec.CommandContext(ctx, filepath.Join(folder, "kubectl"), args...)
			command.Env = append(os.Environ(), "PATH="+folder+string(os.PathListSeparator)+os.Getenv("PATH"), "KUBECONFIG="+shared.installed.Kubeconfig)
			out, err := command.CombinedOutput()
			ran(err, string(out), "kubectl", args)
			return string(out)
		}
		Expect(run("regatta", "version")).To(ContainSubstring("regatta"))
		Expect(run("__complete", "regatta", "rollout", "sta")).To(ContainSubstring("status"))
	})
})
