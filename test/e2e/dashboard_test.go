// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/regatta-sh/regatta/test/browser"
)

// console collects what a command prints while it runs.
type console struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (c *console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

func (c *console) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

// openDashboard runs regatta dashboard until the spec ends, and returns the address that it prints.
func (u *user) openDashboard(ctx context.Context) string {
	GinkgoHelper()
	out := &console{}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	command := exec.CommandContext(running, shared.programs["regatta"], "dashboard", "--port", "0", "-n", u.namespace)
	command.Env, command.Stdout, command.Stderr = shared.installed.Env(shared.programs), out, out
	Expect(command.Start()).To(Succeed())
	DeferCleanup(func() {
		stop()
		_ = command.Wait() // it ends by a signal
	})
	address := regexp.MustCompile(`http://127\.0\.0\.1:\d+/\w{20,}/`)
	Eventually(out.String).Should(MatchRegexp(address.String()))
	return address.FindString(out.String())
}

var _ = Describe("the dashboard", SpecPriority(1), func() {
	It("shows a rollout that a policy holds, says which rule does and what would change it, and follows it to its end", func(ctx SpecContext) {
		u := newUser(ctx)
		Expect(browser.Install(ctx, GinkgoWriter)).To(Succeed())
		u.apply(web("shop", 4, "nginx:1.20"))
		Eventually(u.status).WithArguments("shop").Should(Equal(settled(4)))
		u.bundle("gate-"+u.namespace, map[string]string{"gate.rego": `package extend.rollout.gate_` + strings.ReplaceAll(u.namespace, "-", "_") + `
# METADATA
# title: Changes need an approval
# labels: {id: approval.needed}
hold contains {"rule": "approval.needed", "reason": "NotApproved", "message": "This change waits for an approval."} if {
	input.workload.namespace == "` + u.namespace + `"
	not input.workload.annotations["shop.example/approved"] == "yes"
}
`})
		u.apply(web("shop", 4, "nginx:1.21"))

		opening, closeBrowser := context.WithCancel(context.WithoutCancel(ctx))
		DeferCleanup(closeBrowser)
		page, err := browser.Open(opening, "en")
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Navigate(u.openDashboard(ctx))).To(Succeed())
		shows := func(selector, text string) {
			GinkgoHelper()
			Expect(page.WaitUntil(fmt.Sprintf("document.querySelector(%q)?.innerText.includes(%q)", selector, text), time.Minute)).To(Succeed())
		}
		click := func(selector string) {
			GinkgoHelper()
			_, err := browser.Evaluate[bool](page, fmt.Sprintf("(document.querySelector(%q).click(), true)", selector))
			Expect(err).NotTo(HaveOccurred())
		}

		By("seeing that it is held")
		shows("tbody tr:first-child", "held")
		click("tbody a")
		shows(".legend", "4 held")
		shows(".verdict", "This change waits for an approval.")
		shows("main", "approval.needed")

		By("asking what would change it")
		click(".squares button")
		click(".detail button.ask")
		shows(".detail", "shop.example/approved")

		By("letting it go")
		u.kubectl("annotate", "clone", "shop", "shop.example/approved=yes")
		shows("#progress", "4 of 4 pods updated")
		shows(".legend", "4 up to date")
		Eventually(u.status).WithArguments("shop").Should(Equal(settled(4)))

		By("looking at decisions and policies")
		click("nav a[href='#/decisions']")
		shows("main", "NotApproved")
		click("nav a[href='#/policies']")
		shows("main", "gate-"+u.namespace)
		Expect(page.Problems()).To(BeEmpty(), "the console of the browser")
	}, SpecTimeout(10*time.Minute))
})
