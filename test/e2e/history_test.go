// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/regatta-sh/regatta/test/faults/budgets"
	"github.com/regatta-sh/regatta/test/faults/injection"
)

// Short histories of what "go run ./test/faults" tries for longer, each on a cluster of its own
// with simulated nodes: the whole is 100,000 requests of budgets, and 5,000 pods with sidecars.
var _ = Describe("budgets", Serial, func() {
	It("are kept while managers are killed and everything is asked for at once", func(ctx SpecContext) {
		promised("go run ./test/faults budgets --requests 1000")(budgets.Run(ctx, budgets.Options{
			Name: ownCluster, Nodes: 10, Programs: shared.programs, Replicas: 2, Budgets: 15, Pods: 8,
			Clients: 16, Requests: 1000, KillEvery: 6 * time.Second, Seed: uint64(GinkgoRandomSeed()), Out: GinkgoWriter,
		}))
	}, SpecTimeout(10*time.Minute))
})

var _ = Describe("sidecars", Serial, func() {
	It("are in each pod once, of one revision, while SidecarSets change and managers are killed", func(ctx SpecContext) {
		promised("go run ./test/faults injection --for 12s --kill-every 2s --change-every 250ms")(injection.Run(ctx, injection.Options{
			Name: ownCluster, Nodes: 3, Programs: shared.programs, Replicas: 2, Groups: 2, Pods: 5000, For: 12 * time.Second,
			Clients: 8, Keep: 12, ChangeEvery: 250 * time.Millisecond, KillEvery: 2 * time.Second, Late: 5 * time.Second,
			Seed: uint64(GinkgoRandomSeed()), Out: GinkgoWriter,
		}))
	}, SpecTimeout(10*time.Minute))
})

// ownCluster is the name of the cluster of such a spec, also where several working copies are tried. They are Serial, so that there
// is one at a time.
var ownCluster = localCluster + "-faults"

// reporter is what came out of a trial.
type reporter interface {
	fmt.Stringer
	Err() error
}

// promised holds what came out of a trial to what is promised, and shows it as what the command would print.
func promised(command string) func(reporter, error) {
	return func(report reporter, err error) {
		GinkgoHelper()
		Expect(err).NotTo(HaveOccurred())
		show(command, report.String())
		Expect(report.Err()).NotTo(HaveOccurred())
	}
}
