// SPDX-License-Identifier: Apache-2.0

package sidecarset

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/test/proptest"
	"github.com/regatta-sh/regatta/test/rules"
)

// inOrder ranks pods by their label n.
const inOrder = `package extend.rollout.x

rank := {pod.namespacedName: to_number(pod.labels.n) | some pod in input.pods}
`

// ofWorkload makes a pod one of a workload.
func ofWorkload(p *corev1.Pod, name string) {
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
}

// The place of a pod that its budget or the API server refuses goes to the next pod of another workload, and so on.
func TestThePlaceOfARefusedPodGoesToAnotherWorkload(t *testing.T) {
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonForbidden, Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: "BudgetExceeded", Field: "protection.budget.exceeded", Message: "No more."}},
	}}}
	for name, tc := range map[string]struct {
		// refused are workloads whose budgets have no room, denied those whose pods the API server refuses to update, failing those
		// whose updates get no answer.
		refused, denied, failing string
		partition                int32
		want                     string
	}{
		"none is refused":                            {want: "web-0"},
		"the first is":                               {refused: "a", want: "web-2"},
		"the first is denied":                        {denied: "a", want: "web-2"},
		"the first two are":                          {refused: "ab", want: "web-4"},
		"one of each":                                {refused: "a", denied: "b", want: "web-4"},
		"all are":                                    {refused: "abc"},
		"a write that fails keeps its place":         {failing: "a"},
		"a write that fails after one that is not":   {refused: "a", failing: "b"},
		"the partition keeps the others":             {refused: "a", partition: 5, want: "web-2"},
		"the partition keeps all":                    {refused: "a", partition: 6},
		"the first is, and the next is not asked of": {refused: "a", denied: "c", want: "web-2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := started(t, inOrder, 6, logs(func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.Partition = ptr.To(intstr.FromInt32(tc.partition)) }),
				func(p *corev1.Pod) { n, _ := strconv.Atoi(p.Labels["n"]); ofWorkload(p, string(rune('a'+n/2))) })
			w.refuses = func(p *corev1.Pod) bool { return strings.Contains(tc.refused, p.OwnerReferences[0].Name) }
			w.onPatch = func(p *corev1.Pod) error {
				switch of := p.OwnerReferences[0].Name; {
				case strings.Contains(tc.denied, of):
					return denied
				case strings.Contains(tc.failing, of):
					return errors.New("no answer")
				}
				return nil
			}
			w.edit("logs", image("logs:2"))
			_, err := w.c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "logs"}})
			if got := w.with("shipper", "logs:2"); got != tc.want {
				t.Errorf("%q are updated, want %q: %v", got, tc.want, err)
			}
			if len(w.asked) > 3 || len(slices.Compact(slices.Sorted(slices.Values(w.asked)))) != len(w.asked) {
				t.Errorf("budgets are asked about %q", w.asked)
			}
		})
	}
}

// A round in which budgets refuse one pod after the other ends with its turn, so that the next one makes a plan of its own, and that one
// begins behind what was refused: the last workload is updated, unless the user pauses the update meanwhile.
func TestARoundOfRefusalsEndsWithItsTurn(t *testing.T) {
	const workloads = 20
	for name, pause := range map[string]bool{"the last one is updated": false, "the update is paused meanwhile": true} {
		t.Run(name, func(t *testing.T) {
			w := started(t, inOrder, workloads, logs(func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(1)) }),
				func(p *corev1.Pod) { ofWorkload(p, "w"+p.Labels["n"]) })
			last := fmt.Sprint("web-", workloads-1)
			w.refuses = func(p *corev1.Pod) bool {
				w.clock.Step(200 * time.Millisecond) // for which the API server is asked
				return p.Name != last
			}
			w.edit("logs", image("logs:2"))
			for round := range workloads {
				w.asked = nil
				result, err := w.c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "logs"}})
				if err != nil || len(w.asked) == 0 || len(w.asked) > 15 {
					t.Fatalf("round %d asks about %q: %v", round, w.asked, err)
				}
				if w.with("shipper", "logs:2") != "" {
					break
				}
				if result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
					t.Fatalf("round %d is followed after %s", round, result.RequeueAfter)
				}
				if pause {
					w.edit("logs", func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.Paused = true })
					w.round("logs")
					break
				}
			}
			want := last
			if pause {
				want = ""
			}
			if got := w.with("shipper", "logs:2"); got != want {
				t.Errorf("%q are updated, want %q", got, want)
			}
			w.asked = nil
			w.refuses = nil
			w.edit("logs", func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.Paused = false })
			for range 3 {
				w.run()
				w.round("logs")
			}
			if !slices.Contains(w.asked, "web-0") {
				t.Errorf("those that were refused are not asked about again: %q", w.asked)
			}
		})
	}
}

// The place of a reset that a budget refuses goes to the reset of a pod of another workload.
func TestThePlaceOfARefusedResetGoesToAnotherWorkload(t *testing.T) {
	w := startHotUpgrade(t)
	w.edit("logs", func(s *kruise.SidecarSet) { s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(1)) })
	first := ""
	w.refuses = func(p *corev1.Pod) bool {
		if first == "" {
			first = p.Name
		}
		return p.Name == first
	}
	w.round("logs")
	if got := w.with("shipper-1", "empty"); got == "" || got == first || strings.Contains(got, " ") {
		t.Errorf("%q are reset while the budget of %s refuses its reset", got, first)
	}
}

// crew is a SidecarSet for pods of several workloads, each with a budget of its own.
type crew struct {
	*world
	rand *rand.Rand
	// room is how many pods of each workload may be unavailable.
	room map[string]int
	// total, partition and unavailable are the numbers of the strategy.
	total, partition, unavailable int
	// tried and refused are the pods that were written in a round, or whose budgets refused it; kept are those whose writes got an error.
	tried, refused, kept []string
	story                []string
}

// newCrew draws workloads and a strategy.
func newCrew(t *testing.T, e *engine.Engine, seed uint64) *crew {
	t.Helper()
	c := &crew{rand: rand.New(rand.NewPCG(seed, 0)), room: map[string]int{}}
	c.total = 2 + c.rand.IntN(9)
	c.partition, c.unavailable = c.rand.IntN(c.total), 1+c.rand.IntN(3)
	set := logs(func(s *kruise.SidecarSet) {
		s.Spec.UpdateStrategy.Partition, s.Spec.UpdateStrategy.MaxUnavailable = ptr.To(intstr.FromInt(c.partition)), ptr.To(intstr.FromInt(c.unavailable))
	})
	pods := webs(t, c.total, set)
	workloads := 1 + c.rand.IntN(4)
	for _, o := range pods {
		ofWorkload(o.(*corev1.Pod), fmt.Sprint("w", c.rand.IntN(workloads)))
	}
	for i := range workloads {
		c.room[fmt.Sprint("w", i)] = c.rand.IntN(3)
	}
	c.story = append(c.story, fmt.Sprintf("seed %d: partition %d, maxUnavailable %d, rooms %v", seed, c.partition, c.unavailable, c.room))
	c.world = newWorldOf(t, e, append(pods, set)...)
	c.refuses = func(p *corev1.Pod) bool {
		of, away := p.OwnerReferences[0].Name, 0
		for _, other := range c.pods() {
			if other.OwnerReferences[0].Name == of && isAway(other) {
				away++
			}
		}
		if away < c.room[of] {
			return false
		}
		c.refused = append(c.refused, p.Name)
		return true
	}
	c.onPatch = func(p *corev1.Pod) error {
		c.tried = append(c.tried, p.Name)
		if c.rand.IntN(6) > 0 {
			return nil
		}
		c.kept = append(c.kept, p.Name)
		return errors.New("no answer")
	}
	c.run()
	return c
}

// isAway reports whether a pod runs another image than it is to.
func isAway(p *corev1.Pod) bool {
	own := containerOf(p, "shipper")
	return imageID(p, "shipper") != "id-of-"+own.Image
}

func isNew(p *corev1.Pod) bool { return containerOf(p, "shipper").Image == "logs:2" }

// step reconciles once, and checks what was done.
func (c *crew) step() {
	c.t.Helper()
	c.tried, c.refused, c.kept = nil, nil, nil
	busy := 0
	before := c.pods()
	slices.SortFunc(before, func(a, b *corev1.Pod) int {
		return strings.Compare(fmt.Sprintf("%3s", a.Labels["n"]), fmt.Sprintf("%3s", b.Labels["n"]))
	})
	old := c.total
	for _, p := range before {
		if isNew(p) {
			old--
		}
		if isAway(p) {
			busy++
		}
	}
	_, err := c.c.Reconcile(c.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "logs"}})
	c.story = append(c.story, fmt.Sprintf("tried %v, of which %v got an error, refused %v: %v", c.tried, c.kept, c.refused, err))
	for _, p := range c.pods() {
		c.c.PodEvents().Create(c.t.Context(), event.CreateEvent{Object: p}, &nowhere{})
	}
	places := max(min(c.unavailable-busy, old-c.partition), 0)
	if len(c.tried) > places {
		c.fail("there are %d places", places)
	}
	for _, names := range [][]string{c.tried, c.refused} {
		if sorted := slices.Sorted(slices.Values(names)); len(slices.Compact(sorted)) != len(names) {
			c.fail("a pod has two turns")
		}
	}
	c.checkOrder(before, places)
	c.checkRooms()
}

// checkOrder fails if a pod that may be updated waits though there is a place, or behind one that comes after it.
func (c *crew) checkOrder(before []*corev1.Pod, places int) {
	c.t.Helper()
	refuses := map[string]bool{}
	for _, p := range before {
		if slices.Contains(c.refused, p.Name) {
			refuses[p.OwnerReferences[0].Name] = true
		}
	}
	waits := ""
	for _, p := range before {
		switch {
		case isNew(p):
		case slices.Contains(c.tried, p.Name):
			if waits != "" {
				c.fail("%s is tried before %s", p.Name, waits)
			}
		case !refuses[p.OwnerReferences[0].Name]:
			if waits = p.Name; len(c.tried) < places {
				c.fail("%s waits though there are %d places", p.Name, places)
			}
		}
	}
}

// checkRooms fails if more pods are updated or unavailable than may be.
func (c *crew) checkRooms() {
	c.t.Helper()
	away, of, updated := 0, map[string]int{}, 0
	for _, p := range c.pods() {
		if isNew(p) {
			updated++
		}
		if isAway(p) {
			away++
			of[p.OwnerReferences[0].Name]++
		}
	}
	if away > c.unavailable || updated > c.total-c.partition {
		c.fail("%d pods are unavailable, and %d are updated", away, updated)
	}
	for name, n := range of {
		if n > c.room[name] {
			c.fail("%d pods of %s are unavailable", n, name)
		}
	}
}

func (c *crew) fail(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf(format+"\n  %s", append(args, strings.Join(c.story, "\n  "))...)
}

// No round of a SidecarSet gives more places than there are, or none to a pod that nothing keeps, whatever budgets refuse.
func TestPlacesOfManyWorkloads(t *testing.T) {
	e := rules.Engine(t, inOrder)
	for seed := range uint64(max(3, proptest.Often(12))) {
		c := newCrew(t, e, seed)
		c.round("logs")
		c.edit("logs", image("logs:2"))
		for range 6 {
			c.step()
			var late []string
			for _, p := range c.pods() {
				if c.rand.IntN(3) == 0 {
					late = append(late, p.Name)
				}
			}
			c.run(late...)
		}
		for name := range c.room {
			c.room[name] = c.total
		}
		for range 30 {
			c.step()
			c.run()
		}
		if got := len(strings.Fields(c.with("shipper", "logs:2"))); got != c.total-c.partition {
			c.fail("%d of %d pods are updated in the end", got, c.total)
		}
	}
}
