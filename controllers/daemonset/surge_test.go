// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/simulation/lives"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/nodefit"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/test/rules"
)

// boundPods lets a DaemonSet have no more than so many pods. With a hold it says so.
func boundPods(most int, holds string) string {
	return fmt.Sprintf(`package override.rollout

import data.rollout

room := max([0, %d - input.counts.total])

scale := object.union(rollout.scale, {"create": min([rollout.scale.create, room]), "createCurrent": 0, "holds": [h | some h in holding]})

holding contains {"rule": "bound", "reason": %q, "message": "there are enough pods"} if input.up > room

holding contains h if some h in rollout.scale.holds
`, most, holds)
}

// nodesOf are the nodes of the active pods of an image.
func (w *world) nodesOf(tag string) string {
	var out []string
	for _, p := range w.ListPods() {
		if p.DeletionTimestamp == nil && p.Spec.Containers[0].Image == "log:"+tag {
			out = append(out, nodefit.NodeOf(p))
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// drainEvents returns the events since the last call that begin with one of some texts.
func (w *world) drainEvents(texts ...string) (out []string) {
	for {
		select {
		case e := <-w.Events.Events:
			if slices.ContainsFunc(texts, func(text string) bool { return strings.HasPrefix(e, text) }) {
				out = append(out, e)
			}
		default:
			return out
		}
	}
}

// holdEvents are the events of holds since the last call.
func (w *world) holdEvents() string {
	return strings.Join(w.drainEvents("Warning ScaleHeld", "Warning UpdateHeld", "Normal UpdateHeld", "Normal NotHeld"), "; ")
}

func (w *world) updateHeld() string {
	c := rollout.FindCondition(w.set().Status.Conditions, kruise.UpdateHeld)
	if c == nil || c.Status != corev1.ConditionTrue {
		return ""
	}
	return c.Reason
}

// The room that rollout/scale gives goes to the first of the order, and pods that another policy holds take none of it.
func TestTheRoomOfASurgeGoesByTheOrder(t *testing.T) {
	const keepsN4 = `package extend.rollout.keeping

hold contains {"rule": "keeping", "reason": "Kept", "message": "n4 stays", "pod": pod.name} if {
	some pod in input.pods
	pod.node == "n4"
}
`
	for name, tc := range map[string]struct {
		rules []string
		want  string
	}{
		"the last names first":      {[]string{boundPods(6, "Enough")}, "n3 n4"},
		"one node of which is held": {[]string{boundPods(6, "Enough"), keepsN4}, "n2 n3"},
	} {
		t.Run(name, func(t *testing.T) {
			e := rules.Engine(t, tc.rules[0], tc.rules[1:]...)
			for range 20 { // moves run beside each other
				w := newWorld(t, e, standard, testSet(surge(4)), lives.NewNodes(4)...)
				w.settle()
				w.change(image("2"))
				w.Reconcile()
				w.Reconcile() // the cache shows none of the pods yet
				if got := w.nodesOf("2"); got != tc.want {
					t.Fatalf("%s have the next pod, want %s%s", got, tc.want, w.DescribeState())
				}
			}
		})
	}
}

// lateKind carries the first move out after the others.
type lateKind struct {
	*Kind
	first  string
	others chan struct{}
}

func (k *lateKind) RecreatePod(ctx context.Context, r *rollout.Round, f *rollout.Facts, p *facts.Pod) error {
	if nodefit.NodeOf(p.Pod) != k.first {
		defer func() { k.others <- struct{}{} }()
		return k.Kind.RecreatePod(ctx, r, f, p)
	}
	select {
	case <-k.others:
	case <-time.After(100 * time.Millisecond): // there is no other
	}
	return k.Kind.RecreatePod(ctx, r, f, p)
}

// Moves are under way beside each other: which of them comes first does not matter to which node has the room.
func TestTheRoomOfASurgeDoesNotGoByChance(t *testing.T) {
	kind := &lateKind{Kind: standard(), first: "n2", others: make(chan struct{}, 2)}
	w := &world{
		broken: map[string]bool{}, seen: map[string]string{}, images: map[string]string{},
		Harness: simulation.NewHarness(t, simulation.HarnessConfig{
			Workload: testSet(surge(2)), Nodes: lives.NewNodes(2), Kind: func() rollout.Kind { return kind }, Engine: rules.Engine(t, boundPods(3, "Enough")),
		}),
	}
	w.settle()
	w.Options = append(w.Options, rollout.WithParallelWrites(2), rollout.WithWindow(nil))
	w.RestartController()
	w.change(image("2"))
	w.Reconcile()
	if got := w.nodesOf("2"); got != "n2" {
		t.Errorf("%s has the next pod, want n2, which is the first%s", got, w.DescribeState())
	}
}

// A hold of the scaling holds surge, and the status tells it while it lasts. One event tells when it begins, one when it ends.
func TestAHoldOfASurgeIsToldOnce(t *testing.T) {
	e := rules.Engine(t, simulation.HoldRules, simulation.OverrideRules)
	for name, tc := range map[string]struct{ key, value, reason, event string }{
		"rollout/scale holds": {simulation.HoldScale, "All", "Scale", "Warning ScaleHeld Scale: scaling is held (rule drawn.scale)"},
		"rollout/scale fails": {
			simulation.HoldFailing, "Scale", "NoDecision",
			"Warning ScaleHeld NoDecision: The policy that replaces the built-in one did not answer, so no pod is created or deleted until it does. (rule engine)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, e, standard, testSet(surge(2)), lives.NewNodes(3)...)
			w.settle()
			w.hold(tc.key, tc.value)
			w.change(image("2"))
			w.holdEvents()
			w.settleWithin(time.Minute)
			if got := w.updateHeld(); got != tc.reason {
				t.Errorf("UpdateHeld has reason %q, want %q%s", got, tc.reason, w.DescribeState())
			}
			if got := w.holdEvents(); got != tc.event {
				t.Errorf("the events are %q, want %q", got, tc.event)
			}
			w.hold("x", "")
			w.settle()
			if got, want := w.holdEvents(), "Normal NotHeld No policy holds the scaling any more."; got != want || w.updateHeld() != "" {
				t.Errorf("when nothing is held the events are %q, want %q, and UpdateHeld has reason %q", got, want, w.updateHeld())
			}
			if got := w.set().Status.UpdatedNumberScheduled; got != 3 {
				t.Errorf("when nothing is held %d nodes are updated%s", got, w.DescribeState())
			}
		})
	}
}

// A bound of the pods that lets some of the surges be is told from the first round that meets it to the last, though rounds between them
// delete pods and ask about no surge. Where the policy says no reason the condition says one.
func TestABoundOfASurgeIsToldOnce(t *testing.T) {
	silent := strings.Replace(boundPods(4, ""), "holding contains {", "unused contains {", 1)
	for name, tc := range map[string]struct{ rules, reason, begins, ends string }{
		"with a reason": {boundPods(4, "Enough"), "Enough", "Warning ScaleHeld Enough: there are enough pods (rule bound)", "Normal NotHeld No policy holds the scaling any more."},
		"without a reason": {
			silent, rollout.SurgeLimitedReason,
			"Warning UpdateHeld SurgeLimited: The policy lets no more pods be created beside those that they replace; this one waits. (rule rollout/scale)",
			"Normal NotHeld No policy holds the update any more.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules.Engine(t, tc.rules), standard, testSet(surge(2)), lives.NewNodes(3)...)
			w.settle()
			w.did()
			w.change(image("2"))
			w.holdEvents()
			w.Reconcile()
			if got := w.updateHeld(); got != tc.reason {
				t.Errorf("UpdateHeld has reason %q, want %q%s", got, tc.reason, w.DescribeState())
			}
			w.settle()
			if got, want := w.did(), "+n3=2 -n3=1 +n2=2 -n2=1 +n1=2 -n1=1"; got != want {
				t.Errorf("it did %s, want %s%s", got, want, w.DescribeState())
			}
			if got, want := w.holdEvents(), tc.begins+"; "+tc.ends; got != want || w.updateHeld() != "" {
				t.Errorf("the events are %q, want %q; in the end UpdateHeld has reason %q", got, want, w.updateHeld())
			}
		})
	}
}

// A node without a pod comes before those that have one, also where it has to wait for another such node.
func TestNodesWithoutAPodComeBeforeASurge(t *testing.T) {
	w := newWorld(t, rules.Engine(t, boundPods(4, "Enough")), standard, testSet(surge(2), burstOf(1)), lives.NewNodes(4)...)
	w.settle()
	for _, p := range w.ListPods()[:2] {
		w.Delete(p)
	}
	w.change(image("2"))
	for range 2 {
		w.Reconcile()
		w.ShowAll(nil)
	}
	active := slices.DeleteFunc(w.ListPods(), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	nodes := map[string]bool{}
	for _, p := range active {
		nodes[nodefit.NodeOf(p)] = true
	}
	if len(nodes) != 4 || len(active) != 4 {
		t.Errorf("%d nodes have a pod, and there are %d pods, want 4%s", len(nodes), len(active), w.DescribeState())
	}
}

// The pod before stays beside the next one while deletions are held, however long that one is available, and an event says so.
func TestASurgeThatIsThereWaitsForAHoldOfDeletions(t *testing.T) {
	w := newWorld(t, rules.Engine(t, simulation.HoldRules, simulation.OverrideRules), standard, testSet(surge(1)), lives.NewNodes(2)...)
	w.settle()
	w.did()
	w.change(image("2"))
	w.Reconcile()
	w.hold(simulation.HoldScale, "All")
	w.holdEvents()
	w.settleWithin(time.Minute)
	if got, want := w.did(), "+n2=2"; got != want {
		t.Errorf("while deletions are held it did %s, want %s%s", got, want, w.DescribeState())
	}
	if got, want := w.holdEvents(), "Warning ScaleHeld Scale: scaling is held (rule drawn.scale)"; got != want {
		t.Errorf("the events are %q, want %q", got, want)
	}
	w.hold("x", "")
	w.settle()
	if got, want := w.did(), "-n2=1 +n1=2 -n1=1"; got != want {
		t.Errorf("when nothing is held it did %s, want %s%s", got, want, w.DescribeState())
	}
}

// A surge whose creation is refused is tried again, and takes no room from the nodes behind it while there is room for all.
func TestASurgeThatIsRefusedIsTriedAgain(t *testing.T) {
	refuse := true
	w := newWorld(t, rules.Engine(t, boundPods(5, "Enough")), standard, testSet(surge(1)), lives.NewNodes(3)...)
	w.settle()
	w.did()
	w.Deny = func(o client.Object, what string) error {
		if p, ok := o.(*corev1.Pod); ok && refuse && what == "create" && nodefit.NodeOf(p) == "n3" {
			return errors.New("no room")
		}
		return nil
	}
	w.change(image("2"))
	w.settleWithin(time.Minute)
	if got := w.did(); got != "" || w.updateHeld() != "" {
		t.Errorf("while the creation is refused it did %s, and UpdateHeld has reason %q%s", got, w.updateHeld(), w.DescribeState())
	}
	refuse = false
	w.settle()
	if got, want := w.did(), "+n3=2 -n3=1 +n2=2 -n2=1 +n1=2 -n1=1"; got != want {
		t.Errorf("it did %s, want %s%s", got, want, w.DescribeState())
	}
}
