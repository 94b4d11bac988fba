// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/regatta-sh/regatta/test/install"
	"github.com/regatta-sh/regatta/test/pages"
)

// Every command of the pages of kinds and of the guides is typed here, in a namespace of its own for each page, with
// the manifests of the page under the names that they begin with. A page in Chinese has the same blocks, which test/pages
// checks.
var _ = Describe("the page", func() {
	root, err := install.Root()
	if err != nil {
		Fail(err.Error())
	}
	var paths []string
	for _, pattern := range []string{"controllers/*/README.md", "controllers/docs/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			Fail(err.Error())
		}
		paths = append(paths, found...)
	}
	if len(paths) < 40 {
		Fail(fmt.Sprintf("found %d pages", len(paths)))
	}
	for _, page := range paths {
		raw, err := os.ReadFile(page)
		if err != nil {
			Fail(err.Error())
		}
		lines := commands(string(raw))
		if len(lines) == 0 || strings.HasSuffix(page, ".zh-CN.md") {
			continue
		}
		name, err := filepath.Rel(root, page)
		if err != nil {
			Fail(err.Error())
		}
		It(name+" has only commands that work", func(ctx SpecContext) {
			if !shared.real {
				Skip("there are no containers")
			}
			u := newUser(ctx)
			folder := u.writeManifests(string(raw))
			for _, line := range lines {
				By(line)
				command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", withEndpoint(line))
				command.Dir, command.Env = folder, append(shared.installed.Env(shared.programs), "KUBECONFIG="+filepath.Join(folder, "kubeconfig"))
				command.WaitDelay = 5 * time.Second // a program that bash started may outlive it
				out, err := command.CombinedOutput()
				Expect(err).NotTo(HaveOccurred(), "%s\n%s", line, out)
			}
		}, SpecTimeout(10*time.Minute))
	}
})

// writeManifests writes the manifests of a page into a folder, and a kubeconfig for the namespace of the user.
// What they make and the page does not delete is deleted after the spec.
func (u *user) writeManifests(page string) string {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	config, err := clientcmd.LoadFromFile(shared.installed.Kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	for _, c := range config.Contexts {
		c.Namespace = u.namespace
	}
	Expect(clientcmd.WriteToFile(*config, filepath.Join(folder, "kubeconfig"))).To(Succeed())
	for _, m := range pages.ListManifests(page) {
		path := filepath.Join(folder, m.Name)
		Expect(os.WriteFile(path, []byte(m.Text), 0o600)).To(Succeed())
		DeferCleanup(func(ctx context.Context) {
			u.ctx = ctx
			u.kubectl("delete", "-f", path, "--ignore-not-found", "--wait=false")
		})
	}
	return folder
}
