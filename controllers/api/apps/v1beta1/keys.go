// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Marks on pods, of more than one workload.
const (
	// LifecycleStateKey labels a pod with its LifecycleStateType; LifecycleTimestampKey is when that changed, RFC 3339.
	LifecycleStateKey     = "lifecycle.apps.kruise.io/state"
	LifecycleTimestampKey = "lifecycle.apps.kruise.io/timestamp"

	// SpecifiedDeleteKey, with any value, asks the workload to delete this pod within its budget.
	SpecifiedDeleteKey = "apps.kruise.io/specified-delete"

	// PodDeletionCostKey is the annotation that ranks pods at scale in, lower first.
	PodDeletionCostKey = "controller.kubernetes.io/pod-deletion-cost"
)

// Marks of CloneSets, their pods, claims and revisions.
const (
	// CloneSetInstanceIDKey labels a pod and its claims with the five characters they share.
	CloneSetInstanceIDKey = "apps.kruise.io/cloneset-instance-id"

	// CloneSetScalingExcludePreparingDeleteKey, with the value "true" on a v1alpha1 CloneSet, is what
	// spec.scaleStrategy.excludePreparingDelete is in v1beta1.
	CloneSetScalingExcludePreparingDeleteKey = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"

	// CloneSetVolumeClaimTemplateHashKey annotates a revision with the hash of the claim templates of its time.
	CloneSetVolumeClaimTemplateHashKey = "kruise.io/cloneset-volumeclaimtemplate-hash"
)

// Marks of the image pre-download before an in-place update.
const (
	// ImagePreDownloadCreatedKey labels a revision whose pull jobs exist. The doubled "pre" is what existing revisions carry.
	ImagePreDownloadCreatedKey = "apps.kruise.io/pre-predownload-created"
	// ImagePreDownloadIgnoredKey labels a revision that needs no pull jobs.
	ImagePreDownloadIgnoredKey = "apps.kruise.io/image-predownload-ignored"

	// The three annotations are what v1alpha1 objects carry instead of the fields of InPlaceUpdateStrategy.
	ImagePreDownloadParallelismKey         = "apps.kruise.io/image-predownload-parallelism"
	ImagePreDownloadTimeoutSecondsKey      = "apps.kruise.io/image-predownload-timeout-seconds"
	ImagePreDownloadMinUpdatedReadyPodsKey = "apps.kruise.io/image-predownload-min-updated-ready-pods"
)

// Marks of the other workloads.
const (
	// OwnedByAdvancedStatefulSetKey annotates a claim that the named set resizes.
	OwnedByAdvancedStatefulSetKey = "apps.kruise.io/owned-by-asts"

	// ProgressiveCreatePodKey, with the value "true" on a v1alpha1 DaemonSet, lets partition limit creation too.
	ProgressiveCreatePodKey = "daemonset.kruise.io/progressive-create-pod"

	// ScheduledAtKey annotates what an AdvancedCronJob creates with the time it was due, RFC 3339.
	ScheduledAtKey = "apps.kruise.io/scheduled-at"

	// BroadcastJobNameKey and BroadcastJobControllerUIDKey label the pods of a BroadcastJob.
	BroadcastJobNameKey          = "broadcastjob-name"
	BroadcastJobControllerUIDKey = "broadcastjob-controller-uid"

	// The marks of what a UnitedDeployment creates.
	ControllerRevisionHashKey      = "apps.kruise.io/controller-revision-hash"
	SubsetNameKey                  = "apps.kruise.io/subset-name"
	SubsetPatchKey                 = "apps.kruise.io/subset-patch"
	UnitedDeploymentReservedPodKey = "apps.kruise.io/united-deployment-reserved-pod"
)

// Container launch priority.
const (
	ContainerLaunchPriorityKey          = "apps.kruise.io/container-launch-priority"
	ContainerLaunchPriorityOrdered      = "Ordered"
	ContainerLaunchPriorityCompletedKey = "apps.kruise.io/container-launch-priority-completed"

	// ContainerLaunchPriorityEnv is what a user sets; ContainerLaunchBarrierEnv is what the webhook injects.
	ContainerLaunchPriorityEnv = "KRUISE_CONTAINER_PRIORITY"
	ContainerLaunchBarrierEnv  = "KRUISE_CONTAINER_BARRIER"

	// ContainerLaunchPriorityNativeKey annotates a pod of which containers became init containers that restart. It has the names
	// of all containers as they were declared, in order.
	ContainerLaunchPriorityNativeKey = "apps.kruise.io/container-launch-priority-native"
)

// Ends of containers, probes and ephemeral containers.
const (
	TerminateSidecarWhenJobExitEnv          = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT"
	TerminateSidecarWhenJobExitWithImageEnv = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT_WITH_IMAGE"
	TerminateSidecarIgnoreExitCodeEnv       = "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"
	SidecarTerminatedConditionType          = "SidecarTerminated"
	// SidecarTerminationRequestPrefix begins the names of ContainerRecreateRequests that end sidecars.
	SidecarTerminationRequestPrefix = "sidecar-termination-"
	// RestartInPlaceKey is an annotation of a CloneSet, StatefulSet or DaemonSet: the time, as in RFC 3339, at which
	// a user asked for a restart of all its containers in place. It is removed when they have restarted.
	RestartInPlaceKey = "rollout.regatta.sh/restart-in-place"
	// RestartOfKey is a label of ContainerRecreateRequests of such a restart, with the UID of the workload.
	RestartOfKey = "rollout.regatta.sh/restart-of"
	// LivenessRequestKey is a label of ContainerRecreateRequests for liveness probes that failed, with the container.
	LivenessRequestKey                  = "crr.regatta.sh/liveness"
	UsingEnhancedLivenessKey            = "apps.kruise.io/using-enhanced-liveness"
	ContainerProbeContextKey            = "apps.kruise.io/container-probe-context"
	PodProbeKey                         = "kruise.io/podprobe"
	PodProbeMarkerListKey               = "kruise.io/podprobemarker-list"
	NodePodProbeCleanupFinalizer        = "kruise.io/node-pod-probe-cleanup"
	EphemeralContainersCleanupFinalizer = "apps.kruise.io/ephemeralcontainers-cleanup"
	EphemeralJobIDEnv                   = "KRUISE_EJOB_ID"
)

// Persistent pod state.
const (
	InjectedPersistentPodStateKey     = "kruise.io/injected-persistent-pod-state"
	AutoGeneratePersistentPodStateKey = "kruise.io/auto-generate-persistent-pod-state"
	RequiredPersistentTopologyKey     = "kruise.io/required-persistent-topology"
	PreferredPersistentTopologyKey    = "kruise.io/preferred-persistent-topology"
	PersistentPodAnnotationsKey       = "kruise.io/persistent-pod-annotations"
)

// Resources and images that are copied to namespaces and nodes.
const (
	ResourceDistributionHashCodeKey = "kruise.io/resourcedistribution.resource.hashcode"
	ResourceDistributionFromKey     = "kruise.io/resourcedistribution.resource.from"

	ImagePullJobSourceKey     = "imagepulljobs.kruise.io/source-key"
	ImagePullJobSourceUIDKey  = "imagepulljobs.kruise.io/source-uid"
	ImagePullJobReferencesKey = "imagepulljobs.kruise.io/references"
	ImagePullJobModeKey       = "imagepulljobs.kruise.io/mode"

	// ImagePullJobFinalizer stays on a job until its secrets are released. It is not the delete-protection label.
	ImagePullJobFinalizer = "apps.kruise.io/deletion-protection"

	FakeNodeImageKey = "apps.kruise.io/fake-nodeimage"

	// PullingImageByKey annotates the sandbox configuration of our pulls, with the value PullingImageByDaemon.
	PullingImageByKey    = "apps.kruise.io/pulling-image-by"
	PullingImageByDaemon = "kruise-daemon"
)

// Container recreate requests.
const (
	ContainerRecreateRequestPodUIDKey          = "crr.apps.kruise.io/pod-uid"
	ContainerRecreateRequestNodeNameKey        = "crr.apps.kruise.io/node-name"
	ContainerRecreateRequestActiveKey          = "crr.apps.kruise.io/active"
	ContainerRecreateRequestUnreadyAcquiredKey = "crr.apps.kruise.io/unready-acquired"
	ContainerRecreateRequestSyncStatusesKey    = "crr.apps.kruise.io/sync-container-statuses"
	ContainerRecreateRequestReadinessUserAgent = "ContainerRecreateRequest"
)

// A node with this label and value has no kubelet of its own: no NodeImage, no NodePodProbe.
const (
	ServerlessNodeKey   = "type"
	ServerlessNodeValue = "virtual-kubelet"
)
