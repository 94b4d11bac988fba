// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
)

// Every command of the README is typed here, in its order, but for what has a spec of its
// own: helm install is for an empty cluster, and is typed there as it stands. Of make only
// the target is looked up: demo has a spec too, and test is running.
var _ = Describe("the README", Serial, Ordered, func() {
	It("has only commands that work", func(ctx SpecContext) {
		raw, err := os.ReadFile(filepath.Join(shared.root, "README.md"))
		Expect(err).NotTo(HaveOccurred())
		lines := commands(string(raw))
		Expect(len(lines)).To(BeNumerically(">", 10))
		for _, line := range lines {
			By(line)
			switch {
			case strings.HasPrefix(line, "make "):
				line = "make -n " + strings.TrimPrefix(line, "make ")
			case strings.HasPrefix(line, "helm install"):
				continue
			}
			command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", withEndpoint(line))
			command.Dir, command.Env = shared.root, shared.installed.Env(shared.programs)
			out, err := command.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s\n%s", line, out)
		}
	}, SpecTimeout(8*time.Minute))

	AfterAll(func(ctx SpecContext) { // the demo leaves its policy, which is for the whole cluster
		b := &policy.ClusterPolicyBundle{ObjectMeta: metav1.ObjectMeta{Name: "one-zone-at-a-time"}}
		Expect(client.IgnoreNotFound(shared.k8s.Delete(ctx, b))).To(Succeed())
	})

	It("shows a demo that plays to its end", func(ctx SpecContext) {
		args := []string{"run", "./test/demo", "--kubeconfig", shared.installed.Kubeconfig}
		if e := shared.installed.Endpoint; e != "" {
			args = append(args, "--installed", "--endpoint", e)
		} else {
			args = append(args, "--installed")
		}
		command := exec.CommandContext(ctx, "go", args...)
		command.Dir, command.Env = shared.root, shared.installed.Env(shared.programs)
		out, err := command.CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), "%s", out)
		Expect(string(out)).To(And(ContainSubstring("OtherZoneFirst"), ContainSubstring("Three things to try"), ContainSubstring("SuccessfulUpdatePodInPlace"), Not(ContainSubstring("SuccessfulUpdatePodReCreate"))))
	}, SpecTimeout(10*time.Minute))
})

// commands are the lines of the sh blocks of a Markdown text.
func commands(text string) []string { return commandsOf(text, "```sh") }

// commandsOf are the lines of its blocks of a kind.
func commandsOf(text, block string) (out []string) {
	in := false
	for _, line := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			in = line == block
		case in && strings.TrimSpace(line) != "":
			out = append(out, line)
		}
	}
	return out
}

// withEndpoint has a command that asks the manager reach it where no Service does.
func withEndpoint(line string) string {
	for _, asking := range []string{"regatta why", "regatta rollout", "regatta policy replay"} {
		if e := shared.installed.Endpoint; e != "" && strings.HasPrefix(line, asking) {
			return line + " --endpoint " + e + " --insecure-skip-tls-verify"
		}
	}
	return line
}
