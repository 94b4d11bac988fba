// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/regatta-sh/regatta/controllers/explain"
	"github.com/regatta-sh/regatta/controllers/explain/whatif"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/bundle"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
	"github.com/regatta-sh/regatta/test/rules"
)

const zonesAndGold = `package extend.rollout.demo

# METADATA
# title: Zone a first
# labels:
#   id: demo.zone
hold contains {"rule": "demo.zone", "reason": "OtherZoneFirst", "message": "Zone a goes first.", "where": {"zone": zone}} if {
	input.groups.zone.a.updated < input.groups.zone.a.total
	some zone, _ in input.groups.zone
	zone != "a"
}

# METADATA
# title: Gold stays
# labels:
#   id: demo.gold
hold contains {"rule": "demo.gold", "reason": "Gold", "message": sprintf("%s is gold.", [pod.name]), "pod": pod.name} if {
	input.workload.labels.gold == "stays"
	some pod in input.pods
	pod.labels.tier == "gold"
}
`

// testRound is a round of a workload whose pods are web-0 and on, in zones a, b, a, b and
// on; the first few of them are updated.
func testRound(e *engine.Engine, pods, updated int, change func(*Facts, []*corev1.Pod)) (*Round, *Facts) {
	now := time.Unix(1000000, 0)
	topology := facts.NewTopology()
	for _, z := range []string{"a", "b"} {
		topology.ObserveNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + z, Labels: map[string]string{corev1.LabelTopologyZone: z}}})
	}
	kind := &plainKind{}
	c := New(kind, reconcile.Deps{Engine: e})
	c.topology = topology
	workload := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "u", Labels: map[string]string{"gold": "stays"}}}
	subject := decision.Subject{Kind: "CloneSet", Namespace: "shop", Name: "web", UID: "u"}
	f := &Facts{
		Spec:     Spec{Replicas: pods, Strategy: points.Strategy{Type: "RollingUpdate", Policy: "ReCreate", MaxUnavailable: 1}},
		Workload: workload, Now: now, Policies: e.ActiveSnapshot().RevisionFor(subject), kind: kind,
		Subject:   subject,
		Templates: &PodTemplates{History: revision.History{Current: revisionOf("web-old"), Update: revisionOf("web-new")}},
	}
	var raw []*corev1.Pod
	for i := range pods {
		rev := "web-old"
		if i < updated {
			rev = "web-new"
		}
		raw = append(raw, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%d", i), UID: types.UID(fmt.Sprint("u", i)), Labels: map[string]string{RevisionLabel: rev}},
			Spec:       corev1.PodSpec{NodeName: "node-" + string(rune('a'+i%2))},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
				Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
			}}},
		})
	}
	if change != nil {
		change(f, raw)
	}
	r := &Round{c: c, Workload: workload, Now: now, memory: c.memoryOf(workload)}
	return r, r.completeFacts(f, raw)
}

func revisionOf(name string) *appsv1.ControllerRevision {
	return &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// decided makes the decisions of a round, and explains them, as if each pod that was
// taken had been moved.
func decided(t *testing.T, e *engine.Engine, r *Round, f *Facts) *explanation {
	t.Helper()
	d, err := r.decideMoves(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return newRound(e, f, Result{Decisions: d, Outcome: (&keptPods{}).buildOutcome(d)}, r.journal)
}

func TestARoundExplainsItself(t *testing.T) {
	e := rules.Engine(t, "")
	b, err := bundle.FromFiles("demo", map[string]string{"demo.rego": zonesAndGold})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name          string
		pods, updated int
		change        func(*Facts, []*corev1.Pod)
		workload      explain.Verdict
		reason        string
		progress      string // outdated and moved pods, and whether it is complete
		why           []string
		pod           string // the one to look at, and what is said of it
		verdict       string
		place         string
		looked        []explain.Fact
	}{
		{
			name: "a pod of another zone is held by the zone's rule, with what the rule looks at", pods: 6,
			progress: "6 1 false", workload: explain.Updating, reason: "RolloutInProgress",
			why: []string{"3 Held OtherZoneFirst demo.zone", "2 Waiting MaxUnavailableReached walk", "1 Moved Selected "},
			pod: "web-1", verdict: "Held OtherZoneFirst Zone a first", place: "demo.rego:3:1",
			looked: []explain.Fact{{Name: "groups.zone.a", Value: `{"total":3,"unavailable":0,"updated":0}`}},
		},
		{
			name: "the answer about a single held pod has the place of its rule", pods: 2, updated: 1,
			change:   func(f *Facts, pods []*corev1.Pod) { pods[1].Labels["tier"] = "gold"; pods[1].Spec.NodeName = "node-a" },
			progress: "1 0 false", workload: explain.Held, reason: "Gold", why: []string{"1 Held Gold demo.gold"},
			pod: "web-1", verdict: "Held Gold Gold stays", place: "demo.rego:13:1",
			looked: []explain.Fact{{Name: "pod.labels.tier", Value: "gold"}, {Name: "workload.labels.gold", Value: "stays"}},
		},
		{
			name: "a paused strategy holds the whole workload", pods: 2, change: func(f *Facts, pods []*corev1.Pod) { f.Strategy.Paused = true },
			progress: "2 0 false", workload: explain.Held, reason: "RolloutPaused", why: []string{"2 Held RolloutPaused rollout.plan.paused"},
			pod: "web-0", verdict: "Held RolloutPaused Paused", looked: []explain.Fact{{Name: "strategy.paused", Value: "true"}},
		},
		{
			name: "a partition that is reached leaves the rest waiting", pods: 2, updated: 1, change: func(f *Facts, pods []*corev1.Pod) { f.Strategy.Partition = 1 },
			progress: "0 0 true", workload: explain.UpToDate, reason: "RolloutComplete", why: []string{"1 Waiting PartitionReached "},
			pod: "web-1", verdict: "Waiting PartitionReached ",
		},
		{
			name: "an updated pod that is not ready is updating", pods: 2, updated: 2,
			change:   func(f *Facts, pods []*corev1.Pod) { pods[0].Status.Conditions[0].Status = corev1.ConditionFalse },
			progress: "0 0 false", workload: explain.Updating, reason: "RolloutInProgress", why: []string{"1 Updating NotAvailable "},
			pod: "web-0", verdict: "Updating NotAvailable ",
		},
		{
			name: "all is done", pods: 2, updated: 2,
			progress: "0 0 true", workload: explain.UpToDate, reason: "RolloutComplete", pod: "web-0", verdict: "UpToDate Updated ",
		},
		{
			name: "pods that are missing are not done", pods: 2, updated: 2, change: func(f *Facts, pods []*corev1.Pod) { f.Replicas = 3 },
			progress: "0 0 false", workload: explain.Updating, reason: "RolloutInProgress", pod: "web-0", verdict: "UpToDate Updated ",
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			round, f := testRound(e, tc.pods, tc.updated, tc.change)
			r := decided(t, e, round, f)
			a := r.ExplainWorkload()
			if a.Verdict != tc.workload || a.Reason != tc.reason {
				t.Errorf("the workload is %s (%s): %s", a.Verdict, a.Reason, a.Message)
			}
			if p := r.MeasureProgress(); fmt.Sprint(p.Outdated, p.Moved, p.Complete) != tc.progress || p.Revision != "web-new" || !p.At.Equal(round.Now) {
				t.Errorf("the progress is %+v, want %s", p, tc.progress)
			}
			verdicts, reasons := r.TallyPods()
			if diff := cmp.Diff([]any{a.Pods, a.Why}, []any{verdicts, reasons}); diff != "" {
				t.Errorf("metrics have other counts (-explained +metrics)\n%s", diff)
			}
			var why []string
			for _, y := range a.Why {
				why = append(why, fmt.Sprintf("%d %s %s %s", y.Pods, y.Verdict, y.Reason, y.Rule))
			}
			if diff := cmp.Diff(tc.why, why); diff != "" {
				t.Errorf("the pods are tallied (-want +got)\n%s", diff)
			}
			p, ok := r.ExplainPod("shop", tc.pod)
			if got := fmt.Sprintf("%s %s %s", p.Verdict, p.Reason, p.Title); !ok || got != tc.verdict {
				t.Errorf("%s is %q: %s", tc.pod, got, p.Message)
			}
			if p.Place != tc.place && tc.place != "" {
				t.Errorf("the rule is at %s", p.Place)
			}
			for _, f := range tc.looked {
				if !slices.Contains(p.Facts, f) {
					t.Errorf("there is no %v among %v", f, p.Facts)
				}
			}
			for _, brief := range r.ExplainPods() {
				if len(brief.Facts) > 0 {
					t.Errorf("the list has the facts of %s", brief.Subject.Name)
				}
			}
		})
	}
}

func TestARuleThatChangedSinceIsNotPlaced(t *testing.T) {
	e := rules.Engine(t, "")
	r, f := testRound(e, 2, 0, func(f *Facts, _ []*corev1.Pod) {
		f.Strategy.Paused = true
		f.Policies = "an earlier one"
	})
	if a := decided(t, e, r, f).ExplainWorkload(); a.Verdict != explain.Held || a.Rule == "" || a.Place != "" || a.Title != "" {
		t.Errorf("got %+v", a)
	}
}

// The policies of one namespace decide nothing in another.
func TestARuleIsPlacedWhenAnotherNamespaceChangesItsPolicies(t *testing.T) {
	e := rules.Engine(t, "")
	r, f := testRound(e, 2, 0, func(f *Facts, _ []*corev1.Pod) { f.Strategy.Paused = true })
	told := decided(t, e, r, f)
	bank, err := bundle.FromFiles("bank", map[string]string{"x.rego": nearby}, bundle.AsTenant("bank"))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{bank}); err != nil {
		t.Fatal(err)
	}
	if a := told.ExplainWorkload(); a.Verdict != explain.Held || a.Rule == "" || a.Place == "" || a.Title == "" {
		t.Errorf("got %+v", a)
	}
}

// nearby holds zone b while there are pods to move, and one pod by its name.
const nearby = `package extend.rollout.near

# METADATA
# labels:
#   id: near.many
hold contains {"rule": "near.many", "reason": "Many", "message": "m", "where": {"zone": "b"}} if input.update > 1

# METADATA
# labels:
#   id: near.pod
hold contains {"rule": "near.pod", "reason": "Pod", "message": "m", "pod": pod.name} if {
	some pod in input.pods
	pod.name == "web-0"
}
`

func TestWhatIsNearestToAnotherAnswer(t *testing.T) {
	e := rules.Engine(t, "")
	b, err := bundle.FromFiles("near", map[string]string{"p.rego": nearby})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ActivateBundles(t.Context(), bundle.Set{b}); err != nil {
		t.Fatal(err)
	}
	round, f := testRound(e, 3, 0, nil)
	r := decided(t, e, round, f)
	zero, _ := r.ExplainPod("shop", "web-0")
	for name, tc := range map[string]struct {
		a    explain.Answer
		want string
	}{
		"the workload is held by the rule of the plan":      {r.ExplainWorkload(), "near.many: input.update is 3, and this ends when it is at most 1"},
		"a pod by that which named it, on facts of its own": {zero, `near.pod: pod.name is "web-0", and this ends when it is other than "web-0"`},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.a.Near == nil {
				t.Fatalf("it is %s, and there is nothing to ask", tc.a.Verdict)
			}
			n := tc.a.Near(t.Context())
			if n == nil || len(n.Now) != 1 || n.Now[0].Rule+": "+n.Now[0].Conditions[0].Why != tc.want {
				t.Errorf("got %+v", n)
			}
		})
	}
	round, done := testRound(e, 2, 2, nil)
	ended := decided(t, e, round, done).ExplainWorkload()
	if ended.Near != nil {
		t.Errorf("of a workload that is %s something is near", ended.Verdict)
	}
	one, _ := r.ExplainPod("shop", "web-1")
	two, _ := r.ExplainPod("shop", "web-2")
	for name, tc := range map[string]struct {
		a      explain.Answer
		change string
		want   string
	}{
		"the plan of the workload":                        {r.ExplainWorkload(), "update=1", "rollout/plan true Partly Go"},
		"a pod that the plan holds":                       {one, "update=1", "rollout/plan true Partly Go"},
		"a pod that the plan does not hold":               {two, "update=2", "rollout/plan true Go Go"},
		"a pod that a rule names":                         {zero, "pods[0].name=other", "rollout/rank true Partly Order"},
		"a pod that no rule names":                        {one, "pods[0].name=web-0", "rollout/rank true Order Partly"},
		"a workload of which nothing was to be decided":   {ended, "update=2", "rollout/plan true Go Partly"},
		"a fact of both decisions, which changes neither": {zero, "workload.labels.a=b", "rollout/plan false Go Go; rollout/rank false Partly Partly"},
	} {
		t.Run(name, func(t *testing.T) {
			changes, err := whatif.ParseChanges([]string{tc.change})
			if err != nil {
				t.Fatal(err)
			}
			result := tc.a.Basis.DecideAgain(t.Context(), changes)
			var got []string
			for _, d := range result.Decisions {
				got = append(got, fmt.Sprint(d.Point, " ", d.Changed, " ", d.Was, " ", d.Is))
			}
			if text := strings.Join(got, "; "); text != tc.want {
				t.Errorf("got %s, want %s; %+v", text, tc.want, result)
			}
		})
	}
}
