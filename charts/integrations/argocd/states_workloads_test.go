// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

const heldMessage = "CloneSet shop/web waits for a person to approve revision web-6d5f. (rule canary-approval.approval)"

func workloadStates() []state {
	return slices.Concat(cloneSetStates(), statefulSetStates(), daemonSetStates(), sidecarSetStates(), unitedDeploymentStates())
}

func newCloneSet() *kruise.CloneSet {
	return &kruise.CloneSet{
		ObjectMeta: newMeta(),
		Spec: kruise.CloneSetSpec{
			Replicas: ptr.To(int32(10)), Selector: newSelector(), Template: newTemplate(), ProgressDeadlineSeconds: ptr.To(int32(600)),
			UpdateStrategy: kruise.CloneSetUpdateStrategy{
				Type: kruise.RollingUpdateCloneSetUpdateStrategyType,
				RollingUpdate: &kruise.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: kruise.InPlaceIfPossiblePodUpdatePolicyType, MaxUnavailable: ptr.To(intstr.FromString("20%")),
				},
			},
		},
		Status: kruise.CloneSetStatus{
			ObservedGeneration: generation, Replicas: 10, ReadyReplicas: 10, AvailableReplicas: 10, UpdatedReplicas: 10, UpdatedReadyReplicas: 10,
			UpdatedAvailableReplicas: 10, ExpectedUpdatedReplicas: 10, UpdateRevision: "web-6d5f", CurrentRevision: "web-6d5f",
			LabelSelector: "app=web", CollisionCount: ptr.To(int32(0)),
		},
	}
}

// withCloneSetCounts sets the counts of pods.
func withCloneSetCounts(pods, available, updated, updatedAvailable, expected int32) func(*kruise.CloneSet) {
	return func(o *kruise.CloneSet) {
		s := &o.Status
		s.Replicas, s.ReadyReplicas, s.AvailableReplicas = pods, available, available
		s.UpdatedReplicas, s.UpdatedReadyReplicas, s.UpdatedAvailableReplicas, s.ExpectedUpdatedReplicas = updated, updatedAvailable, updatedAvailable, expected
		s.CurrentRevision = "web-77c9"
	}
}

func withCloneSetCondition(kind kruise.CloneSetConditionType, status corev1.ConditionStatus, reason, message string) func(*kruise.CloneSet) {
	return func(o *kruise.CloneSet) {
		o.Status.Conditions = append(o.Status.Conditions, kruise.CloneSetCondition{
			Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Unix(1700000000, 0),
		})
	}
}

func pauseCloneSet(o *kruise.CloneSet) { o.Spec.UpdateStrategy.RollingUpdate.Paused = true }

func withPartition(partition intstr.IntOrString) func(*kruise.CloneSet) {
	return func(o *kruise.CloneSet) { o.Spec.UpdateStrategy.RollingUpdate.Partition = &partition }
}

func makeCloneSetUnobserved(o *kruise.CloneSet) { o.Generation = generation + 1 }

func cloneSetStates() []state {
	held := withCloneSetCondition(kruise.UpdateHeld, corev1.ConditionTrue, "CanaryApproval", heldMessage)
	paused := "spec.updateStrategy.rollingUpdate.paused is true: "
	pausedAlpha := "spec.updateStrategy.paused is true: "
	return []state{
		{prose: "all pods are updated and available", object: with(newCloneSet),
			want: healthy("10 of 10 pods are updated and available.")},
		{prose: "no pod is wanted", object: with(newCloneSet, withCloneSetCounts(0, 0, 0, 0, 0), func(o *kruise.CloneSet) { o.Spec.Replicas = ptr.To(int32(0)) }),
			want: healthy("0 of 0 pods are updated and available.")},
		{prose: "the controller has not seen the newest change", object: with(newCloneSet, makeCloneSetUnobserved), want: progressing(unobservedMessage)},
		{prose: "the object is new", object: with(newCloneSet, func(o *kruise.CloneSet) { o.Status = kruise.CloneSetStatus{} }), want: progressing(unobservedMessage)},
		{prose: "pods are being updated", object: with(newCloneSet, withCloneSetCounts(10, 9, 4, 3, 10)),
			want: progressing("4 of 10 pods are updated, 3 of them available. 9 of 10 pods are available.")},
		{prose: "pods are missing", object: with(newCloneSet, withCloneSetCounts(8, 8, 8, 8, 10)),
			want: progressing("8 of 10 pods are updated, 8 of them available. There are 8 pods, and 10 are wanted.")},
		{prose: "all pods are updated, and one is not available", object: with(newCloneSet, withCloneSetCounts(10, 9, 10, 9, 10)),
			want: progressing("10 of 10 pods are updated, 9 of them available. 9 of 10 pods are available.")},
		{prose: "the partition is reached", object: with(newCloneSet, withCloneSetCounts(10, 10, 3, 3, 3), withPartition(intstr.FromInt32(7))),
			want: suspended("3 of 10 pods are updated and available. The partition keeps 7 of 10 pods at their revision: lower it, or run the action promote.")},
		{prose: "the partition keeps all pods", object: with(newCloneSet, withCloneSetCounts(10, 10, 0, 0, 0), withPartition(intstr.FromString("100%"))),
			want: suspended("0 of 10 pods are updated and available. The partition keeps 10 of 10 pods at their revision: lower it, or run the action promote.")},
		{prose: "the partition is reached, and an old pod is not available", object: with(newCloneSet, withCloneSetCounts(10, 9, 3, 3, 3), withPartition(intstr.FromInt32(7))),
			want: progressing("3 of 3 pods are updated, 3 of them available. 9 of 10 pods are available. The partition keeps 7 of 10 pods at their revision: lower it, or run the action promote.")},
		{prose: "a partition is set, and all pods are of the newest revision", object: with(newCloneSet, withPartition(intstr.FromInt32(7)), func(o *kruise.CloneSet) { o.Status.ExpectedUpdatedReplicas = 3 }),
			want: healthy("10 of 10 pods are updated and available.")},
		{prose: "it is paused in a rollout", object: with(newCloneSet, withCloneSetCounts(10, 10, 4, 4, 10), pauseCloneSet),
			want:  suspended("4 of 10 pods are updated, 4 of them available. " + paused + "no pod is updated until it is false."),
			alpha: suspended("4 of 10 pods are updated, 4 of them available. " + pausedAlpha + "no pod is updated until it is false.")},
		{prose: "it is paused, and updated pods do not become available", object: with(newCloneSet, withCloneSetCounts(10, 9, 4, 3, 10), pauseCloneSet),
			want:  progressing("4 of 10 pods are updated, 3 of them available. 9 of 10 pods are available. " + paused + "no pod is updated until it is false."),
			alpha: progressing("4 of 10 pods are updated, 3 of them available. 9 of 10 pods are available. " + pausedAlpha + "no pod is updated until it is false.")},
		{prose: "it is paused, and no pod waits for an update", object: with(newCloneSet, pauseCloneSet),
			want:  healthy("10 of 10 pods are updated and available. " + paused + "the next revision waits until it is false."),
			alpha: healthy("10 of 10 pods are updated and available. " + pausedAlpha + "the next revision waits until it is false.")},
		{prose: "a policy holds the rollout", object: with(newCloneSet, withCloneSetCounts(10, 10, 1, 1, 10), held),
			want: suspended("1 of 10 pods are updated, 1 of them available. Held: " + heldMessage)},
		{prose: "a policy holds some pods, and others are being updated", object: with(newCloneSet, withCloneSetCounts(10, 9, 2, 1, 10), held),
			want: progressing("2 of 10 pods are updated, 1 of them available. 9 of 10 pods are available. Held: " + heldMessage)},
		{prose: "no policy holds it any more", object: with(newCloneSet, withCloneSetCounts(10, 10, 2, 2, 10), withCloneSetCondition(kruise.UpdateHeld, corev1.ConditionFalse, kruise.NotHeldReason, "No policy holds the update.")),
			want: progressing("2 of 10 pods are updated, 2 of them available.")},
		{prose: "the strategy is OnDelete, and pods are old", object: with(newCloneSet, withCloneSetCounts(10, 10, 1, 1, 10), func(o *kruise.CloneSet) {
			o.Spec.UpdateStrategy = kruise.CloneSetUpdateStrategy{Type: kruise.OnDeleteCloneSetUpdateStrategyType}
		}),
			want: suspended("1 of 10 pods are updated, 1 of them available. spec.updateStrategy.type is OnDelete: a pod is updated when a client deletes it.")},
		{prose: "the deadline is exceeded", object: with(newCloneSet, withCloneSetCounts(10, 9, 1, 0, 10), withCloneSetCondition(kruise.CloneSetConditionProgressing, corev1.ConditionFalse, kruise.CloneSetProgressDeadlineExceededReason, "CloneSet revision web-6d5f has timed out progressing")),
			want: degraded("CloneSet revision web-6d5f has timed out progressing")},
		{prose: "the controller fails to update pods", object: with(newCloneSet, withCloneSetCounts(10, 10, 1, 1, 10), withCloneSetCondition(kruise.CloneSetConditionFailedUpdate, corev1.ConditionTrue, "FailedUpdate", "pods is forbidden")),
			want: degraded("pods is forbidden")},
		{prose: "the controller fails to create pods", object: with(newCloneSet, withCloneSetCounts(9, 9, 9, 9, 10), withCloneSetCondition(kruise.CloneSetConditionFailedScale, corev1.ConditionTrue, "FailedScale", "exceeded quota")),
			want: degraded("exceeded quota")},
		{prose: "the controller cannot read what it needs", object: with(newCloneSet, withCloneSetCondition("FailedReconcile", corev1.ConditionTrue, "FailedReconcile", "listing pods: forbidden")),
			want: degraded("listing pods: forbidden")},
	}
}

func newStatefulSet() *kruise.StatefulSet {
	return &kruise.StatefulSet{
		ObjectMeta: newMeta(),
		Spec: kruise.StatefulSetSpec{
			Replicas: ptr.To(int32(5)), Selector: newSelector(), Template: newTemplate(), ServiceName: "web",
			UpdateStrategy: kruise.StatefulSetUpdateStrategy{
				Type:          appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &kruise.RollingUpdateStatefulSetStrategy{PodUpdatePolicy: kruise.RecreatePodUpdatePolicyType, Partition: ptr.To(int32(0))},
			},
		},
		Status: kruise.StatefulSetStatus{
			ObservedGeneration: generation, Replicas: 5, ReadyReplicas: 5, AvailableReplicas: 5, CurrentReplicas: 5, UpdatedReplicas: 5,
			UpdatedReadyReplicas: 5, UpdatedAvailableReplicas: 5, CurrentRevision: "web-6d5f", UpdateRevision: "web-6d5f",
		},
	}
}

func withStatefulSetCounts(pods, available, updated, updatedAvailable int32) func(*kruise.StatefulSet) {
	return func(o *kruise.StatefulSet) {
		s := &o.Status
		s.Replicas, s.ReadyReplicas, s.AvailableReplicas = pods, available, available
		s.UpdatedReplicas, s.UpdatedReadyReplicas, s.UpdatedAvailableReplicas = updated, updatedAvailable, updatedAvailable
		s.CurrentReplicas, s.CurrentRevision = pods-updated, "web-77c9"
	}
}

func withStatefulSetPartition(partition int32) func(*kruise.StatefulSet) {
	return func(o *kruise.StatefulSet) { o.Spec.UpdateStrategy.RollingUpdate.Partition = &partition }
}

// workloadCondition is a condition of a StatefulSet or a DaemonSet that is True.
func workloadCondition(kind, reason, message string) []kruise.WorkloadCondition {
	return []kruise.WorkloadCondition{{Type: kruise.WorkloadConditionType(kind), Status: corev1.ConditionTrue, Reason: reason, Message: message}}
}

func withStatefulSetCondition(kind, reason, message string) func(*kruise.StatefulSet) {
	return func(o *kruise.StatefulSet) { o.Status.Conditions = workloadCondition(kind, reason, message) }
}

func statefulSetStates() []state {
	return []state{
		{prose: "all pods are updated and available", object: with(newStatefulSet), want: healthy("5 of 5 pods are updated and available.")},
		{prose: "the controller has not seen the newest change", object: with(newStatefulSet, func(o *kruise.StatefulSet) { o.Generation++ }), want: progressing(unobservedMessage)},
		{prose: "pods are being updated", object: with(newStatefulSet, withStatefulSetCounts(5, 4, 2, 1)),
			want: progressing("2 of 5 pods are updated, 1 of them available. 4 of 5 pods are available.")},
		{prose: "the partition is reached", object: with(newStatefulSet, withStatefulSetCounts(5, 5, 2, 2), withStatefulSetPartition(3)),
			want: suspended("2 of 5 pods are updated and available. The partition keeps 3 of 5 pods at their revision: lower it, or run the action promote.")},
		{prose: "the partition is greater than the number of pods", object: with(newStatefulSet, withStatefulSetCounts(5, 5, 0, 0), withStatefulSetPartition(9)),
			want: suspended("0 of 5 pods are updated and available. The partition keeps 5 of 5 pods at their revision: lower it, or run the action promote.")},
		{prose: "it is paused in a rollout", object: with(newStatefulSet, withStatefulSetCounts(5, 5, 2, 2), func(o *kruise.StatefulSet) { o.Spec.UpdateStrategy.RollingUpdate.Paused = true }),
			want: suspended("2 of 5 pods are updated, 2 of them available. spec.updateStrategy.rollingUpdate.paused is true: no pod is updated until it is false.")},
		{prose: "a policy holds the rollout", object: with(newStatefulSet, withStatefulSetCounts(5, 5, 1, 1), withStatefulSetCondition(kruise.UpdateHeld, "Frozen", "Frozen until Monday. (rule change-freeze.window)")),
			want: suspended("1 of 5 pods are updated, 1 of them available. Held: Frozen until Monday. (rule change-freeze.window)")},
		{prose: "the strategy is OnDelete, and pods are old", object: with(newStatefulSet, withStatefulSetCounts(5, 5, 1, 1), func(o *kruise.StatefulSet) {
			o.Spec.UpdateStrategy = kruise.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		}),
			want: suspended("1 of 5 pods are updated, 1 of them available. spec.updateStrategy.type is OnDelete: a pod is updated when a client deletes it.")},
		{prose: "the controller fails to update pods", object: with(newStatefulSet, withStatefulSetCounts(5, 5, 1, 1), withStatefulSetCondition("FailedUpdatePod", "FailedUpdatePod", "pods is forbidden")),
			want: degraded("pods is forbidden")},
		{prose: "the controller fails to create pods", object: with(newStatefulSet, withStatefulSetCounts(4, 4, 4, 4), withStatefulSetCondition("FailedCreatePod", "FailedCreatePod", "exceeded quota")),
			want: degraded("exceeded quota")},
		{prose: "claims cannot grow to their templates", object: with(newStatefulSet, withStatefulSetCounts(5, 5, 1, 1), withStatefulSetCondition("VolumeClaimsDiffer", "CannotGrow", "Claims of another storage class: data-web-0.")),
			want: degraded("Claims of another storage class: data-web-0.")},
		{prose: "claims are larger than their templates", object: with(newStatefulSet, withStatefulSetCondition("VolumeClaimsDiffer", "Larger", "Claims that are larger: data-web-0.")),
			want: healthy("5 of 5 pods are updated and available. Claims that are larger: data-web-0.")},
	}
}

func newDaemonSet() *kruise.DaemonSet {
	return &kruise.DaemonSet{
		ObjectMeta: newMeta(),
		Spec: kruise.DaemonSetSpec{
			Selector: newSelector(), Template: newTemplate(),
			UpdateStrategy: kruise.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &kruise.RollingUpdateDaemonSet{Type: kruise.StandardRollingUpdateType, MaxUnavailable: ptr.To(intstr.FromInt32(1))},
			},
		},
		Status: kruise.DaemonSetStatus{
			ObservedGeneration: generation, DesiredNumberScheduled: 8, CurrentNumberScheduled: 8, NumberReady: 8, UpdatedNumberScheduled: 8,
			NumberAvailable: 8, CurrentRevision: "web-6d5f", UpdateRevision: "6d5f",
		},
	}
}

func withDaemonSetCounts(pods, available, updated int32) func(*kruise.DaemonSet) {
	return func(o *kruise.DaemonSet) {
		s := &o.Status
		s.CurrentNumberScheduled, s.NumberReady, s.NumberAvailable, s.UpdatedNumberScheduled = pods, available, available, updated
		s.NumberUnavailable, s.CurrentRevision = s.DesiredNumberScheduled-available, "web-77c9"
	}
}

func withDaemonSetPartition(partition intstr.IntOrString) func(*kruise.DaemonSet) {
	return func(o *kruise.DaemonSet) { o.Spec.UpdateStrategy.RollingUpdate.Partition = &partition }
}

func daemonSetStates() []state {
	return []state{
		{prose: "all pods are updated and available", object: with(newDaemonSet), want: healthy("8 of 8 pods are updated and available.")},
		{prose: "no node fits", object: with(newDaemonSet, func(o *kruise.DaemonSet) { o.Status = kruise.DaemonSetStatus{ObservedGeneration: generation} }),
			want: healthy("0 of 0 pods are updated and available.")},
		{prose: "the controller has not seen the newest change", object: with(newDaemonSet, func(o *kruise.DaemonSet) { o.Generation++ }), want: progressing(unobservedMessage)},
		{prose: "pods are being updated", object: with(newDaemonSet, withDaemonSetCounts(8, 7, 2)),
			want: progressing("2 of 8 pods are updated, 2 of them available. 7 of 8 pods are available.")},
		{prose: "the partition is reached", object: with(newDaemonSet, withDaemonSetCounts(8, 8, 4), withDaemonSetPartition(intstr.FromString("50%"))),
			want: suspended("4 of 8 pods are updated and available. The partition keeps 4 of 8 pods at their revision: lower it, or run the action promote.")},
		{prose: "a partition of a fraction of a percent is reached", object: with(newDaemonSet, withDaemonSetCounts(8, 8, 7), withDaemonSetPartition(intstr.FromString("12.5%"))),
			want: suspended("7 of 8 pods are updated and available. The partition keeps 1 of 8 pods at their revision: lower it, or run the action promote.")},
		{prose: "the partition lets only some nodes have a pod", object: with(newDaemonSet, withDaemonSetCounts(3, 3, 3), withDaemonSetPartition(intstr.FromInt32(5)), func(o *kruise.DaemonSet) { o.Spec.ScaleStrategy.PartitionedScaling = true }),
			want: suspended("3 of 8 pods are updated and available. The partition keeps 5 of 8 pods at their revision: lower it, or run the action promote.")},
		{prose: "it is paused in a rollout", object: with(newDaemonSet, withDaemonSetCounts(8, 8, 2), func(o *kruise.DaemonSet) { o.Spec.UpdateStrategy.RollingUpdate.Paused = ptr.To(true) }),
			want: suspended("2 of 8 pods are updated, 2 of them available. spec.updateStrategy.rollingUpdate.paused is true: no pod is updated until it is false.")},
		{prose: "the strategy selects some nodes", object: with(newDaemonSet, withDaemonSetCounts(8, 8, 2), func(o *kruise.DaemonSet) {
			o.Spec.UpdateStrategy.RollingUpdate.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}
		}),
			want: suspended("2 of 8 pods are updated, 2 of them available. spec.updateStrategy.rollingUpdate.selector limits the update to some nodes, and the status does not count these.")},
		{prose: "a policy holds the rollout", object: with(newDaemonSet, withDaemonSetCounts(8, 8, 2), func(o *kruise.DaemonSet) {
			o.Status.Conditions = workloadCondition(kruise.UpdateHeld, "Frozen", "Frozen until Monday. (rule change-freeze.window)")
		}),
			want: suspended("2 of 8 pods are updated, 2 of them available. Held: Frozen until Monday. (rule change-freeze.window)")},
		{prose: "the strategy is OnDelete, and pods are old", object: with(newDaemonSet, withDaemonSetCounts(8, 8, 2), func(o *kruise.DaemonSet) {
			o.Spec.UpdateStrategy = kruise.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
		}),
			want: suspended("2 of 8 pods are updated, 2 of them available. spec.updateStrategy.type is OnDelete: a pod is updated when a client deletes it.")},
		{prose: "the controller fails to update pods", object: with(newDaemonSet, withDaemonSetCounts(8, 8, 2), func(o *kruise.DaemonSet) {
			o.Status.Conditions = workloadCondition("FailedUpdate", "FailedUpdate", "pods is forbidden")
		}),
			want: degraded("pods is forbidden")},
	}
}

func newSidecarSet() *kruise.SidecarSet {
	return &kruise.SidecarSet{
		ObjectMeta: newClusterMeta(),
		Spec: kruise.SidecarSetSpec{
			Selector:   newSelector(),
			Containers: []kruise.SidecarContainer{{Container: corev1.Container{Name: "log-agent", Image: "log-agent:2"}}},
			UpdateStrategy: kruise.SidecarSetUpdateStrategy{
				Type: kruise.RollingUpdateSidecarSetStrategyType, MaxUnavailable: ptr.To(intstr.FromInt32(1)),
			},
		},
		Status: kruise.SidecarSetStatus{
			ObservedGeneration: generation, MatchedPods: 20, UpdatedPods: 20, ReadyPods: 20, UpdatedReadyPods: 20, LatestRevision: "web-6d5f",
		},
	}
}

func withSidecarSetCounts(ready, updated, updatedReady int32) func(*kruise.SidecarSet) {
	return func(o *kruise.SidecarSet) {
		o.Status.ReadyPods, o.Status.UpdatedPods, o.Status.UpdatedReadyPods = ready, updated, updatedReady
	}
}

// condition is a condition of Kubernetes that is of the newest spec.
func condition(kind string, status metav1.ConditionStatus, reason, message string) []metav1.Condition {
	return []metav1.Condition{{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: generation, LastTransitionTime: metav1.Unix(1700000000, 0),
	}}
}

func withSidecarSetCondition(kind, reason, message string) func(*kruise.SidecarSet) {
	return func(o *kruise.SidecarSet) {
		o.Status.Conditions = condition(kind, metav1.ConditionTrue, reason, message)
	}
}

func withSidecarSetPartition(partition intstr.IntOrString) func(*kruise.SidecarSet) {
	return func(o *kruise.SidecarSet) { o.Spec.UpdateStrategy.Partition = &partition }
}

func sidecarSetStates() []state {
	return []state{
		{prose: "all pods are updated and ready", object: with(newSidecarSet), want: healthy("20 of 20 pods are updated and available.")},
		{prose: "no pod has its containers", object: with(newSidecarSet, func(o *kruise.SidecarSet) { o.Status = kruise.SidecarSetStatus{ObservedGeneration: generation} }),
			want: healthy("0 of 0 pods are updated and available.")},
		{prose: "the controller has not seen the newest change", object: with(newSidecarSet, func(o *kruise.SidecarSet) { o.Generation++ }), want: progressing(unobservedMessage)},
		{prose: "pods are being updated", object: with(newSidecarSet, withSidecarSetCounts(19, 5, 4)),
			want: progressing("5 of 20 pods are updated, 4 of them available. 19 of 20 pods are available.")},
		{prose: "the partition is reached", object: with(newSidecarSet, withSidecarSetCounts(20, 7, 7), withSidecarSetPartition(intstr.FromString("62%"))),
			want: suspended("7 of 20 pods are updated and available. The partition keeps 13 of 20 pods at their revision: lower it, or run the action promote.")},
		{prose: "a partition of nearly all pods leaves one", object: with(newSidecarSet, withSidecarSetCounts(20, 1, 1), withSidecarSetPartition(intstr.FromString("99%"))),
			want: suspended("1 of 20 pods are updated and available. The partition keeps 19 of 20 pods at their revision: lower it, or run the action promote.")},
		{prose: "it is paused in a rollout", object: with(newSidecarSet, withSidecarSetCounts(20, 5, 5), func(o *kruise.SidecarSet) { o.Spec.UpdateStrategy.Paused = true }),
			want: suspended("5 of 20 pods are updated, 5 of them available. spec.updateStrategy.paused is true: no pod is updated until it is false.")},
		{prose: "the strategy is NotUpdate, and pods are old", object: with(newSidecarSet, withSidecarSetCounts(20, 5, 5), func(o *kruise.SidecarSet) { o.Spec.UpdateStrategy.Type = kruise.NotUpdateSidecarSetStrategyType }),
			want: healthy("5 of 20 pods are updated, 5 of them available. spec.updateStrategy.type is NotUpdate: running pods keep the containers that they have.")},
		{prose: "the strategy selects some pods", object: with(newSidecarSet, withSidecarSetCounts(20, 5, 5), func(o *kruise.SidecarSet) { o.Spec.UpdateStrategy.Selector = newSelector() }),
			want: suspended("5 of 20 pods are updated, 5 of them available. spec.updateStrategy.selector limits the update to some pods, and the status does not count these.")},
		{prose: "a policy holds the rollout", object: with(newSidecarSet, withSidecarSetCounts(20, 5, 5), withSidecarSetCondition(kruise.UpdateHeld, "Frozen", "Frozen until Monday. (rule change-freeze.window)")),
			want: suspended("5 of 20 pods are updated, 5 of them available. Held: Frozen until Monday. (rule change-freeze.window)")},
		{prose: "pods lack its containers", object: with(newSidecarSet, withSidecarSetCondition(kruise.SidecarSetInjectionMissed, "NoAnswer", "2 pods have no log-agent.")),
			want: degraded("2 pods have no log-agent.")},
		{prose: "another SidecarSet has a container of that name", object: with(newSidecarSet, withSidecarSetCondition(kruise.SidecarSetConflict, "ContainerNameTaken", "SidecarSet other has log-agent.")),
			want: degraded("SidecarSet other has log-agent.")},
		{prose: "the controller fails to update pods", object: with(newSidecarSet, withSidecarSetCounts(20, 5, 5), withSidecarSetCondition("FailedUpdate", "FailedUpdate", "pods is forbidden")),
			want: degraded("pods is forbidden")},
		{prose: "the revision for new pods is gone", object: with(newSidecarSet, withSidecarSetCondition("InjectionRevisionGone", "InjectionRevisionGone", "No revision is named stable.")),
			want: healthy("20 of 20 pods are updated and available. No revision is named stable.")},
	}
}

func newUnitedDeployment() *kruise.UnitedDeployment {
	return &kruise.UnitedDeployment{
		ObjectMeta: newMeta(),
		Spec: kruise.UnitedDeploymentSpec{
			Replicas: ptr.To(int32(6)), Selector: newSelector(),
			Template: kruise.SubsetTemplate{CloneSetTemplate: &kruise.CloneSetTemplateSpec{
				Spec: kruise.CloneSetSpec{Selector: newSelector(), Template: newTemplate(), UpdateStrategy: kruise.CloneSetUpdateStrategy{
					RollingUpdate: &kruise.RollingUpdateCloneSetStrategy{PodUpdatePolicy: kruise.RecreatePodUpdatePolicyType},
				}},
			}},
			Topology: kruise.Topology{Subsets: []kruise.Subset{{Name: "zone-a"}, {Name: "zone-b"}}},
		},
		Status: kruise.UnitedDeploymentStatus{
			ObservedGeneration: generation, Replicas: 6, ReadyReplicas: 6, UpdatedReplicas: 6, UpdatedReadyReplicas: 6,
			CurrentRevision: "web-6d5f", UpdatedRevision: "web-6d5f",
			SubsetStatuses: []kruise.UnitedDeploymentSubsetStatus{{Name: "zone-a", Replicas: 3, ReadyReplicas: 3}, {Name: "zone-b", Replicas: 3, ReadyReplicas: 3}},
			Conditions:     []kruise.UnitedDeploymentCondition{{Type: kruise.UnitedDeploymentSubsetUpdated, Status: corev1.ConditionTrue}},
		},
	}
}

func withUnitedDeploymentCounts(ready, updated, updatedReady int32) func(*kruise.UnitedDeployment) {
	return func(o *kruise.UnitedDeployment) {
		s := &o.Status
		s.ReadyReplicas, s.UpdatedReplicas, s.UpdatedReadyReplicas, s.CurrentRevision = ready, updated, updatedReady, "web-77c9"
	}
}

func withUnitedDeploymentCondition(kind kruise.UnitedDeploymentConditionType, status corev1.ConditionStatus, reason, message string) func(*kruise.UnitedDeployment) {
	return func(o *kruise.UnitedDeployment) {
		o.Status.Conditions = append(o.Status.Conditions, kruise.UnitedDeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

func withSubsetPartitions(partitions map[string]int32) func(*kruise.UnitedDeployment) {
	return func(o *kruise.UnitedDeployment) {
		o.Spec.UpdateStrategy = kruise.UnitedDeploymentUpdateStrategy{Type: kruise.ManualUpdateStrategyType, ManualUpdate: &kruise.ManualUpdate{Partitions: partitions}}
	}
}

// withDeployments makes the subsets Deployments.
func withDeployments(o *kruise.UnitedDeployment) {
	o.Spec.Template = kruise.SubsetTemplate{DeploymentTemplate: &kruise.DeploymentTemplateSpec{Spec: appsv1.DeploymentSpec{Selector: newSelector(), Template: newTemplate()}}}
}

func unitedDeploymentStates() []state {
	template := "spec.template.cloneSetTemplate.spec.updateStrategy"
	return []state{
		{prose: "all pods are updated and ready", object: with(newUnitedDeployment), want: healthy("6 of 6 pods are updated and available.")},
		{prose: "its subsets say how many pods there are", object: with(newUnitedDeployment, func(o *kruise.UnitedDeployment) {
			o.Spec.Replicas = nil
			o.Spec.Topology.Subsets[0].Replicas, o.Spec.Topology.Subsets[1].Replicas = ptr.To(intstr.FromInt32(4)), ptr.To(intstr.FromInt32(2))
		}), want: healthy("6 of 6 pods are updated and available.")},
		{prose: "the controller has not seen the newest change", object: with(newUnitedDeployment, func(o *kruise.UnitedDeployment) { o.Generation++ }), want: progressing(unobservedMessage)},
		{prose: "no controller acts on the kind", object: with(newUnitedDeployment, func(o *kruise.UnitedDeployment) { o.Status = kruise.UnitedDeploymentStatus{} }, withUnitedDeploymentCondition("Stalled", corev1.ConditionTrue, "FeatureGateOff", "The feature gate UnitedDeploymentGate is off.")),
			want: degraded("The feature gate UnitedDeploymentGate is off.")},
		{prose: "pods are being updated", object: with(newUnitedDeployment, withUnitedDeploymentCounts(5, 3, 2)),
			want: progressing("3 of 6 pods are updated, 2 of them available. 5 of 6 pods are available.")},
		{prose: "the partitions are reached", object: with(newUnitedDeployment, withUnitedDeploymentCounts(6, 3, 3), withSubsetPartitions(map[string]int32{"zone-a": 0, "zone-b": 9})),
			want: suspended("3 of 6 pods are updated and available. The partition keeps 3 of 6 pods at their revision: lower it, or run the action promote.")},
		{prose: "its subsets are Deployments, which have no partition", object: with(newUnitedDeployment, withUnitedDeploymentCounts(6, 3, 3), withSubsetPartitions(map[string]int32{"zone-b": 3}), withDeployments),
			want: progressing("3 of 6 pods are updated, 3 of them available.")},
		{prose: "the template of its subsets is paused", object: with(newUnitedDeployment, withUnitedDeploymentCounts(6, 3, 3), func(o *kruise.UnitedDeployment) {
			o.Spec.Template.CloneSetTemplate.Spec.UpdateStrategy.RollingUpdate.Paused = true
		}),
			want: suspended("3 of 6 pods are updated, 3 of them available. " + template + ".rollingUpdate.paused is true: no pod is updated until it is false.")},
		{prose: "the strategy of its subsets is OnDelete", object: with(newUnitedDeployment, withUnitedDeploymentCounts(6, 3, 3), func(o *kruise.UnitedDeployment) {
			o.Spec.Template.CloneSetTemplate.Spec.UpdateStrategy = kruise.CloneSetUpdateStrategy{Type: kruise.OnDeleteCloneSetUpdateStrategyType}
		}),
			want: suspended("3 of 6 pods are updated, 3 of them available. " + template + ".type is OnDelete: a pod is updated when a client deletes it.")},
		{prose: "a policy holds the update", object: with(newUnitedDeployment, withUnitedDeploymentCounts(6, 3, 3), withUnitedDeploymentCondition(kruise.UpdateHeld, corev1.ConditionTrue, "Frozen", "Frozen until Monday. (rule change-freeze.window)")),
			want: suspended("3 of 6 pods are updated, 3 of them available. Held: Frozen until Monday. (rule change-freeze.window)")},
		{prose: "a policy holds the number of pods of a subset", object: with(newUnitedDeployment, withUnitedDeploymentCondition(kruise.UnitedDeploymentAllocationHeld, corev1.ConditionTrue, "Frozen", "Subset zone-a: Frozen. (rule zones.frozen)")),
			want: suspended("6 of 6 pods are updated, 6 of them available. Held: Subset zone-a: Frozen. (rule zones.frozen)")},
		{prose: "a subset reports a failure", object: with(newUnitedDeployment, withUnitedDeploymentCondition(kruise.UnitedDeploymentSubsetFailure, corev1.ConditionTrue, "Error", "subset zone-a: exceeded quota")),
			want: degraded("subset zone-a: exceeded quota")},
		{prose: "a subset selects no node", object: with(newUnitedDeployment, withUnitedDeploymentCondition(kruise.UnitedDeploymentPlacing, corev1.ConditionFalse, "NoNodes", "No node has the labels of zone-c.")),
			want: degraded("No node has the labels of zone-c.")},
		{prose: "old workloads go when pods of the subsets are available", object: with(newUnitedDeployment, withUnitedDeploymentCounts(5, 6, 5), withUnitedDeploymentCondition(kruise.UnitedDeploymentPlacing, corev1.ConditionFalse, "WaitingForSubsets", "web-old goes when 1 more pod is available.")),
			want: progressing("6 of 6 pods are updated, 5 of them available. 5 of 6 pods are available. web-old goes when 1 more pod is available.")},
	}
}
