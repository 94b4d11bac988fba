// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/regatta-sh/regatta/test/faults/budgets"
)

// The whole of it is "go run ./test/faults budgets", with 100,000 requests.
var _ = Describe("budgets", Serial, func() {
	It("are kept while managers are killed and everything is asked for at once", func(ctx SpecContext) {
		report, err := budgets.Run(ctx, budgets.Options{
			Name: "e2e-faults", Nodes: 10, Programs: shared.programs, Replicas: 2, Budgets: 15, Pods: 8,
			Clients: 16, Requests: 2000, KillEvery: 6 * time.Second, Seed: uint64(GinkgoRandomSeed()), Out: GinkgoWriter,
		})
		Expect(err).NotTo(HaveOccurred())
		show("go run ./test/faults budgets --requests 2000", report.String())
		Expect(report.Err()).NotTo(HaveOccurred())
	}, SpecTimeout(10*time.Minute))
})
