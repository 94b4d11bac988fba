// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/engine/decision"
	"github.com/regatta-sh/regatta/engine/decision/rollout"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

// at is a time that many seconds after a pod became ready.
func at(seconds int) time.Time { return time.Unix(1000+int64(seconds), 0) }

func readyPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-a", UID: "a", ResourceVersion: "1", Labels: map[string]string{"app": "web"}, CreationTimestamp: metav1.NewTime(at(-100))},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at(0))},
		}},
	}
}

func with(edits ...func(*corev1.Pod)) *corev1.Pod {
	p := readyPod()
	for _, e := range edits {
		e(p)
	}
	return p
}

func state(s kruise.LifecycleStateType) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[kruise.LifecycleStateKey] = string(s) }
}

func TestAvailable(t *testing.T) {
	gate := func(s corev1.ConditionStatus) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kruise.InPlaceUpdateReady, Status: s})
		}
	}
	since := func(at metav1.Time) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = at }
	}
	tests := map[string]struct {
		pod       *corev1.Pod
		minReady  time.Duration
		now       time.Time
		ready, ok bool
	}{
		"a ready pod":                                           {with(), 0, at(0), true, true},
		"a pod in state Normal":                                 {with(state("Normal")), 0, at(0), true, true},
		"a pod in any other state":                              {with(state("Updated")), 0, at(0), true, false},
		"a pod in an unknown state":                             {with(state("Sleeping")), 0, at(0), true, false},
		"a pod that is not ready":                               {with(func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }), 0, at(0), false, false},
		"a pod that does not say whether it is ready":           {with(func(p *corev1.Pod) { p.Status.Conditions = nil }), 0, at(0), false, false},
		"a pod that does not run":                               {with(func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), 0, at(0), false, false},
		"a pod whose gate is open":                              {with(gate(corev1.ConditionTrue)), 0, at(0), true, true},
		"a pod whose gate is closed":                            {with(gate(corev1.ConditionFalse)), 0, at(0), false, false},
		"a pod whose gate is unknown":                           {with(gate(corev1.ConditionUnknown)), 0, at(0), false, false},
		"ready for too short a time":                            {with(), 10 * time.Second, at(9), true, false},
		"ready for just that time":                              {with(), 10 * time.Second, at(10), true, true},
		"ready since a time in the future":                      {with(), 0, at(-5), true, true},
		"ready since an unknown time, where that matters":       {with(since(metav1.Time{})), time.Second, at(99), true, false},
		"ready since an unknown time, where it does not matter": {with(since(metav1.Time{})), 0, at(99), true, true},
		"an in-place update that is not complete":               {with(func(p *corev1.Pod) { p.Annotations = map[string]string{kruise.InPlaceUpdateGraceKey: "{}"} }), 0, at(0), true, false},
		"an in-place update whose record cannot be read":        {with(func(p *corev1.Pod) { p.Annotations = map[string]string{kruise.InPlaceUpdateStateKey: "{"} }), 0, at(0), true, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := NewSet().buildPod(tc.pod, false, Terms{}, NewTopology())
			if p.Ready != tc.ready || p.IsAvailable(tc.minReady, tc.now) != tc.ok {
				t.Errorf("ready %v, available %v; want %v, %v", p.Ready, p.IsAvailable(tc.minReady, tc.now), tc.ready, tc.ok)
			}
		})
	}
}

func TestFactsOfAPod(t *testing.T) {
	pod := with(state("Normal"), func(p *corev1.Pod) {
		p.Labels["controller-revision-hash"], p.Labels[kruise.CloneSetInstanceIDKey] = "web-1", "a"
		p.Annotations = map[string]string{corev1.PodDeletionCost: "-7"}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2}, {RestartCount: 5}}
	})
	topology := NewTopology()
	topology.ObserveNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "n1", CreationTimestamp: metav1.NewTime(time.Unix(800, 0)), Labels: map[string]string{corev1.LabelTopologyZone: "z", corev1.LabelTopologyRegion: "r"},
	}})
	want := rollout.PodFacts{
		Name: "web-a", Namespace: "shop", NamespacedName: "shop/web-a", Labels: map[string]string{"app": "web"}, Node: "n1", Zone: "z", Region: "r", Updated: true, State: "Normal",
		OnNode:   &rollout.NodeFacts{Created: 800},
		Assigned: 1, Phase: 2, Ready: 1, ReadySince: 1000, Created: 900, Restarts: 5, OrderLevel: -1, DeletionCost: -7,
	}
	if diff := cmp.Diff(want, NewSet().buildPod(pod, true, Terms{}, topology).Facts); diff != "" {
		t.Error(diff)
	}
	want = rollout.PodFacts{NamespacedName: "/", Labels: map[string]string{}, Created: rollout.MaxTime, OrderLevel: -1}
	if diff := cmp.Diff(want, NewSet().buildPod(&corev1.Pod{}, false, Terms{}, NewTopology()).Facts); diff != "" {
		t.Error("an empty pod: ", diff)
	}
	unknown := with(func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime = metav1.Time{} })
	if got := NewSet().buildPod(unknown, false, Terms{}, NewTopology()).Facts.ReadySince; got != rollout.MaxTime {
		t.Errorf("ready since an unknown time is %d", got)
	}
	for phase, want := range map[corev1.PodPhase]int{corev1.PodPending: 0, corev1.PodUnknown: 1, corev1.PodRunning: 2, "": 0, "Odd": 0} {
		if got := NewSet().buildPod(with(func(p *corev1.Pod) { p.Status.Phase = phase }), false, Terms{}, NewTopology()).Facts.Phase; got != want {
			t.Errorf("phase %q is %d, want %d", phase, got, want)
		}
	}
}

func TestDeletionCost(t *testing.T) {
	for value, want := range map[string]int{
		"0": 0, "5": 5, "-5": -5, "2147483647": 2147483647, "-2147483648": -2147483648,
		"2147483648": 0, "-2147483649": 0, "+5": 0, "05": 0, "00": 0, "-05": 0, "-0": 0, "": 0, "-": 0, "5.0": 0, "1e3": 0, " 5": 0, "five": 0,
	} {
		if got := deletionCost(with(func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: value} })); got != want {
			t.Errorf("a cost of %q is %d, want %d", value, got, want)
		}
	}
}

func terms(t testing.TB, s *kruise.UpdatePriorityStrategy) Terms {
	t.Helper()
	out, err := NewTerms(s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func orderBy(keys ...string) *kruise.UpdatePriorityStrategy {
	s := &kruise.UpdatePriorityStrategy{}
	for _, k := range keys {
		s.OrderPriority = append(s.OrderPriority, kruise.UpdatePriorityOrderTerm{OrderedKey: k})
	}
	return s
}

func TestOrder(t *testing.T) {
	tests := map[string]struct {
		keys         []string
		labels       map[string]string
		level, value int
	}{
		"no terms":                            {nil, map[string]string{"a": "1"}, -1, 0},
		"a pod without any of the keys":       {[]string{"a", "b"}, map[string]string{"c": "1"}, -1, 0},
		"a pod without labels":                {[]string{"a"}, nil, -1, 0},
		"the first key that it has counts":    {[]string{"a", "b", "c"}, map[string]string{"c": "3", "b": "2"}, 1, 2},
		"the number that the value ends with": {[]string{"a"}, map[string]string{"a": "web-12"}, 0, 12},
		"only that":                           {[]string{"a"}, map[string]string{"a": "3-web-12"}, 0, 12},
		"zeros in front":                      {[]string{"a"}, map[string]string{"a": "web-007"}, 0, 7},
		"a minus is no part of it":            {[]string{"a"}, map[string]string{"a": "-5"}, 0, 5},
		"no number at the end":                {[]string{"a"}, map[string]string{"a": "12-web"}, 0, 0},
		"no value":                            {[]string{"a"}, map[string]string{"a": ""}, 0, 0},
		"a number too large":                  {[]string{"a"}, map[string]string{"a": "9223372036854775808"}, 0, 0},
		"digits of other scripts are none":    {[]string{"a"}, map[string]string{"a": "web-٣"}, 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if level, value := terms(t, orderBy(tc.keys...)).orderPriority(tc.labels); level != tc.level || value != tc.value {
				t.Errorf("level %d, value %d; want %d, %d", level, value, tc.level, tc.value)
			}
		})
	}
}

func TestTheTrailingNumberIsTheOneThatWasWritten(t *testing.T) {
	by := terms(t, orderBy("k"))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1<<40).Draw(t, "number")
		front := rapid.StringMatching(`([a-z0-9._-]*[a-z._-])?`).Draw(t, "front")
		level, value := by.orderPriority(map[string]string{"k": front + strings.Repeat("0", rapid.IntRange(0, 3).Draw(t, "zeros")) + strconv.Itoa(n)})
		if level != 0 || value != n {
			t.Fatalf("level %d, value %d", level, value)
		}
	})
}

func TestMatches(t *testing.T) {
	s := &kruise.UpdatePriorityStrategy{WeightPriority: []kruise.UpdatePriorityWeightTerm{
		{Weight: 1, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "gold"}}},
		{Weight: 2, MatchSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}},
		{Weight: 3, MatchSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"gold"}}}}},
	}}
	by := terms(t, s)
	for _, tc := range []struct {
		labels map[string]string
		want   []int
	}{
		{map[string]string{"tier": "gold", "app": "x"}, []int{0, 1}}, {map[string]string{"app": "x"}, []int{1, 2}}, {nil, []int{2}},
	} {
		if got := by.matchingSelectors(tc.labels); !slices.Equal(got, tc.want) {
			t.Errorf("%v matches %v, want %v", tc.labels, got, tc.want)
		}
	}
	if _, err := NewTerms(&kruise.UpdatePriorityStrategy{WeightPriority: []kruise.UpdatePriorityWeightTerm{{
		MatchSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Likes"}}},
	}}}); err == nil {
		t.Error("a selector that cannot be read is no error")
	}
	if got, err := NewTerms(nil); err != nil || !got.isEqual(Terms{}) {
		t.Error("no strategy is not no terms")
	}
}

// a Set gives what build does, whatever changed since the last time, and builds
// nothing anew that did not change.
func TestASetRemembersWhatDidNotChange(t *testing.T) {
	topology := NewTopology()
	topology.AssumePlace("n1", map[string]string{corev1.LabelTopologyZone: "z1"})
	none := func(*corev1.Pod) bool { return false }
	all := func(*corev1.Pod) bool { return true }
	other := readyPod()
	other.UID, other.Name = "b", "web-b"
	pods := []*corev1.Pod{readyPod(), other}
	s := NewSet()
	first := s.Update(pods, Terms{}, topology, none)
	if again := s.Update([]*corev1.Pod{readyPod(), other}, Terms{}, topology, none); again[0] != first[0] || again[1] != first[1] {
		t.Error("pods that did not change were built again")
	}
	if updated := s.Update(pods, Terms{}, topology, all); !updated[0].Facts.Updated || updated[0].Hash == first[0].Hash {
		t.Error("another update revision was not seen")
	}
	moved := readyPod()
	moved.ResourceVersion, moved.Labels = "2", map[string]string{"app": "shop"}
	if got := s.Update([]*corev1.Pod{moved}, Terms{}, topology, all); got[0].Facts.Labels["app"] != "shop" {
		t.Error("another version of the pod was not seen")
	}
	if len(s.pods) != 1 {
		t.Errorf("%d pods are remembered, one is left", len(s.pods))
	}
	if got := s.Update([]*corev1.Pod{moved}, terms(t, orderBy("app")), topology, all); got[0].Facts.OrderLevel != 0 {
		t.Error("other terms were not seen")
	}
	topology.AssumePlace("n1", map[string]string{corev1.LabelTopologyZone: "z2"})
	if got := s.Update([]*corev1.Pod{moved}, terms(t, orderBy("app")), topology, all); got[0].Facts.Zone != "z2" {
		t.Error("another place of the node was not seen")
	}
}

// A kind that puts a pod on each node sees the node, and the pod anew when that changes, but
// not at each heartbeat.
func TestFactsOfTheNode(t *testing.T) {
	topology := NewTopologyWithLabels()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"pool": "edge"}, CreationTimestamp: metav1.NewTime(time.Unix(700, 0))}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: "Ready", Status: corev1.ConditionTrue}, {Type: "MemoryPressure", Status: corev1.ConditionFalse}, {Type: "DiskPressure", Status: corev1.ConditionTrue},
	}}}
	topology.ObserveNode(node)
	s := NewSet(WithNodes(func(*corev1.Pod) string { return "n1" }))
	pod := with(func(p *corev1.Pod) { p.Spec.NodeName = "" })
	at := func() *Pod {
		return s.Update([]*corev1.Pod{pod}, Terms{}, topology, func(*corev1.Pod) bool { return false })[0]
	}
	first := at()
	want := &rollout.NodeFacts{Labels: map[string]string{"pool": "edge"}, Created: 700, Conditions: []string{"DiskPressure", "Ready"}}
	if diff := cmp.Diff(want, first.Facts.OnNode); diff != "" || first.Facts.Node != "n1" {
		t.Error(first.Facts.Node, diff)
	}
	node = node.DeepCopy()
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(9, 0))
	topology.ObserveNode(node)
	if at() != first {
		t.Error("a heartbeat builds the pod anew")
	}
	node = node.DeepCopy()
	node.Spec.Unschedulable = true
	topology.ObserveNode(node)
	if now := at(); !now.Facts.OnNode.Unschedulable || now.Hash == first.Hash {
		t.Error("the pod does not show it")
	}
	topology.ForgetNode("n1")
	gone := at()
	if gone.Facts.OnNode != nil || len(gone.Facts.MissingFacts) != 1 || gone.Facts.MissingFacts[0].Reason != NodeUnknownReason || gone.Hash == first.Hash {
		t.Errorf("a node that is gone: %+v, missing %v", gone.Facts.OnNode, gone.Facts.MissingFacts)
	}
	topology.ObserveNode(node)
	if back := at(); back.Facts.OnNode == nil || back.Facts.MissingFacts != nil {
		t.Errorf("the node is back, and the facts are %+v, missing %v", back.Facts.OnNode, back.Facts.MissingFacts)
	}
}

// Kinds that do not put a pod on each node see the node of a pod too, but not its labels.
func TestFactsOfTheNodeOfAnyPod(t *testing.T) {
	topology := NewTopology()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{"pool": "edge"}}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if !topology.ObserveNode(node) || topology.ObserveNode(node.DeepCopy()) {
		t.Error("the first event of a node changes its facts, and the same node again does not")
	}
	relabelled := node.DeepCopy()
	relabelled.Labels["pool"] = "core"
	if topology.ObserveNode(relabelled) {
		t.Error("a label, which is no fact here, changes the facts")
	}
	scheduled, waiting := readyPod(), with(func(p *corev1.Pod) { p.Spec.NodeName, p.UID = "", "b" })
	got := NewSet().Update([]*corev1.Pod{scheduled, waiting}, Terms{}, topology, func(*corev1.Pod) bool { return false })
	if diff := cmp.Diff(&rollout.NodeFacts{Unschedulable: true, Created: rollout.MaxTime}, got[0].Facts.OnNode); diff != "" {
		t.Error(diff)
	}
	topology.ObserveNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", Labels: map[string]string{corev1.LabelTopologyZone: "z"}}})
	s, none := NewSet(), func(*corev1.Pod) bool { return false }
	s.Update([]*corev1.Pod{scheduled}, Terms{}, topology, none)
	topology.ForgetNode("n1")
	if gone := s.Update([]*corev1.Pod{scheduled}, Terms{}, topology, none)[0]; gone.Facts.Zone != "z" || len(gone.Facts.MissingFacts) != 1 {
		t.Errorf("the pod of a node that is gone is in zone %q, missing %v", gone.Facts.Zone, gone.Facts.MissingFacts)
	}
	if got[1].Facts.OnNode != nil || got[1].Facts.MissingFacts != nil {
		t.Errorf("a pod without a node has the facts %+v of one, missing %v", got[1].Facts.OnNode, got[1].Facts.MissingFacts)
	}
}

// The labels of a namespace are facts of its pods, which are built anew when these change and
// not before.
func TestFactsOfTheNamespace(t *testing.T) {
	shop, bank := readyPod(), with(func(p *corev1.Pod) { p.Namespace, p.UID = "bank", "b" })
	s, topology := NewSet(), NewTopology()
	topology.ObserveNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	update := func(labels map[string]map[string]string) []*Pod {
		s.ObserveNamespaces(labels, nil)
		return s.Update([]*corev1.Pod{shop, bank}, Terms{}, topology, func(*corev1.Pod) bool { return false })
	}
	first := update(map[string]map[string]string{"shop": {"tier": "gold"}, "bank": {"tier": "tin"}})
	if first[0].Facts.NamespaceLabels["tier"] != "gold" || first[1].Facts.NamespaceLabels["tier"] != "tin" || first[0].Key() == first[1].Key() {
		t.Errorf("the facts are %+v and %+v", first[0].Facts, first[1].Facts)
	}
	if same := update(map[string]map[string]string{"shop": {"tier": "gold"}, "bank": {"tier": "tin"}}); same[0] != first[0] || same[1] != first[1] {
		t.Error("pods whose namespaces did not change were built again")
	}
	next := update(map[string]map[string]string{"shop": {"tier": "gold"}, "bank": {"tier": "gold"}})
	if next[0] != first[0] || next[1].Facts.NamespaceLabels["tier"] != "gold" || next[1].Hash == first[1].Hash {
		t.Errorf("other labels of bank were not seen: %+v", next[1].Facts)
	}
	if none := update(nil); none[0].Facts.NamespaceLabels != nil {
		t.Errorf("labels that are not known any more are facts: %v", none[0].Facts.NamespaceLabels)
	}
	unread := func(reason string) *Pod {
		s.ObserveNamespaces(nil, map[string]decision.MissingFact{"shop": {Fact: "namespaceLabels", Reason: reason, Message: "M."}})
		return s.Update([]*corev1.Pod{shop}, Terms{}, topology, func(*corev1.Pod) bool { return false })[0]
	}
	one := unread("Unread")
	if len(one.Facts.MissingFacts) != 1 || one.Facts.MissingFacts[0].Reason != "Unread" {
		t.Errorf("labels that could not be read: missing %v", one.Facts.MissingFacts)
	}
	if other := unread("TooLong"); other.Hash == one.Hash {
		t.Error("another reason does not change the facts")
	}
}

func TestTopology(t *testing.T) {
	topology := NewTopology()
	topology.AssumePlace("n1", map[string]string{corev1.LabelTopologyZone: "z", corev1.LabelTopologyRegion: "r", "rack": "7"})
	if got := topology.NodePlace("n1"); got != (Place{"z", "r"}) || topology.NodeLabel("n1", "rack") != "7" {
		t.Errorf("n1 is at %v, rack %s", got, topology.NodeLabel("n1", "rack"))
	}
	before := topology.Version()
	topology.AssumePlace("n1", map[string]string{corev1.LabelTopologyZone: "z", corev1.LabelTopologyRegion: "r", "rack": "8"})
	if topology.Version() != before {
		t.Error("a label that is no place made everything anew")
	}
	topology.AssumePlace("n1", map[string]string{corev1.LabelTopologyZone: "y", corev1.LabelTopologyRegion: "r"})
	if topology.Version() == before {
		t.Error("another place did not")
	}
	topology.ForgetNode("n1")
	if topology.NodePlace("n1") != (Place{}) || topology.NodeLabel("n1", "rack") != "" {
		t.Error("a node that is gone is still there")
	}
}

// Any client with permission may write pods. Facts exist for every pod, whatever its contents.
func FuzzFacts(f *testing.F) {
	seed, err := json.Marshal(with(state("Updating"), func(p *corev1.Pod) {
		p.Annotations = map[string]string{corev1.PodDeletionCost: "-7", kruise.InPlaceUpdateStateKey: `{"lastContainerStatuses":{"a":{"imageID":"x"}}}`}
		p.Spec.Containers = []corev1.Container{{Name: "a", Image: "a:1"}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", RestartCount: 7, ImageID: "x"}}
	}))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(seed), "order")
	f.Add(`{}`, "")
	f.Add(`{"metadata":{"labels":{"order":"99999999999999999999"}},"status":{"conditions":[{"type":"Ready","status":"True"}],"phase":"Running"}}`, "order")
	f.Fuzz(func(t *testing.T, raw, key string) {
		pod := &corev1.Pod{}
		if json.Unmarshal([]byte(raw), pod) != nil {
			return
		}
		before := pod.DeepCopy()
		by := terms(t, orderBy(key))
		s := NewSet()
		p := s.Update([]*corev1.Pod{pod}, by, NewTopology(), func(*corev1.Pod) bool { return true })[0]
		for _, minReady := range []time.Duration{0, time.Second, 1 << 62} {
			_ = p.IsAvailable(minReady, time.Unix(0, 0))
		}
		if p.Facts.OrderLevel < -1 || p.Facts.OrderValue < 0 || p.Facts.Phase < 0 || p.Facts.Phase > 2 || p.Facts.Ready&^1 != 0 || p.Facts.Assigned&^1 != 0 {
			t.Errorf("facts out of bounds: %+v", p.Facts)
		}
		if _, err := json.Marshal(p.Facts); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(before, pod); diff != "" {
			t.Error("building facts changed the pod: ", diff)
		}
		pod.UID = types.UID("x")
		_ = s.Update([]*corev1.Pod{pod}, by, NewTopology(), func(*corev1.Pod) bool { return false })
	})
}

func TestFactsDoNotKeepTheListTheyWereMadeFrom(t *testing.T) {
	list := &corev1.PodList{Items: []corev1.Pod{*readyPod(), *readyPod()}}
	collected := make(chan struct{})
	runtime.AddCleanup(&list.Items[0], func(c chan struct{}) { close(c) }, collected)
	s := NewSet()
	kept := s.Update([]*corev1.Pod{&list.Items[1]}, Terms{}, NewTopology(), func(*corev1.Pod) bool { return false })
	list = nil
	for range 300 { // a cleanup runs some time after the collection that finds its object gone
		runtime.GC()
		select {
		case <-collected:
			if kept[0].Name != "web-a" {
				t.Errorf("the pod is lost, too: %v", kept[0])
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Error("the list is still in memory")
}
