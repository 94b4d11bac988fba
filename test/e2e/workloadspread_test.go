// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/test/faults/spreads"
)

var _ = Describe("a WorkloadSpread", func() {
	manifest := func(u *user, kind, name, strategy string, zones []string) {
		GinkgoHelper()
		apiVersion := map[string]string{
			"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "CloneSet": "apps.kruise.io/v1alpha1", "Job": "batch/v1", "StatefulSet": "apps/v1", "Advanced StatefulSet": "apps.kruise.io/v1beta1", "Game": "example.com/v1",
		}[kind]
		text := fmt.Sprintf(`{apiVersion: apps.kruise.io/v1alpha1, kind: WorkloadSpread, metadata: {name: %s}, spec: {targetRef: {apiVersion: %s, kind: %s, name: %s}, %s
			subsets: [{name: first, maxReplicas: 2, patch: {metadata: {labels: {subset: first}}}, requiredNodeSelectorTerm: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [%s]}]}},
			{name: second, requiredNodeSelectorTerm: {matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [%s]}]}}]}}`,
			name, apiVersion, strings.TrimPrefix(kind, "Advanced "), name, strategy, zones[0], zones[1])
		// The white list is read every ten seconds.
		Eventually(func() (string, error) { return u.pipe(text) }).Should(ContainSubstring("workloadspread"))
		// The API server calls the webhook for the namespace a moment later.
		Eventually(func() string {
			return u.kubectl("get", "mutatingwebhookconfiguration", "kruise-protection-webhook-configuration", "-o", "jsonpath={.webhooks[*].matchConditions[*].expression}{.webhooks[*].namespaceSelector}")
		}).Should(Or(ContainSubstring(u.namespace), Not(ContainSubstring("request.namespace"))))
		time.Sleep(time.Second) // until the API server goes by it
	}
	workload := func(kind, name string, replicas int, image string) string {
		apiVersion := map[string]string{"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "CloneSet": "apps.kruise.io/v1alpha1"}[kind]
		return fmt.Sprintf(`{apiVersion: %[1]s, kind: %[2]s, metadata: {name: %[3]s}, spec: {replicas: %[4]d, selector: {matchLabels: {app: %[3]s}},
			template: %[5]s}}`, apiVersion, kind, name, replicas, podTemplate(name, image, ""))
	}
	subsets := func(u *user, app string) map[string]int {
		out := map[string]int{}
		for _, pod := range u.pods(app) {
			mark := struct{ Subset string }{}
			_ = json.Unmarshal([]byte(pod.Annotations["apps.kruise.io/matched-workloadspread"]), &mark)
			out[mark.Subset]++
		}
		return out
	}
	status := func(u *user, name string) string {
		return u.kubectl("get", "ws", name, "-o", `jsonpath={range .status.subsetStatuses[*]}{.name}={.replicas}/{.missingReplicas} {end}`)
	}

	It("fills zones in order, and gives up the last one first", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		zones, nodes := zones(u)
		manifest(u, "CloneSet", "web", "", zones)
		u.apply(workload("CloneSet", "web", 5, "nginx:1.20"))
		Eventually(u.status).WithArguments("web").Should(Equal(settled(5)))
		Expect(subsets(u, "web")).To(Equal(map[string]int{"first": 2, "second": 3}))
		for _, pod := range u.pods("web") {
			if pod.Labels["subset"] == "first" {
				Expect(nodes[zones[0]]).To(ContainElement(pod.Spec.NodeName))
			} else {
				Expect(nodes[zones[1]]).To(ContainElement(pod.Spec.NodeName))
			}
		}
		Eventually(func() string { return status(u, "web") }).Should(Equal("first=2/0 second=3/-1"))
		Eventually(func() string { return u.why("ws/web") }).Should(MatchRegexp(`first +2 +placement.subset +at most 2`))
		for name := range u.pods("web") {
			Expect(u.why("pod/" + name)).To(MatchRegexp(`It is in subset (first|second) of WorkloadSpread web`))
			break
		}

		u.kubectl("scale", "clone", "web", "--replicas=2")
		Eventually(func() map[string]int { return subsets(u, "web") }).Should(Equal(map[string]int{"first": 2}))
		u.kubectl("delete", "pod", "-l", "app=web,subset=first")
		Eventually(func() map[string]int { return subsets(u, "web") }).Should(Equal(map[string]int{"first": 2}))

		By("a dry run, which counts nothing")
		u.kubectl("run", "lonely", "--image=nginx:1.20", "--dry-run=server")
		Eventually(func() string { return status(u, "web") }).Should(Equal("first=2/0 second=0/-1"))
	}, SpecTimeout(8*time.Minute))

	It("has the pods of a Deployment in their zones after an update that creates before it deletes", func(ctx SpecContext) {
		u := newUser(ctx)
		zones, _ := zones(u)
		manifest(u, "Deployment", "web", "", zones)
		u.apply(workload("Deployment", "web", 4, "nginx:1.20"))
		u.kubectl("rollout", "status", "deployment/web", "--timeout=90s")
		Expect(subsets(u, "web")).To(Equal(map[string]int{"first": 2, "second": 2}))
		u.apply(workload("Deployment", "web", 4, "nginx:1.21"))
		u.kubectl("rollout", "status", "deployment/web", "--timeout=90s")
		Eventually(func() map[string]int { return subsets(u, "web") }).Should(Equal(map[string]int{"first": 2, "second": 2}))
	}, SpecTimeout(8*time.Minute))

	It("spreads the pods of a ReplicaSet, and names a subset that no node is of", func(ctx SpecContext) {
		u := newUser(ctx)
		zones, nodes := zones(u)
		manifest(u, "ReplicaSet", "web", "", []string{zones[0], "no-such-zone"})
		u.apply(workload("ReplicaSet", "web", 3, "nginx:1.20"))
		condition := func() string {
			const c = `.status.conditions[?(@.type=="Placing")]`
			return u.kubectl("get", "ws", "web", "-o", "jsonpath={"+c+".status} {"+c+".reason} {"+c+".message}")
		}
		Eventually(condition).Should(MatchRegexp(`^False NoNodes No node has the labels .*: second\.$`))
		Expect(subsets(u, "web")).To(Equal(map[string]int{"first": 2, "second": 1}), func() string { return u.kubectl("get", "events", "-o", "wide") })
		Eventually(func() map[string]int { return placed(u, "web", nodes) }).Should(Equal(map[string]int{zones[0]: 2}))

		By("spelling it right: the pod that waits is as it was made, and the next one finds a node")
		manifest(u, "ReplicaSet", "web", "", zones)
		for name, pod := range u.pods("web") {
			if pod.Spec.NodeName == "" {
				u.kubectl("delete", "pod", name)
			}
		}
		Eventually(func() map[string]int { return placed(u, "web", nodes) }).Should(Equal(map[string]int{zones[0]: 2, zones[1]: 1}))
		Eventually(condition).Should(HavePrefix("True Placing"))
	}, SpecTimeout(5*time.Minute))

	for _, of := range []struct{ kind, spec string }{
		{"Job", `{apiVersion: batch/v1, kind: Job, metadata: {name: %[1]s}, spec: {parallelism: 4, completions: 4, template: %[2]s}}`},
		{"StatefulSet", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: %[1]s}, spec: {replicas: 4, serviceName: none, selector: {matchLabels: {app: %[1]s}}, template: %[2]s}}`},
		{"Advanced StatefulSet", `{apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, metadata: {name: %[1]s}, spec: {replicas: 4, serviceName: none, selector: {matchLabels: {app: %[1]s}}, template: %[2]s}}`},
	} {
		It("spreads the pods of a "+of.kind, func(ctx SpecContext) {
			u := newUser(ctx)
			zones, nodes := zones(u)
			manifest(u, of.kind, "db", "", zones)
			restart := map[string]string{"Job": "Never"}[of.kind]
			u.apply(fmt.Sprintf(of.spec, "db", podTemplate("db", "nginx:1.20", restart)))
			Eventually(func() map[string]int { return subsets(u, "db") }).Should(Equal(map[string]int{"first": 2, "second": 2}))
			Eventually(func() map[string]int { return placed(u, "db", nodes) }).Should(Equal(map[string]int{zones[0]: 2, zones[1]: 2}))
			Eventually(func() string { return status(u, "db") }).Should(Equal("first=2/0 second=2/-1"))
			if of.kind == "Job" {
				return
			}
			By("ordinals, which say where a pod is")
			for name, pod := range u.pods("db") {
				Expect(pod.Labels["subset"]).To(Equal(map[string]string{"db-0": "first", "db-1": "first"}[name]), name)
			}
			u.kubectl("delete", "pod", "db-0")
			Eventually(func() map[string]int { return placed(u, "db", nodes) }).Should(Equal(map[string]int{zones[0]: 2, zones[1]: 2}))
		}, SpecTimeout(8*time.Minute))
	}

	It("spreads the pods of a kind that the administrator lists, without a restart", func(ctx SpecContext) {
		u := newUser(ctx)
		zones, nodes := zones(u)
		u.apply(games)
		system := &user{ctx: u.ctx, namespace: "kruise-system"}
		system.apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: kruise-configuration}, data: {
			WorkloadSpread_Watch_Custom_Workload_WhiteList: '{"workloads": [{"Group": "example.com", "Version": "v1", "Kind": "Game", "replicasPath": "spec.players.servers"}]}'}}`)
		DeferCleanup(func(ctx context.Context) {
			u.ctx = ctx
			u.kubectl("delete", "-n", "kruise-system", "configmap", "kruise-configuration")
			u.kubectl("delete", "crd", "games.example.com")
			u.kubectl("delete", "clusterrole,clusterrolebinding", "e2e-games")
		})
		u.kubectl("wait", "--for=condition=Established", "crd/games.example.com")
		Eventually(func() (string, error) {
			return u.pipe(`{apiVersion: example.com/v1, kind: Game, metadata: {name: chess}, spec: {players: {servers: 5}}}`)
		}).Should(ContainSubstring("chess"))
		uid := u.kubectl("get", "game", "chess", "-o", "jsonpath={.metadata.uid}")
		manifest(u, "Game", "chess", "", zones)
		// One replica of the manager knows the kind now. Each reads the list every ten seconds, and any may be asked about a pod.
		time.Sleep(11 * time.Second)
		for i := range 5 { // what the controller of games would do
			u.apply(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: chess-%d, labels: {app: chess}, ownerReferences: [{apiVersion: example.com/v1, kind: Game, name: chess, uid: %s, controller: true}]},
				spec: {terminationGracePeriodSeconds: 0, containers: [{name: main, image: "nginx:1.20"}]}}`, i, uid))
		}
		Expect(subsets(u, "chess")).To(Equal(map[string]int{"first": 2, "second": 3}))
		Eventually(func() map[string]int { return placed(u, "chess", nodes) }).Should(Equal(map[string]int{zones[0]: 2, zones[1]: 3}))
		Eventually(func() string { return status(u, "chess") }).Should(Equal("first=2/0 second=3/-1"))
	}, SpecTimeout(8*time.Minute))

	It("gives no subset more than it may have while 50 pods are created at once and a manager is killed", Serial, func(ctx SpecContext) {
		if shared.installed.Endpoint != "" {
			Skip("the manager runs outside of the cluster")
		}
		u := newUser(ctx)
		system := &user{ctx: u.ctx, namespace: "kruise-system"}
		config := rest.CopyConfig(shared.config)
		config.QPS = -1 // all at once
		c, err := client.NewWithWatch(config, client.Options{Scheme: shared.k8s.Scheme()})
		Expect(err).NotTo(HaveOccurred())
		load := spreads.Load{
			Namespace: u.namespace, Pods: 50, Rounds: 1, Seed: uint64(GinkgoRandomSeed()), //nolint:gosec // any number will do
			Kill: func() error {
				names := strings.Fields(system.kubectl("get", "pods", "-l", "control-plane=controller-manager", "-o", "name"))
				_, err := system.try("kubectl", "-n", system.namespace, "delete", "--force", "--grace-period=0", names[0])
				return err
			},
			Ready: func() error {
				_, err := system.try("kubectl", "-n", system.namespace, "rollout", "status", "deployment/kruise-controller-manager", "--timeout=90s")
				return err
			},
		}
		report, err := load.RunJob(u.ctx, c)
		Expect(err).NotTo(HaveOccurred())
		GinkgoWriter.Print(report)
		Expect(report.Err()).To(Succeed())
	}, SpecTimeout(8*time.Minute))

	It("gives up a zone with a taint, and puts no pod there for a while once it is back", Serial, func(ctx SpecContext) {
		u := newUser(ctx)
		zones, nodes := zones(u)
		line := watchTimeline(u, nodes, "get", "ws", "shop", "--ignore-not-found", "-o",
			`jsonpath={range .status.subsetStatuses[*]}{.name}={.replicas} {.conditions[0].status} {.conditions[0].reason}; {end}`)
		manifest(u, "CloneSet", "shop", "scheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 5}},", zones)
		untaint := taint(u, nodes[zones[0]])
		line.mark("zone " + zones[0] + " has a taint")
		u.apply(workload("CloneSet", "shop", 3, "nginx:1.20"))
		Eventually(u.status).WithArguments("shop").Should(Equal(settled(3)))
		Expect(subsets(u, "shop")).To(Equal(map[string]int{"second": 3}))
		Eventually(func() string {
			return u.kubectl("get", "ws", "shop", "-o", `jsonpath={.status.subsetStatuses[0].conditions[0].status} {.status.subsetStatuses[0].conditions[0].reason}`)
		}).Should(Equal("False PodUnschedulable"))
		Expect(u.kubectl("get", "ws", "shop", "-o", `jsonpath={.status.subsetStatuses[0].conditions[0].message}`)).To(ContainSubstring("first"))
		Expect(strings.Fields(u.kubectl("get", "ws", "shop", "--no-headers"))[:3]).To(Equal([]string{"shop", "shop", "CloneSet"}))

		untaint()
		line.mark("the taint is gone")
		u.kubectl("scale", "clone", "shop", "--replicas=5")
		Eventually(u.status).WithArguments("shop").Should(Equal(settled(5)))
		Expect(subsets(u, "shop")).To(Equal(map[string]int{"second": 5}), "it may have no room still")
		line.end()
	}, SpecTimeout(8*time.Minute))
})

// games are a kind that Regatta does not know, and what lets it read them.
const games = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: games.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Game, plural: games, singular: game}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: e2e-games}
rules: [{apiGroups: [example.com], resources: [games], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: e2e-games}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: e2e-games}
subjects: [{kind: ServiceAccount, name: kruise-manager, namespace: kruise-system}]
`

// podTemplate is one of pods of an app.
func podTemplate(app, image, restart string) string {
	if restart != "" {
		restart = "restartPolicy: " + restart + ", "
	}
	return fmt.Sprintf(`{metadata: {labels: {app: %s}}, spec: {%sterminationGracePeriodSeconds: 0, containers: [{name: main, image: "%s"}]}}`, app, restart, image)
}
