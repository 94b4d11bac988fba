// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/engine"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

const (
	// critical and duration are those of the schedules that are drawn.
	critical, duration = 5 * time.Second, 25 * time.Second
)

// zone is a subset as it goes on between rounds, with the pods that its workload has.
type zone struct {
	kruise.Subset
	replicas  int32
	room      int
	pods      []*corev1.Pod
	condition *kruise.UnitedDeploymentSubsetCondition
	// turns are the ways that the replicas went since the schedule began.
	turns []string
}

// schedule is a UnitedDeployment on zones that have room for so many pods.
type schedule struct {
	r     *Reconciler
	d     *kruise.UnitedDeployment
	zones []*zone
	now   time.Time
	pods  int
	// last is what the round before saw and decided.
	last string
}

// amount draws a number up to the replicas, as a number or as a percentage.
func amount(t *rapid.T, label string, replicas int32) *intstr.IntOrString {
	if rapid.Bool().Draw(t, label+" is a percentage") {
		return ptr.To(intstr.FromString(fmt.Sprintf("%d%%", rapid.IntRange(0, 100).Draw(t, label))))
	}
	return ptr.To(intstr.FromInt(rapid.IntRange(0, int(replicas)).Draw(t, label)))
}

func drawSchedule(t *rapid.T, e *engine.Engine) *schedule {
	s := &schedule{r: New(reconcile.Deps{Engine: e}), now: time.Unix(1_700_000_000, 0)}
	s.d = &kruise.UnitedDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "ud"}}
	limits(s.d, &kruise.AdaptiveUnitedDeploymentStrategy{
		RescheduleCriticalSeconds: ptr.To(int32(critical / time.Second)), UnschedulableDuration: ptr.To(int32(duration / time.Second)),
	})
	s.d.Spec.Template.CloneSetTemplate = &kruise.CloneSetTemplateSpec{}
	replicas := rapid.Int32Range(1, 20).Draw(t, "replicas")
	s.d.Spec.Replicas = &replicas
	n := rapid.IntRange(2, 4).Draw(t, "subsets")
	open, least := rapid.IntRange(0, n-1).Draw(t, "the open one"), replicas
	for i := range n {
		z := &zone{Subset: kruise.Subset{Name: string(rune('a' + i))}}
		if i != open {
			z.MaxReplicas = amount(t, "max of "+z.Name, replicas)
			most, _ := budget.ResolveRounded(*z.MaxReplicas, &replicas)
			z.MinReplicas = ptr.To(intstr.FromInt(rapid.IntRange(0, min(most, int(least))).Draw(t, "min of "+z.Name)))
			least -= z.MinReplicas.IntVal
		}
		s.zones = append(s.zones, z)
	}
	s.rooms(t)
	return s
}

// rooms give zones other room, and begin another schedule.
func (s *schedule) rooms(t *rapid.T) {
	for _, z := range s.zones {
		z.room = rapid.SampledFrom([]int{0, 1, 2, 5, 100}).Draw(t, "room of "+z.Name)
		z.turns = nil
		t.Logf("%s now has room for %d", z.Name, z.room)
	}
}

// round is one of the controller, on what it sees now.
func (s *schedule) round(t *rapid.T) {
	s.d.Spec.Topology.Subsets = nil
	for _, z := range s.zones {
		s.d.Spec.Topology.Subsets = append(s.d.Spec.Topology.Subsets, z.Subset)
	}
	k, _ := kindOf(&s.d.Spec.Template)
	r := &reconcileRound{r: s.r, d: s.d, now: s.now, kind: k, strategy: strategyOf(&s.d.Spec)}
	for _, z := range s.zones {
		p := &subsetState{Subset: &z.Subset, condition: z.condition, pods: z.pods, child: &child{Object: client.Object(&kruise.CloneSet{}), kind: k, replicas: z.replicas}}
		p.marked = p.condition != nil && p.condition.Status == corev1.ConditionFalse
		for _, pod := range z.pods {
			if pod.Spec.NodeName != "" {
				p.placed++
			}
			if isReady(pod) {
				p.child.ready++
			}
		}
		r.parts = append(r.parts, p)
	}
	if err := r.findUnschedulable(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := r.decideAllocation(t.Context())
	if a.held != nil {
		t.Fatalf("held: %+v", a.held)
	}
	counts := make([]int32, len(r.parts))
	for i, p := range r.parts {
		counts[i] = p.replicas
	}
	s.stays(t, a, counts)
	sum := int32(0)
	for i, p := range r.parts {
		in := a.in.Subsets[i]
		if sum += counts[i]; in.Max != nil && int(counts[i]) > *in.Max || int(counts[i]) < in.Min {
			t.Fatalf("%s has %d, of %d to %v", in.Name, counts[i], in.Min, in.Max)
		}
		s.zones[i].condition = p.condition
		s.zones[i].turn(t, counts[i])
	}
	text := ""
	for i, z := range s.zones {
		text += fmt.Sprintf(" %s=%d/%d", z.Name, counts[i], r.parts[i].placed)
		if r.parts[i].unschedulable {
			text += " unschedulable"
		}
	}
	if text != s.last {
		t.Logf("%s%s", s.now.Sub(time.Unix(1_700_000_000, 0)), text)
		s.last = text
	}
	if sum != *s.d.Spec.Replicas {
		t.Fatalf("the sum of %v is %d, want %d", counts, sum, *s.d.Spec.Replicas)
	}
}

// stays fails where a pod that its workload keeps is taken from where it runs, or from where it may find a node still,
// though the replicas last for all of these: it would go back once another zone is full.
func (s *schedule) stays(t *rapid.T, a allocated, counts []int32) {
	run, wait := make([]int, len(counts)), make([]int, len(counts))
	running, waiting := 0, 0
	for i, in := range a.in.Subsets {
		most := int(*s.d.Spec.Replicas)
		if in.Max != nil {
			most = min(most, *in.Max)
		}
		run[i] = max(in.Min, min(in.Placed, in.Current, most))
		if wait[i] = run[i]; !in.Unschedulable {
			wait[i] = max(run[i], min(in.Current, most))
		}
		running, waiting = running+run[i], waiting+wait[i]
	}
	for i, in := range a.in.Subsets {
		if n := int(counts[i]); running <= int(*s.d.Spec.Replicas) && n < run[i] || waiting <= int(*s.d.Spec.Replicas) && n < wait[i] {
			t.Fatalf("subset %s, with %d pods of which %d have a node, unschedulable %t, gets %d", in.Name, in.Current, in.Placed, in.Unschedulable, n)
		}
	}
}

// turn fails where the replicas of a zone go up, down and up again.
func (z *zone) turn(t *rapid.T, to int32) {
	way := "up"
	if to < z.replicas {
		way = "down"
	}
	if to != z.replicas && (len(z.turns) == 0 || z.turns[len(z.turns)-1] != way) {
		z.turns = append(z.turns, way)
	}
	if z.replicas = to; len(z.turns) >= 3 && slices.Equal(z.turns[len(z.turns)-3:], []string{"up", "down", "up"}) {
		t.Fatalf("subset %s, with room for %d, went %v, and has %d now", z.Name, z.room, z.turns, to)
	}
}

// scale is what the workload of a zone does: it makes or takes some of the pods that are too
// few or too many, those that wait first.
func (s *schedule) scale(z *zone, most int) {
	slices.SortStableFunc(z.pods, func(a, b *corev1.Pod) int { return len(a.Spec.NodeName) - len(b.Spec.NodeName) })
	for ; most > 0 && len(z.pods) > int(z.replicas); most-- {
		z.pods = z.pods[1:]
	}
	for ; most > 0 && len(z.pods) < int(z.replicas); most-- {
		s.pods++
		z.pods = append(z.pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", z.Name, s.pods), CreationTimestamp: metav1.NewTime(s.now)}, Status: corev1.PodStatus{Phase: corev1.PodPending}})
	}
}

// bind is what the scheduler does, as far as there is room.
func (z *zone) bind(now time.Time, isReady bool) {
	room := z.room
	for _, pod := range z.pods {
		if pod.Spec.NodeName != "" {
			room--
		}
	}
	for _, pod := range z.pods {
		switch {
		case pod.Spec.NodeName != "" && isReady:
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)}}
		case pod.Spec.NodeName != "": // it crashes for a moment
			pod.Status.Conditions = nil
		case room > 0:
			room--
			pod.Spec.NodeName = "node-" + z.Name
		default:
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
		}
	}
}

// Over random limits, percentages, rooms, crashes and orders of events: the sum is that of the
// replicas, each subset is within its numbers, none loses a pod for nothing, and none goes up,
// down and up again within one schedule, which is the time that one without room gets no pods.
func TestAdaptiveSchedules(t *testing.T) {
	e := newEngine(t)
	rapid.Check(t, func(t *rapid.T) {
		s := drawSchedule(t, e)
		s.round(t)
		for range rapid.IntRange(1, 3).Draw(t, "schedules") {
			for end := s.now.Add(duration - time.Second); s.now.Before(end); {
				z := s.zones[rapid.IntRange(0, len(s.zones)-1).Draw(t, "zone")]
				switch rapid.IntRange(0, 5).Draw(t, "event") {
				case 0:
					s.scale(z, rapid.IntRange(1, 20).Draw(t, "pods"))
				case 1:
					z.bind(s.now, true)
				case 2:
					z.bind(s.now, false)
				default:
					s.now = s.now.Add(time.Duration(rapid.IntRange(1, 6000).Draw(t, "ms")) * time.Millisecond)
				}
				s.round(t)
			}
			s.rooms(t)
		}
	})
}
