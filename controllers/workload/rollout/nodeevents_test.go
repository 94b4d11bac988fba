// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/disruption"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/fakeclient"
	"github.com/regatta-sh/regatta/test/rules"
)

// cordoned holds pods on cordoned nodes, and is silent about a node that is not known.
const cordoned = `package extend.rollout.x

hold contains {"rule": "x", "reason": "NodeCordoned", "message": "The node is cordoned.", "pod": pod.name} if {
	some pod in input.pods
	pod.onNode.unschedulable
}
`

// A pod whose node is not known is held while a rule of users looks at single pods, since the rule could hold it by what the
// node is. The other pods of the workload go on.
func TestAPodWhoseNodeIsUnknownIsHeld(t *testing.T) {
	held := func(e string, change func(*Round)) (out []string) {
		t.Helper()
		engine := rules.Engine(t, e)
		r, f := testRound(engine, 4, 0, func(f *Facts, _ []*corev1.Pod) { f.Strategy.MaxUnavailable = 4 })
		change(r)
		f = r.completeFacts(f, podsOf(f))
		d, err := r.decideMoves(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range newRound(engine, f, Result{Decisions: d, Outcome: (&keptPods{}).buildOutcome(d)}, r.journal).ExplainWorkload().Why {
			if p.Verdict == explain.Held {
				out = append(out, p.Reason)
			}
		}
		return out
	}
	cordon := func(r *Round) {
		r.c.topology.ObserveNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-b"}, Spec: corev1.NodeSpec{Unschedulable: true}})
	}
	forget := func(r *Round) { r.c.topology.ForgetNode("node-b") }
	for _, tc := range []struct {
		name, rule string
		change     func(*Round)
		want       []string
	}{
		{"a rule, and all nodes are known", cordoned, func(*Round) {}, nil},
		{"a rule, and a node is cordoned", cordoned, cordon, []string{"NodeCordoned"}},
		{"a rule, and a node is not known", cordoned, forget, []string{facts.NodeUnknownReason}},
		{"a rule about the whole workload, and a node is not known", "package extend.rollout.x\n\nhold contains {\"reason\": \"R\", \"message\": \"M.\"} if input.workload.name == \"other\"\n", forget, []string{facts.NodeUnknownReason}},
		{"a rule that orders all candidates, and a node is not known", "package override.rollout\n\nrows := {\"order\": [pod.name | some pod in input.rows]}\n", forget, []string{facts.NodeUnknownReason}},
		{"no rule, and a node is not known", "", forget, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := held(tc.rule, tc.change); !slices.Equal(got, tc.want) {
				t.Errorf("pods are held by %v, want %v", got, tc.want)
			}
		})
	}
}

// A pod whose node is not known counts as held for surge, which replaces the other pods, and new pods get the revision that they would
// have anyway. A pod that is to be created on such a node gets the current revision.
func TestSurgeGoesOnBesidePodsWhoseNodesAreUnknown(t *testing.T) {
	r, f := testRound(rules.Engine(t, cordoned), 4, 0, func(f *Facts, _ []*corev1.Pod) { f.Strategy.MaxUnavailable = 4 })
	r.c.topology.ForgetNode("node-b")
	f = r.completeFacts(f, podsOf(f))
	missing := func(node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-on-" + node}, Spec: corev1.PodSpec{NodeName: node}}
	}
	got := r.UpdateHold(t.Context(), f, 2, true, missing("node-a"), missing("node-b"), missing(""))
	if got.Whole || got.Current || got.Movable != 2 || got.Held != 2 || !slices.Equal(got.Missing, []bool{false, true, false}) {
		t.Errorf("the holds of the update are %+v", got)
	}
}

// Pods that other controllers disrupt are held in the same way, and asked about again, since a change of their nodes may start no round.
func TestDisruptionsWaitForNodesThatAreUnknown(t *testing.T) {
	e := rules.Engine(t, cordoned)
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: node}}
	}
	pods := []*corev1.Pod{pod("web-0", "n0"), pod("web-1", "n1"), pod("web-2", "")}
	reader := fakeclient.NewClientBuilder(apiserver.Scheme(t)).WithObjects(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}).Build()
	topology, err := disruption.ReadNodes(t.Context(), reader, pods)
	if err != nil {
		t.Fatal(err)
	}
	got := disruption.EvaluatePods(t.Context(), e, disruption.Request{
		Subject: decision.Subject{Kind: "UnitedDeployment", Namespace: "shop", Name: "web", UID: "u"}, Workload: points.Workload{Kind: "UnitedDeployment", Namespace: "shop", Name: "web", UID: "u"},
		Strategy: points.Strategy{Type: "RollingUpdate", Policy: "ReCreate", MaxUnavailable: 3, ScaleMaxUnavailable: 3}, Pods: pods, Topology: topology,
	})
	if len(got.Allowed) != 2 || got.Held["web-1"].Reason != facts.NodeUnknownReason || got.Again <= 0 {
		t.Errorf("allowed are %d pods, web-1 is held by %q, and the answer is asked for again in %s", len(got.Allowed), got.Held["web-1"].Reason, got.Again)
	}
}

func podsOf(f *Facts) (out []*corev1.Pod) {
	for _, p := range f.Pods {
		out = append(out, p.Pod)
	}
	return out
}

// A change of a node enqueues the workloads that have pods there, if rules of users evaluate these one by one, and nothing else. The
// heartbeat of a node enqueues nothing.
func TestChangesOfANodeWakeWhatIsOnIt(t *testing.T) {
	const inShop = `package extend.rollout.x

rank := {pod.name: 1 | some pod in input.pods; input.workload.namespace == "shop"; pod.onNode.created > 0}
`
	node := func(edit func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		if edit != nil {
			edit(n)
		}
		return n
	}
	cordon := node(func(n *corev1.Node) { n.Spec.Unschedulable = true })
	notReady := node(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
	heartbeat := node(func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() })
	update := func(to *corev1.Node) func(t *testing.T, c *Controller, q *countingQueue) {
		return func(t *testing.T, c *Controller, q *countingQueue) {
			c.NodeEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: node(nil), ObjectNew: to}, q)
		}
	}
	for _, tc := range []struct {
		name, rule string
		noIndex    bool
		event      func(t *testing.T, c *Controller, q *countingQueue)
		want       string
	}{
		{"a cordon", inShop, false, update(cordon), "shop/web"},
		{"another condition", inShop, false, update(notReady), "shop/web"},
		{"a heartbeat", inShop, false, update(heartbeat), ""},
		{"a label, which is no fact of this kind", inShop, false, update(node(func(n *corev1.Node) { n.Labels = map[string]string{"pool": "edge"} })), ""},
		{"a cordon, and a rule that chooses what a scale-in deletes", "package override.rollout\n\nscale := {\"keys\": []}\n", false, update(cordon), "shop/web"},
		{"a cordon, and no rule of users", "", false, update(cordon), ""},
		{"a node that is gone", inShop, false, func(t *testing.T, c *Controller, q *countingQueue) {
			c.NodeEvents().Delete(t.Context(), event.DeleteEvent{Object: node(nil)}, q)
		}, "shop/web"},
		{"a node that comes after its pod", inShop, false, func(t *testing.T, c *Controller, q *countingQueue) {
			c.topology.ForgetNode("n1")
			c.NodeEvents().Create(t.Context(), event.CreateEvent{Object: node(nil)}, q)
		}, "shop/web"},
		{"a node of the first list, after which all workloads are enqueued", inShop, false, func(t *testing.T, c *Controller, q *countingQueue) {
			c.topology.ForgetNode("n1")
			c.NodeEvents().Create(t.Context(), event.CreateEvent{Object: node(nil), IsInInitialList: true}, q)
		}, ""},
		{"a cordon, and the pods of the node cannot be listed", inShop, true, update(cordon), "bank/idle shop/elsewhere shop/web"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := fakeclient.NewClientBuilder(apiserver.Scheme(t))
			if !tc.noIndex {
				b = b.WithIndex(&corev1.Pod{}, nodes.Index, nodes.IndexValue)
			}
			for name, on := range map[string]string{"shop/web": "n1", "shop/elsewhere": "n2", "bank/idle": ""} {
				namespace, name, _ := strings.Cut(name, "/")
				set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u"}}
				b = b.WithObjects(set, &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-0", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, (&plainKind{}).WorkloadType().GroupVersionKind)}},
					Spec:       corev1.PodSpec{NodeName: on},
				})
			}
			c := New(&plainKind{}, reconcile.Deps{Client: b.Build(), Engine: rules.Engine(t, tc.rule)})
			c.NodeEvents().Create(t.Context(), event.CreateEvent{Object: node(nil), IsInInitialList: true}, &countingQueue{})
			q := &countingQueue{}
			tc.event(t, c, q)
			var got []string
			for _, r := range q.added {
				got = append(got, r.String())
			}
			slices.Sort(got)
			if strings.Join(got, " ") != tc.want {
				t.Errorf("enqueued are %v, want %q", got, tc.want)
			}
		})
	}
}

// A node that is deleted and made again under its name, while the watch was away, is another node.
func TestANodeThatIsMadeAgainWakesDaemonSets(t *testing.T) {
	kind := &nodeKind{nodes: []string{"n1"}, of: func(p *corev1.Pod) string { return p.Spec.NodeName }}
	k := newKindCluster(t, kind, nil, logSet())
	node := func(created int64) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", CreationTimestamp: metav1.NewTime(time.Unix(created, 0))}}
	}
	q := &countingQueue{}
	k.c.NodeEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: node(4), ObjectNew: node(5)}, q)
	k.c.NodeEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: node(5), ObjectNew: node(5)}, q)
	if len(q.added) != 1 {
		t.Errorf("enqueued are %v, want the DaemonSet once", q.added)
	}
}
