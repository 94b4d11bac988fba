// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// zones are the zones of nodes that pods may run on, each with the names of its nodes.
func zones(u *user) (names []string, nodes map[string][]string) {
	GinkgoHelper()
	list := &corev1.NodeList{}
	Expect(shared.k8s.List(u.ctx, list)).To(Succeed())
	nodes = map[string][]string{}
	for _, node := range list.Items {
		if zone := node.Labels["topology.kubernetes.io/zone"]; zone != "" && len(node.Spec.Taints) == 0 && !node.Spec.Unschedulable {
			nodes[zone] = append(nodes[zone], node.Name)
		}
	}
	for zone := range nodes {
		names = append(names, zone)
	}
	slices.Sort(names)
	Expect(len(names)).To(BeNumerically(">=", 2), "nodes of two zones at least")
	return names[:2], nodes
}

// cordon makes a zone unschedulable until the spec ends, or for as long as it says.
func cordon(u *user, nodes []string) (uncordon func()) {
	GinkgoHelper()
	u.kubectl(append([]string{"cordon"}, nodes...)...)
	return undo(u, func() { u.kubectl(append([]string{"uncordon"}, nodes...)...) })
}

// taint keeps new pods out of a zone until the spec ends, or for as long as it says.
func taint(u *user, nodes []string) (untaint func()) {
	GinkgoHelper()
	const key = "e2e.regatta.sh/lost"
	set := func(what string) { u.kubectl(append(append([]string{"taint", "nodes"}, nodes...), key+what)...) }
	set("=zone:NoSchedule")
	return undo(u, func() { set(":NoSchedule-") })
}

// undo does something when the spec ends, unless the spec did.
func undo(u *user, do func()) func() {
	once := sync.Once{}
	DeferCleanup(func(ctx context.Context) {
		u.ctx = ctx
		once.Do(do)
	})
	return func() { once.Do(do) }
}

// placed counts the pods of an app by the zones of their nodes.
func placed(u *user, app string, nodes map[string][]string) map[string]int {
	GinkgoHelper()
	out := map[string]int{}
	for _, pod := range u.pods(app) {
		for zone, names := range nodes {
			if slices.Contains(names, pod.Spec.NodeName) {
				out[zone]++
			}
		}
	}
	return out
}

// placing is the condition that names the subsets whose pods are nowhere.
func placing(u *user, name string) string {
	GinkgoHelper()
	const c = `.status.conditions[?(@.type=="Placing")]`
	return u.kubectl("get", "ud", name, "-o", "jsonpath={"+c+".status} {"+c+".reason} {"+c+".message}")
}

// timeline has what a spec saw, and when.
type timeline struct {
	begun time.Time
	last  string
	mu    sync.Mutex
	stop  chan struct{}
	ended chan struct{}
}

// watchTimeline prints where pods are and what kubectl says, whenever it changes, until the
// timeline or the spec ends. It fails nothing.
func watchTimeline(u *user, zones map[string][]string, args ...string) *timeline {
	l := &timeline{begun: time.Now(), stop: make(chan struct{}), ended: make(chan struct{})}
	own := *u // others give theirs another context when the spec ends
	zone := map[string]string{}
	for name, nodes := range zones {
		for _, node := range nodes {
			zone[node] = name
		}
	}
	look := func() string {
		list := &corev1.PodList{}
		if err := shared.k8s.List(own.ctx, list, client.InNamespace(own.namespace)); err != nil {
			return l.last
		}
		on := map[string]int{}
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp == nil {
				on[cmp.Or(zone[list.Items[i].Spec.NodeName], "no node")]++
			}
		}
		said, err := own.try("kubectl", append([]string{"-n", own.namespace}, args...)...)
		if err != nil {
			return l.last
		}
		return strings.TrimSpace(fmt.Sprintf("pods on %v; %s", on, said))
	}
	go func() {
		defer close(l.ended)
		for {
			if text := look(); text != l.last {
				l.last = text
				l.mark("  " + text)
			}
			select {
			case <-l.stop:
				return
			case <-own.ctx.Done():
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	DeferCleanup(l.end)
	return l
}

func (l *timeline) mark(text string) {
	GinkgoWriter.Printf("%6.1fs %s\n", time.Since(l.begun).Seconds(), text)
}

func (l *timeline) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	<-l.ended
}

// subsetsIn are a subset for each value of a label of nodes, the first with more fields.
func subsetsIn(label string, values []string, first string) []string {
	out := make([]string, len(values))
	for i, value := range values {
		out[i] = fmt.Sprintf(`{name: subset-%c, nodeSelectorTerm: {matchExpressions: [{key: %s, operator: In, values: [%s]}]}%s}`, 'a'+i, label, value, first)
		first = ""
	}
	return out
}

// unitedDeployment is a manifest.
func unitedDeployment(name string, replicas int, template, strategy string, subsets ...string) string {
	return fmt.Sprintf(`{apiVersion: apps.kruise.io/v1alpha1, kind: UnitedDeployment, metadata: {name: %[1]s}, spec: {replicas: %[2]d, selector: {matchLabels: {app: %[1]s}},
		topology: {%[3]s subsets: [%[4]s]}, template: {%[5]s}}}`, name, replicas, strategy, strings.Join(subsets, ", "), template)
}

var _ = Describe("a UnitedDeployment", func() {
	manifest := func(name string, replicas int, image, strategy string, zones []string, subset string) string {
		template := fmt.Sprintf(`cloneSetTemplate: {metadata: {labels: {app: %[1]s}}, spec: {selector: {matchLabels: {app: %[1]s}}, updateStrategy: {rollingUpdate: {podUpdatePolicy: InPlaceIfPossible}}, template: %[2]s}}`,
			name, podTemplate(name, image, ""))
		return unitedDeployment(name, replicas, template, strategy, subsetsIn("topology.kubernetes.io/zone", zones, subset)...)
	}
	It("runs a workload in each zone, and updates one after the other", Label("smoke"), func(ctx SpecContext) {
		u := newUser(ctx)
		zones, nodes := zones(u)
		u.apply(manifest("web", 5, "nginx:1.20", "", zones, ", replicas: 40%"))
		Eventually(func() string { return u.kubectl("get", "ud", "web") }).Should(
			MatchRegexp(`^NAME +DESIRED +CURRENT +UPDATED +READY +AGE\nweb +5 +5 +5 +5 +\S+`))
		Expect(placed(u, "web", nodes)).To(Equal(map[string]int{zones[0]: 2, zones[1]: 3}))
		Expect(u.kubectl("get", "clonesets", "-l", "apps.kruise.io/subset-name=subset-a", "-o", "jsonpath={.items[*].spec.replicas}")).To(Equal("2"))
		Eventually(u.events).WithArguments("web", "SuccessfulUpdateSubset").Should(ConsistOf("Create 2 Subset (subset-a, subset-b)"))

		u.kubectl("scale", "ud", "web", "--replicas=10")
		Eventually(func() map[string]int { return placed(u, "web", nodes) }).Should(Equal(map[string]int{zones[0]: 4, zones[1]: 6}))
		why := u.why("ud/web")
		Expect(why).To(ContainSubstring("UnitedDeployment %s/web is PLACED", u.namespace))
		Expect(why).To(MatchRegexp(`subset-a +4 +\d+ +placement.allocation.given +it is to have 4`))
		for name, pod := range u.pods("web") {
			if slices.Contains(nodes[zones[1]], pod.Spec.NodeName) {
				Eventually(func() string { return u.why("pod/" + name) }).Should(ContainSubstring("It is in subset subset-b of UnitedDeployment web"))
				break
			}
		}
		Eventually(func() string { return u.kubectl("get", "ud", "web", "--no-headers") }).Should(MatchRegexp(`^web +10 +10 +10 +10 `))

		u.kubectl("patch", "ud", "web", "--type=merge", "-p",
			`{"spec": {"updateStrategy": {"manualUpdate": {"partitions": {"subset-b": 6}}}, "template": {"cloneSetTemplate": {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:1.21"}]}}}}}}}`)
		Eventually(func() string { return u.kubectl("get", "ud", "web", "--no-headers") }).Should(MatchRegexp(`^web +10 +10 +4 +10 `))
		u.kubectl("patch", "ud", "web", "--type=merge", "-p", `{"spec": {"updateStrategy": {"manualUpdate": {"partitions": {"subset-b": 0}}}}}`)
		Eventually(func() string { return u.kubectl("get", "ud", "web", "--no-headers") }).Should(MatchRegexp(`^web +10 +10 +10 +10 `))
		Eventually(func() string {
			return u.kubectl("get", "ud", "web", "-o", `jsonpath={.status.conditions[?(@.type=="UnitedDeploymentUpdated")].status}`)
		}).Should(Equal("True"))
	}, SpecTimeout(8*time.Minute))

	It("names a zone that is misspelt, and the pods that wait for it", func(ctx SpecContext) {
		u := newUser(ctx)
		zones, nodes := zones(u)
		u.apply(manifest("typo", 2, "nginx:1.20", "", []string{zones[0], "no-such-zone"}, ""))
		Eventually(placing).WithArguments(u, "typo").Should(MatchRegexp(`^False NoNodes .*: subset-b\.$`))
		Eventually(func() map[string]int { return placed(u, "typo", nodes) }).Should(Equal(map[string]int{zones[0]: 1}))
	}, SpecTimeout(5*time.Minute))

	It("moves pods out of a zone that is cordoned, once", Serial, func(ctx SpecContext) {
		u := newUser(ctx)
		zones, nodes := zones(u)
		line := watchTimeline(u, nodes, "get", "ud", "shop", "--ignore-not-found", "-o",
			`jsonpath={.status.readyReplicas} of {.spec.replicas} ready; {range .status.subsetStatuses[*]}{.name}={.replicas} {.conditions[0].status} {.conditions[0].reason}; {end}{.status.conditions[?(@.type=="Placing")].reason}`)
		adaptive := "scheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 5, unschedulableDuration: 20}},"
		u.apply(manifest("shop", 2, "nginx:1.20", adaptive, zones, ", maxReplicas: 4"))
		Eventually(func() map[string]int { return placed(u, "shop", nodes) }).Should(Equal(map[string]int{zones[0]: 2}))
		condition := func() string {
			return u.kubectl("get", "ud", "shop", "-o", `jsonpath={.status.subsetStatuses[0].conditions[0].status} {.status.subsetStatuses[0].conditions[0].reason}`)
		}

		uncordon := cordon(u, nodes[zones[0]])
		line.mark("zone " + zones[0] + " is cordoned, and two more pods are wanted")
		u.kubectl("scale", "ud", "shop", "--replicas=4")
		Eventually(func() map[string]int { return placed(u, "shop", nodes) }).Should(Equal(map[string]int{zones[0]: 2, zones[1]: 2}))
		Eventually(condition).Should(Equal("False reschedule"))
		// A round that begins before the manager sees its own status explains itself by what it saw.
		Eventually(u.why).WithArguments("ud/shop").Should(MatchRegexp(`subset-a +2 +2 +placement.allocation.unschedulable .*its pods find no node`))
		Eventually(placing).WithArguments(u, "shop").Should(MatchRegexp(`^False PodUnschedulable .*: subset-a`))

		uncordon()
		line.mark("the zone is back")
		Eventually(condition).Should(Equal("True recover"))
		Consistently(func() map[string]int { return placed(u, "shop", nodes) }, 3*time.Second).Should(Equal(map[string]int{zones[0]: 2, zones[1]: 2}))
		Eventually(placing).WithArguments(u, "shop").Should(HavePrefix("True Placing"))
		line.mark("two more pods are wanted")
		u.kubectl("scale", "ud", "shop", "--replicas=6")
		Eventually(func() map[string]int { return placed(u, "shop", nodes) }).Should(Equal(map[string]int{zones[0]: 4, zones[1]: 2}))
		line.end()
	}, SpecTimeout(8*time.Minute))

	It("has others stand in for the pods of a zone with a taint, and goes back when it has room", Serial, func(ctx SpecContext) {
		u := newUser(ctx)
		zones, nodes := zones(u)
		line := watchTimeline(u, nodes, "get", "ud", "shop", "--ignore-not-found", "-o",
			`jsonpath={.status.readyReplicas} of {.spec.replicas} ready, {.status.reservedPods} wait; {range .status.subsetStatuses[*]}{.name}={.replicas} {.conditions[0].status} {.conditions[0].reason}; {end}`)
		reserve := "scheduleStrategy: {type: Adaptive, adaptive: {rescheduleCriticalSeconds: 5, unschedulableDuration: 10, reserveUnschedulablePods: true}},"
		u.apply(manifest("shop", 2, "nginx:1.20", reserve, zones, ""))
		Eventually(func() map[string]int { return placed(u, "shop", nodes) }).Should(Equal(map[string]int{zones[0]: 2}))

		untaint := taint(u, nodes[zones[0]])
		line.mark("zone " + zones[0] + " has a taint, and two more pods are wanted")
		u.kubectl("scale", "ud", "shop", "--replicas=4")
		Eventually(func() map[string]int { return placed(u, "shop", nodes) }).Should(Equal(map[string]int{zones[0]: 2, zones[1]: 2}))
		status := func() string {
			return u.kubectl("get", "ud", "shop", "-o", `jsonpath={.status.replicas} {.status.readyReplicas} {.status.reservedPods} {.status.subsetStatuses[0].conditions[0].status}`)
		}
		Eventually(status).Should(Equal("4 4 2 False"))
		Expect(u.pods("shop")).To(HaveLen(6), "the two that wait are there still")
		for name, pod := range u.pods("shop") {
			waits := pod.Labels["apps.kruise.io/united-deployment-reserved-pod"] == "true"
			Expect(waits).To(Equal(pod.Spec.NodeName == ""), name)
		}
		Consistently(status, 3*time.Second).Should(Equal("4 4 2 False"))

		untaint()
		line.mark("the taint is gone")
		Eventually(func() map[string]int { return placed(u, "shop", nodes) }).Should(Equal(map[string]int{zones[0]: 4, zones[1]: 2}), "those that waited run")
		Eventually(func() map[string]int { return placed(u, "shop", nodes) }).Should(Equal(map[string]int{zones[0]: 4}), "those that stood in go, once the others have run for a while")
		Eventually(status).Should(MatchRegexp("^4 4 0? True$"))
		line.end()
	}, SpecTimeout(8*time.Minute))
})
