// SPDX-License-Identifier: Apache-2.0

package kubestatemetrics

import (
	"slices"
	"strings"

	appsv1alpha1 "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	appsv1beta1 "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	policyv1beta1 "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
)

// A kind is a kind of objects and what is measured of each.
type kind struct {
	group, version, name string
	// prefix is in front of the names of its metrics.
	prefix string
	// label has the name of the object, in each series.
	label      string
	namespaced bool
	metrics    []metric
}

var (
	appsGroup   = appsv1beta1.GroupVersion.Group
	policyGroup = policyv1beta1.GroupVersion.Group
	v1beta1     = appsv1beta1.GroupVersion.Version
	v1alpha1    = appsv1alpha1.GroupVersion.Version
)

// The metrics of CloneSets, StatefulSets, DaemonSets, SidecarSets, BroadcastJobs and WorkloadSpreads have the names that
// kruise-state-metrics gives them. Those of the other kinds are named alike.
var kinds = slices.Concat(listWorkloads(), listJobs(), listPlacement(), listPolicies())

// newKind returns a kind of OpenKruise whose metrics begin with kruise_ and its name in lower case. The metric of its generation has
// the name generation.
func newKind(version, name, generation string, metrics ...metric) kind {
	lower := strings.ToLower(name)
	return kind{group: appsGroup, version: version, name: name, prefix: "kruise_" + lower, label: lower, namespaced: true,
		metrics: append(listCommon(generation), metrics...)}
}

// The metrics that several kinds have.
var (
	observed     = newCount("status_observed_generation", "status.observedGeneration", "The generation that the controller has seen.")
	wanted       = newNumber("spec_replicas", "spec.replicas", "The pods that are wanted.")
	existing     = newCount("status_replicas", "status.replicas", "The pods that exist.")
	ready        = newCount("status_replicas_ready", "status.readyReplicas", "The pods that are ready.")
	available    = newCount("status_replicas_available", "status.availableReplicas", "The pods that have been ready for `minReadySeconds`.")
	updated      = newCount("status_replicas_updated", "status.updatedReplicas", "The pods of the newest revision.")
	updatedReady = newCount("status_replicas_updated_ready", "status.updatedReadyReplicas", "The pods of the newest revision that are ready.")
)

// newStrategyType measures how pods are updated.
func newStrategyType(name string) metric {
	return newText(name, "spec.updateStrategy.type", "type", "How pods are updated, in the label `type`.")
}

// newPartition measures how many pods an update leaves out. Path is that of the settings of the update.
func newPartition(path string) metric {
	return newNumber("spec_strategy_partition", path+".partition", "The pods that stay at their revision; a percentage is a fraction.")
}

// newMaxUnavailable measures how many pods an update makes unavailable at most. Path is that of the settings of the update.
func newMaxUnavailable(path string) metric {
	return newNumber("spec_strategy_rollingupdate_max_unavailable", path+".maxUnavailable", "The pods that an update makes unavailable at most; a percentage is a fraction.")
}

// newPaused measures whether an update is paused. Path is that of the settings of the update.
func newPaused(path string) metric {
	return newCount("spec_strategy_paused", path+".paused", "1 if the update is paused.")
}

// rolling is the path of the settings of an update of most kinds.
const rolling = "spec.updateStrategy.rollingUpdate"

func listWorkloads() []kind {
	return []kind{
		newKind(v1beta1, "CloneSet", "spec_metadata_generation",
			wanted,
			newStrategyType("strategy_type"),
			newPartition(rolling),
			newMaxUnavailable(rolling),
			newNumber("spec_strategy_rollingupdate_max_surge", rolling+".maxSurge", "The pods that an update adds at most; a percentage is a fraction."),
			newPaused(rolling),
			observed,
			existing,
			ready,
			available,
			updated,
			updatedReady,
			newCount("status_replicas_expected_updated", "status.expectedUpdatedReplicas", "The pods that the partition lets be updated."),
		),
		newKind(v1beta1, "StatefulSet", "metadata_generation",
			wanted,
			newStrategyType("spec_strategy_type"),
			newNumber("spec_strategy_partition", rolling+".partition", "The number of pods that stay at their revision, those with the smallest ordinals first."),
			newMaxUnavailable(rolling),
			newPaused(rolling),
			newText("spec_reserveordinals", "spec.reserveOrdinals", "ordinal", "An ordinal, or a range of them, that no pod has, in the label `ordinal`."),
			observed,
			existing,
			ready,
			available,
			newCount("status_replicas_current", "status.currentReplicas", "The pods of the last revision that all pods were of."),
			updated,
			updatedReady,
			newText("status_current_revision", "status.currentRevision", "revision", "The last revision that all pods were of, in the label `revision`."),
			newText("status_update_revision", "status.updateRevision", "revision", "The newest revision, in the label `revision`."),
		),
		newKind(v1beta1, "DaemonSet", "metadata_generation",
			newStrategyType("spec_strategy_type"),
			newPartition(rolling),
			newMaxUnavailable(rolling),
			newNumber("spec_strategy_rollingupdate_max_surge", rolling+".maxSurge", "The nodes that have two pods in an update at most; a percentage is a fraction."),
			newPaused(rolling),
			observed,
			newCount("status_current_number_scheduled", "status.currentNumberScheduled", "The nodes that have a pod and should."),
			newCount("status_desired_number_scheduled", "status.desiredNumberScheduled", "The nodes that should have a pod."),
			newCount("status_number_available", "status.numberAvailable", "The nodes that should have a pod, and have one that has been ready for `minReadySeconds`."),
			newCount("status_number_misscheduled", "status.numberMisscheduled", "The nodes that have a pod and should not."),
			newCount("status_number_ready", "status.numberReady", "The nodes that should have a pod, and have one that is ready."),
			newCount("status_number_unavailable", "status.numberUnavailable", "The nodes that should have a pod that is available, and have none."),
			newCount("status_updated_number_scheduled", "status.updatedNumberScheduled", "The nodes with a pod of the newest revision."),
		),
	}
}

func listJobs() []kind {
	started := newNumber("status_start_time", "status.startTime", "When the job started, in seconds since 1970.")
	completed := newNumber("status_completion_time", "status.completionTime", "When it ended, in seconds since 1970.")
	return []kind{
		newKind(v1beta1, "BroadcastJob", "metadata_generation",
			newNumber("status_spec_parallelism", "spec.parallelism", "The pods that run at a time; a percentage of the nodes is a fraction."),
			newText("spec_strategy_type", "spec.completionPolicy.type", "type", "Whether the job ends, in the label `type`."),
			newNumber("spec_strategy_activedeadline_seconds", "spec.completionPolicy.activeDeadlineSeconds", "How long the job may take, in seconds."),
			newNumber("spec_strategy_ttl_seconds", "spec.completionPolicy.ttlSecondsAfterFinished", "How long the job is kept when it has ended, in seconds."),
			newCount("status_active", "status.active", "The pods that run or wait to run."),
			newCount("status_succeeded", "status.succeeded", "The pods that have succeeded."),
			newCount("status_failed", "status.failed", "The pods that have failed."),
			newCount("status_desired", "status.desired", "The nodes that should run a pod."),
			started, completed,
		),
		newKind(v1beta1, "AdvancedCronJob", "metadata_generation",
			newCount("spec_paused", "spec.paused", "1 if no job is started."),
			newNumber("status_last_schedule_time", "status.lastScheduleTime", "When the newest job that still exists was due, in seconds since 1970."),
		),
		newKind(v1alpha1, "EphemeralJob", "metadata_generation",
			newCount("spec_paused", "spec.paused", "1 if the job is paused."),
			newState("status_phase", "status.phase", "phase", "The phase of the job.", listPhases()...),
			newCount("status_match", "status.match", "The pods that the job selects."),
			newCount("status_running", "status.running", "The pods with a container of the job that runs."),
			newCount("status_waiting", "status.waiting", "The pods with a container of the job that waits, and none that runs."),
			newCount("status_succeeded", "status.succeeded", "The pods whose containers have succeeded."),
			newCount("status_failed", "status.failed", "The pods with a container of the job that has failed, or that could not be added."),
			started, completed,
		),
		newKind(v1beta1, "ContainerRecreateRequest", "metadata_generation",
			newText("spec_pod", "spec.podName", "pod", "The pod whose containers are restarted, in the label `pod`."),
			newState("status_phase", "status.phase", "phase", "The phase of the request.", "Pending", "Recreating", "Succeeded", "Failed", "Completed"),
			completed,
		),
		newKind(v1beta1, "ImagePullJob", "metadata_generation",
			newText("spec_image", "spec.image", "image", "The image, in the label `image`."),
			newCount("status_desired", "status.desired", "The nodes that should have the image."),
			newCount("status_active", "status.active", "The nodes that pull it."),
			newCount("status_succeeded", "status.succeeded", "The nodes that have it."),
			newCount("status_failed", "status.failed", "The nodes that could not pull it."),
			started, completed,
		),
		newKind(v1beta1, "ImageListPullJob", "metadata_generation",
			newCount("status_desired", "status.desired", "The images of the job."),
			newCount("status_active", "status.active", "The images that are being pulled."),
			newCount("status_completed", "status.completed", "The images whose jobs have ended."),
			newCount("status_succeeded", "status.succeeded", "The images that all nodes have."),
			started, completed,
		),
		newGlobal(newKind(v1beta1, "NodeImage", "metadata_generation",
			newCount("status_desired", "status.desired", "The tags of images that the node should have."),
			newCount("status_succeeded", "status.succeeded", "The tags that it has."),
			newCount("status_failed", "status.failed", "The tags that it could not pull."),
			newCount("status_pulling", "status.pulling", "The tags that it pulls."),
			newCount("status_waiting", "status.waiting", "The tags that it has yet to pull."),
		)),
	}
}

// listPhases returns the phases of an EphemeralJob, which its schema does not list.
func listPhases() (out []string) {
	for _, phase := range []appsv1alpha1.EphemeralJobPhase{
		appsv1alpha1.EphemeralJobRunning, appsv1alpha1.EphemeralJobSucceeded, appsv1alpha1.EphemeralJobFailed, appsv1alpha1.EphemeralJobWaiting,
		appsv1alpha1.EphemeralJobPaused, appsv1alpha1.EphemeralJobError, appsv1alpha1.EphemeralJobUnknown,
	} {
		out = append(out, string(phase))
	}
	return out
}

func listPlacement() []kind {
	return []kind{
		newKind(v1beta1, "UnitedDeployment", "metadata_generation",
			wanted,
			observed,
			existing,
			ready,
			updated,
			updatedReady,
			newCount("status_reserved_pods", "status.reservedPods", "The pods that other subsets stand in for."),
			newSubsetNumber("status_subset_replicas", "status.subsetStatuses", "replicas", "The pods of a subset; 0 without a subset until the controller has seen the object.", true),
			newSubsetNumber("status_subset_replicas_ready", "status.subsetStatuses", "readyReplicas", "The pods of a subset that are ready; 0 without a subset until the controller has seen the object.", true),
		),
		newKind(v1beta1, "WorkloadSpread", "spec_metadata_generation",
			newText("spec_strategy_type", "spec.scheduleStrategy.type", "type", "How pods get their subset, in the label `type`."),
			newSubsetNumber("spec_subsets_max_replicas", "spec.subsets", "maxReplicas", "The pods that a subset has at most; a percentage is a fraction.", false),
			observed,
			newSubsetNumber("status_subset_replicas", "status.subsetStatuses", "replicas", "The pods of a subset.", false),
			newSubsetNumber("status_subset_replicas_missing", "status.subsetStatuses", "missingReplicas", "The pods that a subset has room for; -1 is no limit.", false),
		),
		newGlobal(newKind(v1beta1, "SidecarSet", "spec_metadata_generation",
			newStrategyType("spec_strategy_type"),
			newPartition("spec.updateStrategy"),
			newMaxUnavailable("spec.updateStrategy"),
			newPaused("spec.updateStrategy"),
			newContainerText("spec_containers_injectpolicy", "podInjectPolicy", "policy", "Where a container is put, in the label `policy`."),
			newContainerText("spec_containers_strategy_type", "upgradeStrategy.upgradeType", "type", "How a container is updated, in the label `type`."),
			newContainerText("spec_containers_strategy_hotupgradeemptyimage", "upgradeStrategy.hotUpgradeEmptyImage", "image", "The image that waits for a hot upgrade, in the label `image`."),
			newContainerText("spec_containers_volumepolicy", "shareVolumePolicy.type", "policy", "Whether a container has the volumes of the others, in the label `policy`."),
			observed,
			newCount("status_replicas_matched", "status.matchedPods", "The pods that are selected and have all containers."),
			newCount("status_replicas_updated", "status.updatedPods", "The pods with containers of the newest revision."),
			newCount("status_replicas_ready", "status.readyPods", "The pods that have all containers and are ready."),
			newCount("status_replicas_updated_ready", "status.updatedReadyPods", "The pods with containers of the newest revision that are ready."),
		)),
		newGlobal(newKind(v1beta1, "ResourceDistribution", "metadata_generation",
			observed,
			newCount("status_desired", "status.desired", "The namespaces that should have the object."),
			newCount("status_succeeded", "status.succeeded", "The namespaces that have it."),
			newCount("status_failed", "status.failed", "The namespaces where it could not be written."),
		)),
		newKind(v1beta1, "PersistentPodState", "metadata_generation", observed),
		newKind(v1alpha1, "PodProbeMarker", "metadata_generation",
			observed,
			newCount("status_matched_pods", "status.matchedPods", "The pods that are probed."),
		),
		newGlobal(newKind(v1alpha1, "NodePodProbe", "metadata_generation")),
	}
}

func listPolicies() []kind {
	budget := newKind(v1beta1, "PodUnavailableBudget", "metadata_generation",
		observed,
		newCount("status_desired_available", "status.desiredAvailable", "The pods that should be available."),
		newCount("status_current_available", "status.currentAvailable", "The pods that are available, less those that are disrupted or unavailable."),
		newCount("status_unavailable_allowed", "status.unavailableAllowed", "The pods that may become unavailable now."),
		newCount("status_total_replicas", "status.totalReplicas", "The pods that the budget counts."),
	)
	budget.group = policyGroup
	cluster := newGlobal(newBundle("ClusterPolicyBundle", "Enforce", "Shadow", "Canary"))
	return []kind{budget, cluster, newBundle("PolicyBundle", "Enforce", "Shadow")}
}

func newBundle(name string, modes ...string) kind {
	k := newKind(v1alpha1, name, "metadata_generation",
		newState("spec_mode", "spec.mode", "mode", "What the policies do.", modes...),
		observed,
		newText("status_active_revision", "status.activeRevision", "revision", "The revision that decides, in the label `revision`."),
		newNumber("status_last_activation_time", "status.lastActivationTime", "When that revision took effect, in seconds since 1970."),
	)
	k.group, k.prefix = policyGroup, "regatta_"+k.label
	return k
}

// newGlobal returns a kind whose objects are in no namespace.
func newGlobal(k kind) kind {
	k.namespaced = false
	return k
}
