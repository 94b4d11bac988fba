// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/message"
)

// zoneNodes are a node in each zone.
func (w *world) zoneNodes(zones ...string) {
	w.Helper()
	for _, zone := range zones {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + zone, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
		if err := w.api.Create(w.Context(), n); err != nil {
			w.Fatal(err)
		}
	}
}

// pass lets time pass: what is begun settles at its beginning and at its end.
func (w *world) pass(during time.Duration) {
	w.Helper()
	const a, b = 2 * time.Second, 2 * time.Second
	w.settle(min(a, during))
	if during > a+b {
		w.now = w.now.Add(during - a - b)
	}
	w.settle(b)
}

// places is the condition that says where pods are not, such as "NoNodes: b.".
func (w *world) places() string {
	w.Helper()
	for _, c := range w.get().Status.Conditions {
		if c.Type == kruise.UnitedDeploymentPlacing && c.Status == corev1.ConditionTrue {
			return c.Reason
		} else if c.Type == kruise.UnitedDeploymentPlacing {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// A subset that is misspelt, without room, full or gone is named by the condition, until it is
// right again. Where nothing ever was wrong there is none.
func TestTheConditionNamesTheSubset(t *testing.T) {
	none := map[string]int{"b": 0}
	for name, tc := range map[string]struct {
		nodes   []string
		room    map[string]int
		rule    string
		edit    func(*kruise.UnitedDeployment)
		after   time.Duration
		want    []string // in the condition; there is none without
		mend    func(*world)
		counts  string
		mending time.Duration
	}{
		"all is well":                     {nodes: []string{"a", "b", "c"}, after: 40 * time.Second, counts: "a=3 b=3 c=4"},
		"pods wait for less than is told": {nodes: []string{"a", "b", "c"}, room: none, after: 20 * time.Second, counts: "a=3 b=3 c=4"},
		"a zone is misspelt": {
			nodes: []string{"a", "c"}, room: none, after: 2 * time.Second, want: []string{"NoNodes: ", ": b."}, counts: "a=3 b=3 c=4",
			mend: func(w *world) { w.zoneNodes("b"); delete(w.room, "b") }, mending: 6 * time.Second,
		},
		"a zone has no room": {
			nodes: []string{"a", "b", "c"}, room: none, after: 35 * time.Second, want: []string{"PodUnschedulable: ", "in 30s: b (3)."}, counts: "a=3 b=3 c=4",
			mend: func(w *world) { delete(w.room, "b") }, mending: 6 * time.Second,
		},
		"a zone has no room, and its pods went elsewhere": {
			nodes: []string{"a", "b", "c"}, room: map[string]int{"a": 1}, after: 20 * time.Second, want: []string{"PodUnschedulable: ", "in 10s: a."}, counts: "a=1 b=9 c=0",
			edit: func(d *kruise.UnitedDeployment) {
				limits(d, &kruise.AdaptiveUnitedDeploymentStrategy{RescheduleCriticalSeconds: ptr.To[int32](10), UnschedulableDuration: ptr.To[int32](60)})
			},
			mend: func(w *world) { delete(w.room, "a") }, mending: 70 * time.Second,
		},
		"subsets are full": {
			nodes: []string{"a", "b", "c"}, after: 2 * time.Second, want: []string{"SubsetsFull: 4 of 10 replicas are in no subset: ", "a (2) has the most it may have", "c (0) is denied more, by rule extend.placement.x"},
			edit: func(d *kruise.UnitedDeployment) { limits(d, nil, 2, 4) }, rule: `deny contains {"reason": "R", "message": "m", "target": "c", "room": 0}`, counts: "a=2 b=4 c=0",
			mend: func(w *world) { w.rule(`deny contains {"reason": "R", "message": "m", "target": "none"}`) }, mending: 2 * time.Second,
		},
		"a subset is gone, and a policy holds its workload": {
			nodes: []string{"a", "b", "c"}, after: 2 * time.Second, counts: "a=3 b=3 c=4",
			mend: func(w *world) {
				w.rule(`hold contains {"reason": "R", "message": "m"}`)
				w.edit(func(d *kruise.UnitedDeployment) { d.Spec.Topology.Subsets = d.Spec.Topology.Subsets[:2] })
				w.settle(2 * time.Second)
				if got := w.places(); !strings.HasPrefix(got, "UnknownSubset: ") || !strings.HasSuffix(got, ": c.") || w.counts() != "a=3 b=3 c=4" {
					w.Errorf("while it is held the condition is %q, the subsets have %s", got, w.counts())
				}
				w.rule(`hold contains {"reason": "R", "message": "m", "target": "none"}`)
			}, mending: 2 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(d *kruise.UnitedDeployment) {
				if tc.edit != nil {
					tc.edit(d)
				}
			})
			w.zoneNodes(tc.nodes...)
			for zone, room := range tc.room {
				w.room[zone] = room
			}
			if tc.rule != "" {
				w.rule(tc.rule)
			}
			w.pass(tc.after)
			got := w.places()
			if len(tc.want) == 0 && got != "" || w.counts() != tc.counts {
				t.Errorf("the condition is %q, the subsets have %s, want %s", got, w.counts(), tc.counts)
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("the condition is %q, want in it %q", got, want)
				}
			}
			if tc.mend == nil {
				return
			}
			tc.mend(w)
			w.pass(tc.mending)
			if got := w.places(); got != kruise.UnitedDeploymentPlacingReason {
				t.Errorf("once it is right again the condition is %q, the subsets have %s", got, w.counts())
			}
		})
	}
}

// However many subsets there are, a condition names the first of them.
func TestTheConditionOfManySubsetsIsShort(t *testing.T) {
	name := func(i int, of string) string { return fmt.Sprintf("%s-%s-%d", of, strings.Repeat("x", 40), i) }
	w := newWorld(t, func(d *kruise.UnitedDeployment) {
		*d.Spec.Replicas, d.Spec.Topology.Subsets = 40, nil
		for i := range 40 {
			d.Spec.Topology.Subsets = append(d.Spec.Topology.Subsets, kruise.Subset{Name: name(i, "old")})
		}
	})
	w.reconcile()
	w.run()
	w.edit(func(d *kruise.UnitedDeployment) {
		for i := range d.Spec.Topology.Subsets {
			d.Spec.Topology.Subsets[i].Name = name(i, "new")
		}
	})
	w.reconcile()
	if said := w.places(); len(said) > message.MostBytes+100 || !strings.HasSuffix(said, " and 30 more.") {
		t.Errorf("the condition has %d bytes: %s", len(said), said)
	}
}
