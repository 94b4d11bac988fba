// SPDX-License-Identifier: Apache-2.0

package kstatus_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/test/waiting"
)

// compute asks kstatus about an object as a client reads it.
func compute(t *testing.T, kind string, object any) (status.Status, string) {
	t.Helper()
	return waiting.JudgeObject(t, kruise.GroupVersion.WithKind(kind), object)
}

func newCloneSet(pods, available, updated, done int32, changes ...func(*kruise.CloneSet)) *kruise.CloneSet {
	set := &kruise.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
		Spec:       kruise.CloneSetSpec{Replicas: ptr.To(int32(3)), UpdateStrategy: kruise.CloneSetUpdateStrategy{RollingUpdate: &kruise.RollingUpdateCloneSetStrategy{}}},
		Status: kruise.CloneSetStatus{
			ObservedGeneration: 2, Replicas: pods, ReadyReplicas: available, AvailableReplicas: available, UpdatedReplicas: updated,
			UpdatedReadyReplicas: done, UpdatedAvailableReplicas: done, ExpectedUpdatedReplicas: 3,
		},
	}
	for _, change := range changes {
		change(set)
	}
	return set
}

func withCondition(t kruise.CloneSetConditionType, s corev1.ConditionStatus, reason, message string) func(*kruise.CloneSet) {
	return func(set *kruise.CloneSet) {
		set.Status.Conditions = append(set.Status.Conditions, kruise.CloneSetCondition{Type: t, Status: s, Reason: reason, Message: message})
	}
}

func TestWhatKstatusSaysOfACloneSet(t *testing.T) {
	partition := func(set *kruise.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Partition, set.Status.ExpectedUpdatedReplicas = ptr.To(intstr.FromInt32(2)), 1
	}
	held := withCondition(kruise.UpdateHeld, corev1.ConditionTrue, "Freeze", "No updates on Fridays. (rule freeze.hold)")
	late := withCondition(kruise.CloneSetConditionProgressing, corev1.ConditionFalse, kruise.CloneSetProgressDeadlineExceededReason, "timed out")
	for name, tc := range map[string]struct {
		set             *kruise.CloneSet
		want            status.Status
		reason, message string
	}{
		"all pods are updated and available": {newCloneSet(3, 3, 3, 3), status.CurrentStatus, kruise.PodsAvailableReason, "3 of 3 pods are updated and available"},
		"no pod yet":                         {newCloneSet(0, 0, 0, 0), status.InProgressStatus, kruise.ProgressingReason, "0 of 3 pods are updated, 0 of them available"},
		"a pod too many":                     {newCloneSet(4, 4, 3, 3), status.InProgressStatus, kruise.ProgressingReason, "3 of 3 pods are updated, 3 of them available"},
		"an updated pod is not available":    {newCloneSet(3, 2, 3, 2), status.InProgressStatus, kruise.ProgressingReason, "3 of 3 pods are updated, 2 of them available"},
		"an old pod":                         {newCloneSet(3, 3, 2, 2), status.InProgressStatus, kruise.ProgressingReason, "2 of 3 pods are updated, 2 of them available"},
		"the partition is reached":           {newCloneSet(3, 3, 1, 1, partition), status.CurrentStatus, kruise.PodsAvailableReason, "1 of 3 pods are updated and available; the partition lets 2 pods keep their revision"},
		"an old pod is not available":        {newCloneSet(3, 2, 1, 1, partition), status.InProgressStatus, kruise.ProgressingReason, "1 of 1 pods are updated, 1 of them available; 2 of 3 pods are available"},
		"a policy holds it":                  {newCloneSet(3, 3, 1, 1, held), status.InProgressStatus, kruise.UpdateHeld, "No updates on Fridays. (rule freeze.hold)"},
		"a failure counts more than a hold": {newCloneSet(2, 2, 1, 1, held, withCondition(kruise.CloneSetConditionFailedScale, corev1.ConditionTrue, "FailedScale", "exceeded quota")),
			status.InProgressStatus, "FailedScale", "exceeded quota"},
		"it takes too long":                        {newCloneSet(3, 2, 1, 0, late), status.FailedStatus, kruise.CloneSetProgressDeadlineExceededReason, "timed out"},
		"it takes too long, and a policy holds it": {newCloneSet(3, 2, 1, 0, late, held), status.InProgressStatus, kruise.UpdateHeld, "No updates on Fridays. (rule freeze.hold)"},
		"a pod of a strategy that keeps old pods is deleted, long after the deadline": {newCloneSet(2, 2, 1, 1, late, func(set *kruise.CloneSet) {
			set.Spec.UpdateStrategy.Type = kruise.OnDeleteCloneSetUpdateStrategyType
		}), status.InProgressStatus, kruise.ProgressingReason, "1 of 3 pods are updated, 1 of them available"},
		"the strategy is OnDelete": {newCloneSet(3, 3, 1, 1, func(set *kruise.CloneSet) {
			set.Spec.UpdateStrategy.Type = kruise.OnDeleteCloneSetUpdateStrategyType
		}), status.CurrentStatus, kruise.PodsAvailableReason, "1 of 3 pods are updated and available"},
		"the controller has not seen the newest spec": {newCloneSet(3, 3, 3, 3, func(set *kruise.CloneSet) { set.Status.ObservedGeneration = 1 }),
			status.InProgressStatus, kruise.ProgressingReason, "3 of 3 pods are updated, 3 of them available"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &tc.set.Status
			was := len(s.Conditions)
			kstatus.SetConditions(s, kinds.JudgeRollout(kinds.ViewCloneSet(tc.set, s)), tc.set.Generation, time.Now())
			if got, message := compute(t, "CloneSet", tc.set); got != tc.want {
				t.Errorf("kstatus says %s (%s), want %s", got, message, tc.want)
			}
			ready := s.Conditions[len(s.Conditions)-1]
			if (ready.Status == corev1.ConditionTrue) != (tc.want == status.CurrentStatus) || ready.Type != kruise.ConditionReady || ready.Reason != tc.reason || ready.Message != tc.message {
				t.Errorf("the last condition is %+v, want %s: %s", ready, tc.reason, tc.message)
			}
			if others := len(s.Conditions) - was; others != 1 && tc.want == status.CurrentStatus || others != 2 && tc.want != status.CurrentStatus {
				t.Errorf("the conditions are %+v", s.Conditions)
			}
			kstatus.RemoveConditions(s)
			if len(s.Conditions) != was {
				t.Errorf("the conditions are %+v", s.Conditions)
			}
		})
	}
}

// The other kinds, in a rollout and after it.
func TestWhatKstatusSaysOfTheOtherWorkloads(t *testing.T) {
	meta, three := metav1.ObjectMeta{Name: "web", Generation: 2}, ptr.To(int32(3))
	partition := ptr.To(intstr.FromInt32(2))
	for kind, judge := range map[string]func(updated int32, keepsOld, partitioned bool) any{
		"StatefulSet": func(updated int32, keepsOld, partitioned bool) any {
			set := &kruise.StatefulSet{ObjectMeta: meta, Spec: kruise.StatefulSetSpec{Replicas: three}}
			set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateStatefulSetStrategy{}
			if keepsOld {
				set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
			}
			if partitioned {
				set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(int32(2))
			}
			set.Status = kruise.StatefulSetStatus{ObservedGeneration: 2, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, UpdatedReplicas: updated, UpdatedAvailableReplicas: updated}
			kstatus.SetConditions(&set.Status, kinds.JudgeRollout(kinds.ViewStatefulSet(set, &set.Status)), 2, time.Now())
			return set
		},
		"DaemonSet": func(updated int32, keepsOld, partitioned bool) any {
			set := &kruise.DaemonSet{ObjectMeta: meta}
			set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateDaemonSet{}
			if keepsOld {
				set.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
			}
			if partitioned {
				set.Spec.UpdateStrategy.RollingUpdate.Partition = partition
			}
			set.Status = kruise.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, CurrentNumberScheduled: 3, NumberReady: 3, NumberAvailable: 3, UpdatedNumberScheduled: updated}
			kstatus.SetConditions(&set.Status, kinds.JudgeRollout(kinds.ViewDaemonSet(set, &set.Status)), 2, time.Now())
			return set
		},
		"SidecarSet": func(updated int32, keepsOld, partitioned bool) any {
			set := &kruise.SidecarSet{ObjectMeta: meta}
			if keepsOld {
				set.Spec.UpdateStrategy.Type = kruise.NotUpdateSidecarSetStrategyType
			}
			if partitioned {
				set.Spec.UpdateStrategy.Partition = partition
			}
			set.Status = kruise.SidecarSetStatus{ObservedGeneration: 2, MatchedPods: 3, ReadyPods: 3, UpdatedPods: updated, UpdatedReadyPods: updated}
			kstatus.SetConditions(&set.Status, kinds.JudgeRollout(kinds.ViewSidecarSet(set, &set.Status)), 2, time.Now())
			return set
		},
		"UnitedDeployment": func(updated int32, keepsOld, partitioned bool) any {
			d := &kruise.UnitedDeployment{ObjectMeta: meta, Spec: kruise.UnitedDeploymentSpec{Replicas: three}}
			d.Spec.Template.CloneSetTemplate = &kruise.CloneSetTemplateSpec{}
			if keepsOld {
				d.Spec.Template.CloneSetTemplate.Spec.UpdateStrategy.Type = kruise.OnDeleteCloneSetUpdateStrategyType
			}
			if partitioned {
				d.Spec.UpdateStrategy.ManualUpdate = &kruise.ManualUpdate{Partitions: map[string]int32{"a": 2}}
			}
			d.Status = kruise.UnitedDeploymentStatus{
				ObservedGeneration: 2, Replicas: 3, ReadyReplicas: 3, UpdatedReplicas: updated, UpdatedReadyReplicas: updated,
				SubsetStatuses: []kruise.UnitedDeploymentSubsetStatus{{Name: "a", Replicas: 3, ReadyReplicas: 3}},
			}
			kstatus.SetConditions(&d.Status, kinds.JudgeRollout(kinds.ViewUnitedDeployment(d, &d.Status)), 2, time.Now())
			return d
		},
	} {
		for _, tc := range []struct {
			name                  string
			updated               int32
			keepsOld, partitioned bool
			want                  status.Status
		}{
			{"in a rollout", 1, false, false, status.InProgressStatus},
			{"after it", 3, false, false, status.CurrentStatus},
			{"at its partition", 1, false, true, status.CurrentStatus},
			{"before its partition", 0, false, true, status.InProgressStatus},
			{"with a strategy that keeps old pods", 1, true, false, status.CurrentStatus},
		} {
			if got, message := compute(t, kind, judge(tc.updated, tc.keepsOld, tc.partitioned)); got != tc.want {
				t.Errorf("of a %s %s kstatus says %s (%s), want %s", kind, tc.name, got, message, tc.want)
			}
		}
	}
}

// A partition that limits the creation of pods too leaves nodes without one.
func TestADaemonSetWhosePartitionLimitsCreation(t *testing.T) {
	set := &kruise.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}}
	set.Spec.ScaleStrategy.PartitionedScaling = true
	set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateDaemonSet{Partition: ptr.To(intstr.FromInt32(2))}
	for pods, want := range []status.Status{status.InProgressStatus, status.CurrentStatus, status.CurrentStatus} {
		n := int32(pods)
		set.Status = kruise.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, CurrentNumberScheduled: n, NumberReady: n, NumberAvailable: n, UpdatedNumberScheduled: n}
		kstatus.SetConditions(&set.Status, kinds.JudgeRollout(kinds.ViewDaemonSet(set, &set.Status)), 2, time.Now())
		if got, message := compute(t, "DaemonSet", set); got != want {
			t.Errorf("with %d pods kstatus says %s (%s), want %s", pods, got, message, want)
		}
	}
}

// The times are those of the last change, so that a round without news writes nothing.
func TestConditionsOfTheSameStateDoNotChange(t *testing.T) {
	set := newCloneSet(3, 3, 3, 3)
	write := func(at int64) kruise.CloneSetStatus {
		kstatus.SetConditions(&set.Status, kinds.JudgeRollout(kinds.ViewCloneSet(set, &set.Status)), set.Generation, time.Unix(at, 0))
		return *set.Status.DeepCopy()
	}
	first, second := write(100), write(200)
	if len(first.Conditions) != 1 || first.Conditions[0] != second.Conditions[0] {
		t.Errorf("got %v and then %v", first.Conditions, second.Conditions)
	}
	set.Status.UpdatedAvailableReplicas, set.Status.AvailableReplicas = 2, 2
	if third := write(300); len(third.Conditions) != 2 || third.Conditions[1].LastTransitionTime.Unix() != 300 {
		t.Errorf("got %v", third.Conditions)
	}
}

// An object whose last round failed is not ready, until another round has succeeded. A job that has ended stays what it is.
func TestAnObjectThatFailsToReconcileIsNotReady(t *testing.T) {
	now, ready := time.Unix(1_800_000_000, 0), kstatus.NewReady("Done", "all is well")
	fail := func(s any) {
		condition.SetCondition(s, condition.Condition{Type: condition.FailedReconcile, Status: metav1.ConditionTrue, Reason: condition.FailedReconcile, Message: "no answer"}, 2, metav1.NewTime(now))
		kstatus.SetUnready(s, kstatus.NewReconciling(condition.FailedReconcile, "no answer"), 2, now)
	}
	running, ended := &kruise.ImagePullJobStatus{}, &kruise.ImagePullJobStatus{CompletionTime: ptr.To(metav1.Now())}
	for _, step := range []struct {
		name   string
		status *kruise.ImagePullJobStatus
		do     func(any)
		want   status.Status
		reason string
	}{
		{"the first round fails", running, fail, status.InProgressStatus, condition.FailedReconcile},
		{"a round says that it is ready, before it fails", running, func(s any) { kstatus.SetConditions(s, ready, 2, now) }, status.InProgressStatus, condition.FailedReconcile},
		{"a round says what it waits for, before it fails", running, func(s any) { kstatus.SetConditions(s, kstatus.NewReconciling("Held", "frozen"), 2, now) }, status.InProgressStatus, "Held"},
		{"that round fails", running, fail, status.InProgressStatus, "Held"},
		{"a round after one that succeeded", running, func(s any) {
			condition.RemoveConditions(s, condition.FailedReconcile)
			kstatus.SetConditions(s, ready, 2, now)
		}, status.CurrentStatus, "Done"},
		{"a round fails before it says anything", running, fail, status.InProgressStatus, condition.FailedReconcile},
		{"a job ends", ended, func(s any) { kstatus.SetConditions(s, ready, 2, now) }, status.CurrentStatus, "Done"},
		{"its remains cannot be removed", ended, fail, status.CurrentStatus, "Done"},
		{"its controller says again that it has ended", ended, func(s any) { kstatus.SetConditions(s, ready, 2, now) }, status.CurrentStatus, "Done"},
	} {
		step.do(step.status)
		got, message := compute(t, "ImagePullJob", &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2}, Status: *step.status})
		is, _ := condition.FindCondition(step.status, kruise.ConditionReady)
		if got != step.want || (is.Status == metav1.ConditionTrue) != (step.want == status.CurrentStatus) || is.Reason != step.reason {
			t.Errorf("%s: kstatus says %s (%s), and Ready is %+v; want %s, %s", step.name, got, message, is, step.want, step.reason)
		}
	}
}
