// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/simulation/lives"
	"github.com/regatta-sh/regatta/controllers/workload/claims"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	"github.com/regatta-sh/regatta/engine"
	_ "github.com/regatta-sh/regatta/test/proptest"
	"github.com/regatta-sh/regatta/test/rules"
)

// life is that of a StatefulSet.
type life struct {
	*simulation.Harness
	// broken is the first promise of StatefulSets that a write broke.
	broken string
	// claimed has the names of the claims that were made.
	claimed map[string]bool
}

func newLife(t simulation.T, e *engine.Engine, set *kruise.StatefulSet) *life {
	t.Helper()
	s := &life{claimed: map[string]bool{}}
	s.Harness = simulation.NewHarness(t, simulation.HarnessConfig{
		Workload: set, Engine: e, Gates: rollout.Gates{EnvFromMetadata: true}, Nodes: lives.NewNodes(3),
		Kind: func() rollout.Kind { return New(Gates{AutoDeletePVC: true, StartOrdinal: true, PodIndexLabel: true}) },
	})
	s.Deny = s.judge
	return s
}

func (s *life) set() *kruise.StatefulSet { return s.CurrentWorkload().(*kruise.StatefulSet) }

func (s *life) change(edit func(*kruise.StatefulSet)) {
	s.Helper()
	s.ChangeWorkload(func(o client.Object) { edit(o.(*kruise.StatefulSet)) })
}

// judge holds each write of the controller to what a StatefulSet promises beside the numbers
// of pods. It refuses none.
func (s *life) judge(o client.Object, what string) error {
	complain := func(text string, args ...any) {
		if s.broken == "" {
			s.broken = fmt.Sprintf(text, args...)
		}
	}
	set := s.set()
	switch o := o.(type) {
	case *corev1.PersistentVolumeClaim:
		if what == "delete" {
			complain("the claim %s is deleted by the controller, not by who owns it", o.Name)
		}
	case *corev1.Pod:
		n, ok := ordinalOf(set, o.Name)
		if !ok {
			complain("%s %s, which is no pod of the set", what, o.Name)
		}
		if what == "delete" && !s.goesWithItsClaim(set, o, n) {
			complain("%s is deleted, and its claim, which is to go with it, does not have it as its owner", o.Name)
		}
		if what == "create" && !mountsItsClaims(o) {
			complain("%s is created with the claims %s, and mounts %v", o.Name, claimNames(o), o.Spec.Containers[0].VolumeMounts)
		}
		if what == "create" && s.ahead(set, o, n) {
			complain("%s is created at the update revision, though its position is below the partition", o.Name)
		}
		if what != "create" || set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
			return nil
		}
		for _, below := range New(Gates{StartOrdinal: true}).desiredOrdinals(set).AllOrdinals() {
			if p := s.FindPod(podName(set, below)); below < n && (p == nil || p.DeletionTimestamp != nil) {
				complain("%s is created before %s is there", o.Name, podName(set, below))
			}
		}
	}
	return nil
}

// mountsItsClaims reports whether a pod has the claims that its revision mounts, and no others.
func mountsItsClaims(pod *corev1.Pod) bool {
	return len(claims.UnknownMounts(&pod.Spec)) == 0 && len(pod.Spec.Containers[0].VolumeMounts) == len(pod.Spec.Volumes)
}

// ahead reports whether a pod has the update revision before the partition lets it.
func (s *life) ahead(set *kruise.StatefulSet, pod *corev1.Pod, ordinal int) bool {
	partition := int(ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate.Partition, 0))
	position := slices.Index(New(Gates{StartOrdinal: true}).desiredOrdinals(set).AllOrdinals(), ordinal)
	newest, current := s.newest().Name, set.Status.CurrentRevision
	return position < partition && current != "" && current != newest && revision.SameHash(pod.Labels[rollout.RevisionLabel], newest)
}

func (s *life) newest() *appsv1.ControllerRevision {
	newest := &appsv1.ControllerRevision{}
	for _, r := range simulation.ListObjects[*appsv1.ControllerRevision](s.Harness) {
		if r.Revision > newest.Revision {
			newest = r
		}
	}
	return newest
}

// goesWithItsClaim reports whether the claim of a pod goes with it where it is to. The garbage
// collector deletes it when the pod is gone.
func (s *life) goesWithItsClaim(set *kruise.StatefulSet, pod *corev1.Pod, ordinal int) bool {
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil || !deletesClaims(policy.WhenScaled) || New(Gates{StartOrdinal: true}).desiredOrdinals(set).IsInBounds(ordinal) {
		return true
	}
	for _, c := range simulation.ListObjects[*corev1.PersistentVolumeClaim](s.Harness) {
		if c.Name == claimName(set, "data", ordinal) && c.DeletionTimestamp == nil {
			return slices.ContainsFunc(c.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == pod.UID })
		}
	}
	return true
}

// unbroken fails if a promise was broken, and notes which claims there are.
func (s *life) unbroken() {
	s.Helper()
	for _, c := range simulation.ListObjects[*corev1.PersistentVolumeClaim](s.Harness) {
		s.claimed[c.Name] = true
	}
	if s.broken != "" {
		s.Fatalf("%s%s", s.broken, s.DescribeState())
	}
}

func drawSet(t *rapid.T) *kruise.StatefulSet {
	return testSet(int32(rapid.IntRange(1, 5).Draw(t, "replicas")), func(set *kruise.StatefulSet) {
		set.Spec.PodManagementPolicy = rapid.SampledFrom([]appsv1.PodManagementPolicyType{appsv1.ParallelPodManagement, appsv1.OrderedReadyPodManagement}).Draw(t, "management")
		ru := set.Spec.UpdateStrategy.RollingUpdate
		ru.PodUpdatePolicy = rapid.SampledFrom([]kruise.PodUpdatePolicyType{"ReCreate", "InPlaceIfPossible"}).Draw(t, "policy")
		if set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement { // admission refuses it for the other
			ru.MaxUnavailable = ptr.To(intstr.FromInt32(int32(rapid.IntRange(1, 3).Draw(t, "maxUnavailable"))))
			if rapid.Bool().Draw(t, "scale limit") {
				set.Spec.ScaleStrategy = &kruise.StatefulSetScaleStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(int32(rapid.IntRange(1, 3).Draw(t, "scaleStrategy.maxUnavailable"))))}
			}
		}
		ru.MinReadySeconds = ptr.To(int32(rapid.SampledFrom([]int{0, 0, 10}).Draw(t, "minReadySeconds")))
		if rapid.Bool().Draw(t, "claims") {
			mount("data")(set)
			set.Spec.PersistentVolumeClaimRetentionPolicy = &kruise.StatefulSetPersistentVolumeClaimRetentionPolicy{
				WhenScaled: rapid.SampledFrom([]appsv1.PersistentVolumeClaimRetentionPolicyType{"Retain", "Delete"}).Draw(t, "whenScaled"),
			}
		}
	})
}

// user does something that users do.
func (s *life) user(t *rapid.T) {
	switch rapid.SampledFrom([]string{"image", "replicas", "partition", "pause", "reserve", "specified delete", "delete", "delete all", "logs", "orphan", "relabel"}).Draw(t, "the user changes") {
	case "image":
		image := rapid.SampledFrom([]string{"db:1", "db:2", "db:3"}).Draw(t, "image")
		s.change(func(set *kruise.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = image })
	case "replicas":
		n := int32(rapid.IntRange(0, 6).Draw(t, "replicas"))
		s.change(func(set *kruise.StatefulSet) { set.Spec.Replicas = &n })
	case "partition":
		p := int32(rapid.SampledFrom([]int{0, 0, 1, 2, 9}).Draw(t, "partition"))
		s.change(func(set *kruise.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = &p })
	case "pause":
		on := rapid.Bool().Draw(t, "paused")
		s.change(func(set *kruise.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = on })
	case "reserve":
		n := rapid.SampledFrom([]int{-1, 0, 1, 2}).Draw(t, "ordinal")
		s.change(func(set *kruise.StatefulSet) {
			set.Spec.ReserveOrdinals = nil
			if n >= 0 {
				set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(int32(n))}
			}
		})
	case "orphan":
		s.OrphanDependents()
	case "logs":
		s.change(mount("logs"))
	case "delete all":
		for _, p := range s.ListPods() {
			s.Delete(p)
		}
	case "relabel":
		lives.RelabelPod(t, s.Harness, "app", "db")
	case "specified delete", "delete":
		pods := s.ListPods()
		if len(pods) == 0 {
			return
		}
		p := rapid.SampledFrom(pods).Draw(t, "pod").DeepCopy()
		if rapid.Bool().Draw(t, "by a label") && p.DeletionTimestamp == nil {
			p.Labels[kruise.SpecifiedDeleteKey] = "true"
			s.Update(p)
			s.ShowAll(p) // what others change the controller cannot know of before
			return
		}
		s.Delete(p)
	}
}

// Whatever users do, however far the cache lags behind, whichever writes fail or are not
// answered, and wherever the controller ends and is started again: at every write it keeps
// maxUnavailable and the partition, OrderedReady creates no pod before those below it, and
// no claim is deleted that the set is to keep. In the end all is as it was asked for.
func TestAnyLifeOfAStatefulSet(t *testing.T) {
	e := rules.Engine(t, simulation.HoldRules, simulation.OverrideRules)
	rapid.Check(t, func(t *rapid.T) {
		s := newLife(t, e, drawSet(t))
		if rapid.Bool().Draw(t, "short turns") {
			s.Turn = 0
		}
		s.Options = append(s.Options, simulation.WithEveryAgent())
		s.RestartController()
		more := lives.DrawDisruptions(s.Harness)
		more[""] = func(*rapid.T) { s.unbroken() }
		lives.DrawActions(t, s.Harness, s.user, more, lives.DrawBudget(t, s.Harness, s.set().Spec.Selector))
		lives.ReleaseHolds(s.Harness)
		s.DropBudget()
		s.EndRestart()
		lives.LabelBack(s.Harness, "app", "db")
		s.change(func(set *kruise.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = false })
		s.RunUntilStable()
		s.unbroken()
		s.finished()
		s.MustHaveRestarted()
	})
}

// finished fails unless all is as it was asked for.
func (s *life) finished() {
	s.Helper()
	set := s.set()
	var want, got []string
	for _, n := range New(Gates{StartOrdinal: true}).desiredOrdinals(set).AllOrdinals() {
		want = append(want, podName(set, n))
	}
	for _, p := range s.ListPods() {
		if p.DeletionTimestamp == nil {
			got = append(got, p.Name)
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))) {
		s.Fatalf("in the end there are the pods %v, want %v%s", got, want, s.DescribeState())
	}
	sight, n := s.CountPods(), len(want)
	partition := min(int(ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate.Partition, 0)), n)
	if sight.Available != n || sight.Going != 0 || sight.Updated < n-partition {
		s.Fatalf("in the end there are %+v, want %d that are available and %d that are updated%s", sight, n, n-partition, s.DescribeState())
	}
	if diff := cmp.Diff(s.wantStatus(n, sight.Updated), *withoutConditions(set)); diff != "" {
		s.Fatalf("the status is not what there is (-want +got):\n%s%s", diff, s.DescribeState())
	}
	s.claims(want)
}

func withoutConditions(set *kruise.StatefulSet) *kruise.StatefulSetStatus {
	out := set.Status.DeepCopy()
	out.Conditions, out.VolumeClaims = nil, nil
	return out
}

// wantStatus is the status that tells what there is in the end, when every pod is available.
func (s *life) wantStatus(pods, updated int) kruise.StatefulSetStatus {
	set, newest, n := s.set(), s.newest(), int32(pods)
	out := kruise.StatefulSetStatus{
		ObservedGeneration: set.Generation, Replicas: n, ReadyReplicas: n, AvailableReplicas: n,
		UpdatedReplicas: int32(updated), UpdatedReadyReplicas: int32(updated), UpdatedAvailableReplicas: int32(updated),
		UpdateRevision: newest.Name, CurrentRevision: set.Status.CurrentRevision, CurrentReplicas: set.Status.CurrentReplicas,
		CollisionCount: ptr.To[int32](0), LabelSelector: "app=db",
	}
	if updated == pods { // ASTS-15
		out.CurrentRevision, out.CurrentReplicas = newest.Name, n
	}
	return out
}

// claims fails unless each pod has its claim, and those that are to be kept are there. A claim
// stays in any case if its pod is gone before the scale-in: a user who asks for Delete later
// keeps what was kept until then.
func (s *life) claims(pods []string) {
	s.Helper()
	set := s.set()
	there := map[string]bool{}
	for _, c := range simulation.ListObjects[*corev1.PersistentVolumeClaim](s.Harness) {
		there[c.Name] = c.DeletionTimestamp == nil
	}
	want := map[string]bool{}
	for _, pod := range pods {
		for _, claim := range strings.Fields(claimNames(s.FindPod(pod))) {
			want[claim] = true
		}
	}
	if policy := set.Spec.PersistentVolumeClaimRetentionPolicy; policy == nil || !deletesClaims(policy.WhenScaled) {
		maps.Copy(want, s.claimed)
	}
	for name := range want {
		if !there[name] {
			s.Fatalf("in the end the claim %s is gone, want %v%s", name, slices.Sorted(maps.Keys(want)), s.DescribeState())
		}
	}
}
