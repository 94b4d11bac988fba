// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a PersistentPodState", func() {
	for _, kind := range []struct{ apiVersion, resource string }{{"apps/v1", "statefulsets.apps"}, {"apps.kruise.io/v1beta1", "statefulsets.apps.kruise.io"}} {
		It("brings pods of a StatefulSet of "+kind.apiVersion+" back to their nodes", Label("smoke"), func(ctx SpecContext) {
			u := newUser(ctx)
			u.apply(`{apiVersion: ` + kind.apiVersion + `, kind: StatefulSet, metadata: {name: game, annotations: {
				kruise.io/auto-generate-persistent-pod-state: "true", kruise.io/required-persistent-topology: kubernetes.io/hostname}},
				spec: {replicas: 2, podManagementPolicy: Parallel, serviceName: game, selector: {matchLabels: {app: game}},
				template: {metadata: {labels: {app: game}}, spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: busybox, command: [sleep, "3600"]}]}}}}`)
			remembered := func(pod string) string {
				return u.kubectl("get", "persistentpodstate", "game", "--ignore-not-found", "-o", `jsonpath={.status.podStates.`+pod+`.nodeTopologyLabels.kubernetes\.io/hostname}`)
			}
			Eventually(func() string { return remembered("game-0") }).ShouldNot(BeEmpty())
			Eventually(func() string { return remembered("game-1") }).ShouldNot(BeEmpty())
			Expect(u.kubectl("get", "persistentpodstate", "game", "-o", "jsonpath={.metadata.ownerReferences[0].kind} {.spec.targetRef.apiVersion}")).To(Equal("StatefulSet " + kind.apiVersion))

			back := func() string {
				return u.kubectl("get", "pod", "game-0", "--ignore-not-found", "-o", `jsonpath={.spec.nodeSelector.kubernetes\.io/hostname} {.metadata.annotations.kruise\.io/injected-persistent-pod-state} {.spec.nodeName} {.status.conditions[?(@.type=="Ready")].status}`)
			}
			node := remembered("game-0")
			// The API server sends pods of the namespace a moment after the object is there.
			Eventually(func() string {
				if !strings.HasPrefix(back(), node+" game") {
					u.kubectl("delete", "pod", "game-0", "--wait=false")
				}
				return back()
			}, time.Minute, 3*time.Second).Should(Equal(node + " game " + node + " True"))

			u.kubectl("annotate", kind.resource, "game", "kruise.io/auto-generate-persistent-pod-state-")
			Eventually(func() string { return u.kubectl("get", "persistentpodstate", "-o", "name") }).Should(BeEmpty())
		}, SpecTimeout(6*time.Minute))
	}
})
