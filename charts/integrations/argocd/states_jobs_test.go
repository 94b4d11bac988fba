// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

const pausedJob = "spec.paused is true: nothing is started until it is false."

func jobStates() []state {
	return slices.Concat(broadcastJobStates(), advancedCronJobStates(), imagePullJobStates(), imageListPullJobStates(), ephemeralJobStates(), requestStates())
}

func newTime() *metav1.Time { return ptr.To(metav1.Unix(1700000000, 0)) }

func newBroadcastJob() *kruise.BroadcastJob {
	return &kruise.BroadcastJob{
		ObjectMeta: newMeta(),
		Spec:       kruise.BroadcastJobSpec{Template: newTemplate(), Parallelism: ptr.To(intstr.FromInt32(2))},
		Status: kruise.BroadcastJobStatus{
			StartTime: newTime(), Active: 2, Succeeded: 3, Failed: 0, Desired: 8, Phase: kruise.BroadcastJobPhaseRunning,
		},
	}
}

func jobCondition(kind kruise.JobConditionType, message string) []kruise.JobCondition {
	return []kruise.JobCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: string(kind), Message: message}}
}

func withBroadcastJobCondition(kind kruise.JobConditionType, message string) func(*kruise.BroadcastJob) {
	return func(o *kruise.BroadcastJob) {
		o.Status.Conditions = append(o.Status.Conditions, jobCondition(kind, message)...)
	}
}

func idleBroadcastJob(o *kruise.BroadcastJob) { o.Status.Active = 0 }

func endBroadcastJob(o *kruise.BroadcastJob) { o.Status.Active, o.Status.CompletionTime = 0, newTime() }

func broadcastJobStates() []state {
	running, idle := "Pods: 3 of 8 succeeded, 0 failed, 2 active.", "Pods: 3 of 8 succeeded, 0 failed, 0 active."
	return []state{
		{prose: "the job is new", object: with(newBroadcastJob, func(o *kruise.BroadcastJob) { o.Status = kruise.BroadcastJobStatus{} }), want: progressing(unobservedMessage)},
		{prose: "pods run", object: with(newBroadcastJob), want: progressing(running)},
		{prose: "the job is complete", object: with(newBroadcastJob, endBroadcastJob, withBroadcastJobCondition(kruise.BroadcastJobComplete, "Job completed, 7 pods succeeded, 1 pods failed")),
			want: healthy("Job completed, 7 pods succeeded, 1 pods failed")},
		{prose: "the job has failed", object: with(newBroadcastJob, endBroadcastJob, withBroadcastJobCondition(kruise.BroadcastJobFailed, "failed pod is found")),
			want: degraded("failed pod is found")},
		{prose: "the job is paused", object: with(newBroadcastJob, idleBroadcastJob, func(o *kruise.BroadcastJob) { o.Spec.Paused, o.Status.Phase = true, kruise.BroadcastJobPhasePaused }),
			want: suspended(idle + " " + pausedJob)},
		{prose: "the job is paused, and pods run", object: with(newBroadcastJob, func(o *kruise.BroadcastJob) { o.Spec.Paused, o.Status.Phase = true, kruise.BroadcastJobPhasePaused }),
			want: progressing(running + " " + pausedJob)},
		{prose: "a failed pod has paused the job", object: with(newBroadcastJob, idleBroadcastJob, func(o *kruise.BroadcastJob) { o.Status.Phase = kruise.BroadcastJobPhasePaused }, withBroadcastJobCondition(kruise.BroadcastJobPausedByFailure, "Pod web-x has failed, one of 1.")),
			want: suspended(idle + " Pod web-x has failed, one of 1.")},
		{prose: "a policy holds the job", object: with(newBroadcastJob, idleBroadcastJob, withBroadcastJobCondition(kruise.BroadcastJobHeld, "Frozen until Monday. (rule change-freeze.jobs)")),
			want: suspended(idle + " Held: Frozen until Monday. (rule change-freeze.jobs)")},
		{prose: "no node fits the job", object: with(newBroadcastJob, func(o *kruise.BroadcastJob) { o.Status = kruise.BroadcastJobStatus{StartTime: newTime()} }, withBroadcastJobCondition("NoNodeFits", "No node fits the template of the job.")),
			want: suspended("Pods: 0 of 0 succeeded, 0 failed, 0 active. No node fits the template of the job.")},
		{prose: "pods do not terminate", object: with(newBroadcastJob, withBroadcastJobCondition("PodsStuckTerminating", "The job waits for 1 pods that were deleted.")),
			want: degraded("The job waits for 1 pods that were deleted.")},
		{prose: "the job never ends, and all nodes are done", object: with(newBroadcastJob, func(o *kruise.BroadcastJob) {
			o.Spec.CompletionPolicy.Type, o.Status.Active, o.Status.Succeeded = kruise.NeverCompletionPolicyType, 0, 8
		}),
			want: healthy("Pods: 8 of 8 succeeded, 0 failed, 0 active. The job keeps on for nodes to come.")},
	}
}

func newAdvancedCronJob() *kruise.AdvancedCronJob {
	return &kruise.AdvancedCronJob{
		ObjectMeta: newMeta(),
		Spec: kruise.AdvancedCronJobSpec{
			Schedule: "*/5 * * * *",
			Template: kruise.CronJobTemplate{BroadcastJobTemplate: &kruise.BroadcastJobTemplateSpec{Spec: kruise.BroadcastJobSpec{Template: newTemplate()}}},
		},
		Status: kruise.AdvancedCronJobStatus{
			Type: kruise.BroadcastJobTemplateKind, LastScheduleTime: newTime(), Active: []corev1.ObjectReference{{Kind: "BroadcastJob", Name: "web-1"}},
			Conditions: condition(kruise.AdvancedCronJobScheduleValid, metav1.ConditionTrue, "Valid", ""),
		},
	}
}

func withCronCondition(kind, reason, message string) func(*kruise.AdvancedCronJob) {
	return func(o *kruise.AdvancedCronJob) {
		o.Status.Conditions = append(o.Status.Conditions, condition(kind, metav1.ConditionTrue, reason, message)...)
	}
}

func advancedCronJobStates() []state {
	return []state{
		{prose: "the schedule is valid", object: with(newAdvancedCronJob), want: healthy("Active runs: 1.")},
		{prose: "the job is new", object: with(newAdvancedCronJob, func(o *kruise.AdvancedCronJob) { o.Status = kruise.AdvancedCronJobStatus{} }), want: progressing(unobservedMessage)},
		{prose: "the controller has not seen the newest change", object: with(newAdvancedCronJob, func(o *kruise.AdvancedCronJob) { o.Generation++ }), want: progressing(unobservedMessage)},
		{prose: "the schedule cannot be read", object: with(newAdvancedCronJob, func(o *kruise.AdvancedCronJob) {
			o.Status.Conditions = condition(kruise.AdvancedCronJobScheduleValid, metav1.ConditionFalse, "UnknownTimeZone", "unknown time zone Mars/Base")
		}), want: degraded("unknown time zone Mars/Base")},
		{prose: "the cron job is paused", object: with(newAdvancedCronJob, func(o *kruise.AdvancedCronJob) { o.Spec.Paused = ptr.To(true) }), want: suspended("Active runs: 1. " + pausedJob)},
		{prose: "a policy holds a run that is due", object: with(newAdvancedCronJob, withCronCondition(kruise.AdvancedCronJobRunHeld, "Frozen", "Frozen until Monday. (rule change-freeze.runs)")),
			want: suspended("Active runs: 1. Held: Frozen until Monday. (rule change-freeze.runs)")},
		{prose: "a run waits for the end of the one before", object: with(newAdvancedCronJob, withCronCondition(kruise.AdvancedCronJobRunHeld, "JobAlreadyActive", "Not starting job because prior execution is running")),
			want: healthy("Active runs: 1. Not starting job because prior execution is running")},
		{prose: "a run was left out", object: with(newAdvancedCronJob, withCronCondition(kruise.AdvancedCronJobRunLeftOut, "MissSchedule", "Missed scheduled time to start a job")),
			want: healthy("Active runs: 1. Missed scheduled time to start a job")},
	}
}

func newImagePullJob() *kruise.ImagePullJob {
	return &kruise.ImagePullJob{
		ObjectMeta: newMeta(),
		Spec: kruise.ImagePullJobSpec{
			Image: "nginx:1.27", ImagePullJobTemplate: kruise.ImagePullJobTemplate{
				Parallelism: ptr.To(intstr.FromInt32(10)), CompletionPolicy: kruise.CompletionPolicy{Type: kruise.AlwaysCompletionPolicyType},
			},
		},
		Status: kruise.ImagePullJobStatus{StartTime: newTime(), Desired: 12, Active: 4, Succeeded: 6, Message: "job is running, progress 50.0%"},
	}
}

func withPullCondition(kind, reason, message string) func(*kruise.ImagePullJob) {
	return func(o *kruise.ImagePullJob) {
		o.Status.Conditions = append(o.Status.Conditions, condition(kind, metav1.ConditionTrue, reason, message)...)
	}
}

func idleImagePullJob(o *kruise.ImagePullJob) { o.Status.Active = 0 }

func imagePullJobStates() []state {
	return []state{
		{prose: "the job is new", object: with(newImagePullJob, func(o *kruise.ImagePullJob) { o.Status = kruise.ImagePullJobStatus{} }), want: progressing(unobservedMessage)},
		{prose: "nodes pull the image", object: with(newImagePullJob), want: progressing("6 of 12 nodes have pulled the image.")},
		{prose: "all nodes have pulled the image", object: with(newImagePullJob, func(o *kruise.ImagePullJob) {
			o.Status = kruise.ImagePullJobStatus{StartTime: newTime(), CompletionTime: newTime(), Desired: 12, Succeeded: 12, Message: kruise.ImagePullJobCompletedMessage}
		}), want: healthy("12 of 12 nodes have pulled the image.")},
		{prose: "the job never ends, and all nodes have pulled the image", object: with(newImagePullJob, func(o *kruise.ImagePullJob) {
			o.Spec.CompletionPolicy.Type, o.Status.Active, o.Status.Succeeded = kruise.NeverCompletionPolicyType, 0, 12
		}), want: healthy("12 of 12 nodes have pulled the image.")},
		{prose: "nodes have given up", object: with(newImagePullJob, func(o *kruise.ImagePullJob) {
			o.Status.Failed, o.Status.FailedNodes = 2, []string{"node-3", "node-7"}
		}), want: degraded("2 of 12 nodes have not pulled the image, such as node-3 (job is running, progress 50.0%).")},
		{prose: "a policy denies nodes the image", object: with(newImagePullJob, func(o *kruise.ImagePullJob) {
			o.Status = kruise.ImagePullJobStatus{StartTime: newTime(), CompletionTime: newTime(), Desired: 12, Failed: 12, FailedNodes: []string{"node-1"}, Message: kruise.ImagePullJobCompletedMessage}
		}, withPullCondition(kruise.ImagePullJobDenied, "Registry", "Not from this registry. (rule images.registry)")),
			want: degraded("12 of 12 nodes have not pulled the image, such as node-1 (job has completed). Not from this registry. (rule images.registry)")},
		{prose: "a policy holds the pulls", object: with(newImagePullJob, idleImagePullJob, withPullCondition(kruise.ImagePullJobHeld, "Frozen", "Frozen until Monday. (rule change-freeze.pulls)")),
			want: suspended("6 of 12 nodes have pulled the image. Held: Frozen until Monday. (rule change-freeze.pulls)")},
		{prose: "a policy holds pulls, and nodes pull", object: with(newImagePullJob, withPullCondition(kruise.ImagePullJobHeld, "Frozen", "Frozen until Monday. (rule change-freeze.pulls)")),
			want: progressing("6 of 12 nodes have pulled the image. Held: Frozen until Monday. (rule change-freeze.pulls)")},
		{prose: "the parallelism is 0", object: with(newImagePullJob, idleImagePullJob, func(o *kruise.ImagePullJob) { o.Spec.Parallelism = ptr.To(intstr.FromInt32(0)) }),
			want: suspended("6 of 12 nodes have pulled the image. spec.parallelism is 0: no pull begins until it is greater.")},
		{prose: "the image has no valid name", object: with(newImagePullJob, func(o *kruise.ImagePullJob) { o.Status = kruise.ImagePullJobStatus{} }, withPullCondition(kruise.ImagePullJobHeld, kruise.InvalidImageReason, "No node pulls: spec.image is no image.")),
			want: degraded("No node pulls: spec.image is no image.")},
	}
}

func newImageListPullJob() *kruise.ImageListPullJob {
	return &kruise.ImageListPullJob{
		ObjectMeta: newMeta(),
		Spec: kruise.ImageListPullJobSpec{
			Images:               []string{"nginx:1.27", "redis:7"},
			ImagePullJobTemplate: kruise.ImagePullJobTemplate{CompletionPolicy: kruise.CompletionPolicy{Type: kruise.AlwaysCompletionPolicyType}},
		},
		Status: kruise.ImageListPullJobStatus{StartTime: newTime(), Desired: 2, Active: 1, Completed: 1, Succeeded: 1},
	}
}

func imageListPullJobStates() []state {
	return []state{
		{prose: "nodes pull the images", object: with(newImageListPullJob), want: progressing("1 of 2 images are pulled by all nodes.")},
		{prose: "all nodes have pulled the images", object: with(newImageListPullJob, func(o *kruise.ImageListPullJob) {
			o.Status = kruise.ImageListPullJobStatus{StartTime: newTime(), CompletionTime: newTime(), Desired: 2, Completed: 2, Succeeded: 2}
		}), want: healthy("2 of 2 images are pulled by all nodes.")},
		{prose: "nodes have given up an image", object: with(newImageListPullJob, func(o *kruise.ImageListPullJob) {
			o.Status.FailedImageStatuses = []kruise.FailedImageStatus{{ImagePullJob: "web-x", Name: "redis:7", Message: "1 of 12 nodes have not pulled the image: node-3."}}
		}), want: degraded("1 of 2 images have not been pulled by all nodes, such as redis:7: 1 of 12 nodes have not pulled the image: node-3.")},
		{prose: "the parallelism is 0", object: with(newImageListPullJob, func(o *kruise.ImageListPullJob) {
			o.Status.Active, o.Spec.Parallelism = 0, ptr.To(intstr.FromInt32(0))
		}), want: suspended("1 of 2 images are pulled by all nodes. spec.parallelism is 0: no pull begins until it is greater.")},
	}
}

func newEphemeralJob() *v1alpha1.EphemeralJob {
	return &v1alpha1.EphemeralJob{
		ObjectMeta: newMeta(),
		Spec: v1alpha1.EphemeralJobSpec{Selector: newSelector(), Template: v1alpha1.EphemeralContainerTemplateSpec{
			EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "busybox:1"}}},
		}},
		Status: v1alpha1.EphemeralJobStatus{
			StartTime: newTime(), Phase: v1alpha1.EphemeralJobRunning, Match: 4, Running: 1, Succeeded: 2,
			Conditions: jobCondition(v1alpha1.EphemeralJobConditionInitialized, ""),
		},
	}
}

func withEphemeralPhase(phase v1alpha1.EphemeralJobPhase, match, running, succeeded int32, conditions ...kruise.JobCondition) func(*v1alpha1.EphemeralJob) {
	return func(o *v1alpha1.EphemeralJob) {
		s := &o.Status
		s.Phase, s.Match, s.Running, s.Succeeded, s.Conditions = phase, match, running, succeeded, append(s.Conditions, conditions...)
	}
}

func ephemeralJobStates() []state {
	text := func(succeeded, match, running string) string {
		return "Pods: " + succeeded + " of " + match + " succeeded, " + running + " running."
	}
	return []state{
		{prose: "the job is new", object: with(newEphemeralJob, func(o *v1alpha1.EphemeralJob) { o.Status = v1alpha1.EphemeralJobStatus{} }), want: progressing(unobservedMessage)},
		{prose: "containers run in pods", object: with(newEphemeralJob), want: progressing(text("2", "4", "1"))},
		{prose: "the containers of all pods have succeeded", object: with(newEphemeralJob, withEphemeralPhase(v1alpha1.EphemeralJobSucceeded, 4, 0, 4)), want: healthy(text("4", "4", "0"))},
		{prose: "containers have failed", object: with(newEphemeralJob, withEphemeralPhase(v1alpha1.EphemeralJobFailed, 4, 0, 3, jobCondition(v1alpha1.EphemeralJobConditionFailed, "the containers of 1 of 4 pods failed")...)),
			want: degraded("the containers of 1 of 4 pods failed")},
		{prose: "the template has no containers", object: with(newEphemeralJob, withEphemeralPhase(v1alpha1.EphemeralJobError, 0, 0, 0, jobCondition(v1alpha1.EphemeralJobConditionError, "the template has no ephemeral containers")...)),
			want: degraded("the template has no ephemeral containers")},
		{prose: "the job is paused", object: with(newEphemeralJob, withEphemeralPhase(v1alpha1.EphemeralJobPaused, 4, 0, 2), func(o *v1alpha1.EphemeralJob) { o.Spec.Paused = true }),
			want: suspended(text("2", "4", "0") + " " + pausedJob)},
		{prose: "no pod matches", object: with(newEphemeralJob, withEphemeralPhase(v1alpha1.EphemeralJobWaiting, 0, 0, 0, jobCondition(v1alpha1.EphemeralJobConditionMatchedEmpty, "job match no pods")...)),
			want: suspended(text("0", "0", "0") + " No pod matches the selector.")},
		{prose: "a policy holds the job", object: with(newEphemeralJob, withEphemeralPhase(v1alpha1.EphemeralJobUnknown, 4, 0, 2, jobCondition(v1alpha1.EphemeralJobHeld, "Frozen until Monday. (rule change-freeze.jobs)")...)),
			want: suspended(text("2", "4", "0") + " Held: Frozen until Monday. (rule change-freeze.jobs)")},
		{prose: "a policy denies pods the containers", object: with(newEphemeralJob, withEphemeralPhase(v1alpha1.EphemeralJobRunning, 3, 1, 2, jobCondition(v1alpha1.EphemeralJobDenied, "Not in production. (rule debug.production)")...)),
			want: progressing(text("2", "3", "1") + " Denied: Not in production. (rule debug.production)")},
		{prose: "nodes of pods are not ready", object: with(newEphemeralJob, withEphemeralPhase(v1alpha1.EphemeralJobRunning, 4, 1, 2, jobCondition(v1alpha1.EphemeralJobWaitingForNodes, "Node node-3 is not ready.")...)),
			want: progressing(text("2", "4", "1") + " Node node-3 is not ready.")},
	}
}

func newRequest() *kruise.ContainerRecreateRequest {
	return &kruise.ContainerRecreateRequest{
		ObjectMeta: newMeta(),
		Spec:       kruise.ContainerRecreateRequestSpec{PodName: "web-0", Containers: []kruise.ContainerRecreateRequestContainer{{Name: "nginx"}, {Name: "log-agent"}}},
		Status: kruise.ContainerRecreateRequestStatus{
			Phase:                   kruise.ContainerRecreateRequestRecreating,
			ContainerRecreateStates: containerStates("Succeeded", "Recreating"),
		},
	}
}

func containerStates(phases ...string) (out []kruise.ContainerRecreateRequestContainerRecreateState) {
	for i, phase := range phases {
		s := kruise.ContainerRecreateRequestContainerRecreateState{Name: []string{"nginx", "log-agent"}[i], Phase: kruise.ContainerRecreateRequestPhase(phase)}
		if phase == "Failed" {
			s.Message = "not found container on Node"
		}
		out = append(out, s)
	}
	return out
}

func withRequestStates(phase kruise.ContainerRecreateRequestPhase, message string, phases ...string) func(*kruise.ContainerRecreateRequest) {
	return func(o *kruise.ContainerRecreateRequest) {
		o.Status = kruise.ContainerRecreateRequestStatus{Phase: phase, Message: message, ContainerRecreateStates: containerStates(phases...)}
	}
}

func requestStates() []state {
	heldRequest := func(o *kruise.ContainerRecreateRequest) {
		o.Status.Conditions = condition(kruise.ContainerRecreateRequestHeld, metav1.ConditionTrue, "BudgetExceeded", "Budget shop/web lets no pod be unavailable. (rule restart.budget)")
	}
	held := "0 of 2 containers have restarted. Held: Budget shop/web lets no pod be unavailable. (rule restart.budget)"
	return []state{
		{prose: "the request is new", object: with(newRequest, func(o *kruise.ContainerRecreateRequest) { o.Status = kruise.ContainerRecreateRequestStatus{} }), want: progressing(unobservedMessage)},
		{prose: "containers restart", object: with(newRequest), want: progressing("1 of 2 containers have restarted.")},
		{prose: "all containers have restarted", object: with(newRequest, withRequestStates(kruise.ContainerRecreateRequestCompleted, "", "Succeeded", "Succeeded")), want: healthy("2 of 2 containers have restarted.")},
		{prose: "a container was not restarted", object: with(newRequest, withRequestStates(kruise.ContainerRecreateRequestCompleted, "", "Succeeded", "Failed")),
			want: degraded("1 of 2 containers have restarted. Container log-agent: not found container on Node")},
		{prose: "the pod of the request is gone", object: with(newRequest, withRequestStates(kruise.ContainerRecreateRequestCompleted, "pod has gone", "Pending", "Pending")),
			want: degraded("0 of 2 containers have restarted. pod has gone")},
		{prose: "a budget or a policy holds the request", object: with(newRequest, withRequestStates(kruise.ContainerRecreateRequestPending, "", "Pending", "Pending"), heldRequest),
			want: suspended(held), alpha: progressing(strings.Split(held, " Held")[0])}, // its status has no conditions there
	}
}
