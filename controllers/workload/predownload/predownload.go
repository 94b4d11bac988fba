// SPDX-License-Identifier: Apache-2.0

// Package predownload pulls the images of a revision on the nodes of old pods before
// an update, by ImagePullJobs of the workload. No update waits for it, unless a
// policy holds pods whose nodes do not have the images yet.
package predownload

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
	"github.com/regatta-sh/regatta/controllers/workload/rollout"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=imagepulljobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=patch

// PrePullSpec is the configuration of a workload for pulling images ahead of updates.
type PrePullSpec struct {
	// Selector is the selector of the workload.
	Selector *metav1.LabelSelector
	// Parallelism is on how many nodes an image is pulled at the same time; 1 if nil.
	Parallelism *intstr.IntOrString
	// TimeoutSeconds is how long one pull may take; 300 if nil.
	TimeoutSeconds *int32
	// MinUpdatedReady is how many updated pods have to be ready before images are pulled.
	MinUpdatedReady int
	// MaxUnavailable is how many pods may be unavailable, percentages rounded down.
	MaxUnavailable int
	// SameNode is true if pods are recreated on their nodes.
	SameNode bool
}

// ParseAnnotations reads the annotations apps.kruise.io/image-predownload-* of a workload. It ignores a value
// that is no number. Percentages are of replicas.
func ParseAnnotations(workload client.Object, replicas int) (out PrePullSpec) {
	annotations := workload.GetAnnotations()
	number := func(key string) *int32 {
		n, err := strconv.ParseInt(annotations[key], 10, 32)
		if err != nil || n < 0 {
			return nil
		}
		return ptr.To(int32(n))
	}
	if n := number(kruise.ImagePreDownloadParallelismKey); n != nil {
		out.Parallelism = ptr.To(intstr.FromInt32(*n))
	}
	out.TimeoutSeconds = number(kruise.ImagePreDownloadTimeoutSecondsKey)
	if text := annotations[kruise.ImagePreDownloadMinUpdatedReadyPodsKey]; text != "" {
		if n, err := budget.ResolvePercent(intstr.Parse(text), replicas, true); err == nil {
			out.MinUpdatedReady = n
		}
	}
	return out
}

// Kind is a kind of workload whose images may be pulled ahead of updates.
type Kind interface {
	rollout.Kind
	// PredownloadSettings reads the configuration of a workload.
	PredownloadSettings(workload client.Object) PrePullSpec
}

const (
	timeout = 300
	backoff = 1
	ttl     = 600
	again   = 5 * time.Second
)

// NewAheadFunc returns what a controller of a kind does before it scales and updates a workload; see
// rollout.WithAhead. An event reports failures, and the next round tries again.
func NewAheadFunc(k Kind) func() rollout.Ahead {
	return func() rollout.Ahead {
		a := &pullJobState{kind: k}
		return func(ctx context.Context, r *rollout.Round, f *rollout.Facts) {
			if err := a.prepareJobs(ctx, r, f); err != nil {
				r.RecordNormal(kruise.FailedCreateImagePullJobReason, err.Error())
				r.RequeueAfter(again)
			}
			if len(a.jobs) > 0 {
				r.SetPulls(a.pendingPulls(ctx, r.CachedClient()))
			}
		}
	}
}

func (a *pullJobState) prepareJobs(ctx context.Context, r *rollout.Round, f *rollout.Facts) error {
	templates, ok := f.Templates.(interface{ AsPodTemplates() *rollout.PodTemplates })
	if !ok || r.Workload.GetDeletionTimestamp() != nil {
		return nil
	}
	t := templates.AsPodTemplates()
	current, update := sourceRevision(a.kind, f, t), t.History.Update
	if current == nil {
		a.jobs = nil
		return deleteJobs(ctx, r)
	}
	a.setRevision(update.Name)
	switch {
	case update.Labels[kruise.ImagePreDownloadIgnoredKey] != "":
		return nil
	case update.Labels[kruise.ImagePreDownloadCreatedKey] != "":
		return a.refreshJobs(ctx, r, update)
	}
	before, err := revision.DecodeTemplate(current)
	if err != nil {
		return fmt.Errorf("reading revision %s: %w", current.Name, err)
	}
	after, err := revision.DecodeTemplate(update)
	if err != nil {
		return fmt.Errorf("reading revision %s: %w", t.UpdateRevision(), err)
	}
	change, err := r.EvaluateChange(ctx, f, current.Name, update.Name)
	if err != nil {
		return err
	}
	wish := a.kind.PredownloadSettings(r.Workload)
	in := points.PredownloadInput{
		Workload: f.WorkloadFacts(), Strategy: f.Strategy, Revisions: points.Revisions{Current: current.Name, Update: update.Name}, Change: change.Action,
		MaxUnavailable: wish.MaxUnavailable, UpdatedReady: f.CountPods().UpdatedReady, MinUpdatedReady: wish.MinUpdatedReady,
		SameNode: wish.SameNode, Images: changedImages(before, after),
	}
	out, _ := rollout.EvaluatePoint(ctx, r, f, points.PredownloadPoint(), in)
	switch out.Action {
	case points.Ignore:
		return labelRevision(ctx, r, update, kruise.ImagePreDownloadIgnoredKey)
	case points.Pull:
		for _, image := range in.Images {
			job := jobOf(r.Workload, a.kind.WorkloadType(), wish, t, after, image)
			a.addJob(job.Name, image.Image)
			err := r.CachedClient().Create(ctx, job)
			if err == nil {
				r.RecordNormal(kruise.CreatedImagePullJobReason, fmt.Sprintf(kruise.CreatedImagePullJobMessage, job.Name, image.Image))
			} else if !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("failed to create ImagePullJob %s: %w", job.Name, err)
			}
		}
		a.complete = true
		return labelRevision(ctx, r, update, kruise.ImagePreDownloadCreatedKey)
	}
	return nil
}

// sourceRevision returns the revision from which pods are updated: the current revision in the status. For a
// kind whose status has none, it is the newest revision, other than the update
// revision, that a pod has. It returns nil if there is no other revision.
func sourceRevision(k Kind, f *rollout.Facts, t *rollout.PodTemplates) *appsv1.ControllerRevision {
	if t.CurrentRevision() != t.UpdateRevision() {
		return t.History.Current
	}
	if k.WorkloadType().CurrentRevision != nil {
		return nil
	}
	for _, rev := range slices.Backward(t.History.All) {
		if rev.Name != t.UpdateRevision() && slices.ContainsFunc(f.Pods, func(p *facts.Pod) bool { return t.HasRevision(p.Pod, rev.Name) }) {
			return rev
		}
	}
	return nil
}

// changedImages returns the images of the containers of a template that another template does not have so.
func changedImages(before, after *corev1.PodTemplateSpec) []points.ContainerImage {
	out := []points.ContainerImage{}
	for i := range after.Spec.Containers {
		c := points.ContainerImage{Container: after.Spec.Containers[i].Name, Image: after.Spec.Containers[i].Image}
		if j := slices.IndexFunc(before.Spec.Containers, func(old corev1.Container) bool { return old.Name == c.Container }); j >= 0 {
			c.Was = before.Spec.Containers[j].Image
		}
		if c.Image != c.Was {
			out = append(out, c)
		}
	}
	return out
}

// jobName returns the name of the job for a container of a revision.
func jobName(revision, container string) string { return revision + "-" + container }

// jobOf returns the job for an image. It pulls on the nodes of active pods of the workload that are not at the
// update revision.
func jobOf(owner client.Object, kind rollout.Type, wish PrePullSpec, t *rollout.PodTemplates, template *corev1.PodTemplateSpec, image points.ContainerImage) *kruise.ImagePullJob {
	label := t.LabelValue(t.UpdateRevision())
	labels := maps.Clone(template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[rollout.RevisionLabel] = label
	job := &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: owner.GetNamespace(), Name: jobName(t.UpdateRevision(), image.Container), Labels: labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind.GroupVersionKind)},
	}}
	selector := wish.Selector.DeepCopy()
	selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement{
		Key: rollout.RevisionLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{label},
	})
	job.Spec.Image = image.Image
	job.Spec.PodSelector = selector
	job.Spec.Parallelism = wish.Parallelism
	if job.Spec.Parallelism == nil {
		job.Spec.Parallelism = ptr.To(intstr.FromInt32(1))
	}
	job.Spec.PullPolicy = &kruise.PullPolicy{TimeoutSeconds: ptr.To(ptr.Deref(wish.TimeoutSeconds, timeout)), BackoffLimit: ptr.To[int32](backoff)}
	job.Spec.CompletionPolicy = kruise.CompletionPolicy{Type: kruise.AlwaysCompletionPolicyType, TTLSecondsAfterFinished: ptr.To[int32](ttl)}
	job.Spec.SandboxConfig = &kruise.SandboxConfig{Labels: template.Labels, Annotations: template.Annotations}
	for _, s := range template.Spec.ImagePullSecrets {
		job.Spec.PullSecrets = append(job.Spec.PullSecrets, s.Name)
	}
	return job
}

// labelRevision labels a revision, so that it is not evaluated again.
func labelRevision(ctx context.Context, r *rollout.Round, rev *appsv1.ControllerRevision, key string) error {
	marked := rev.DeepCopy()
	metav1.SetMetaDataLabel(&marked.ObjectMeta, key, "true")
	if err := r.CachedClient().Patch(ctx, marked, client.MergeFrom(rev)); err != nil {
		return fmt.Errorf("labelling revision %s: %w", rev.Name, err)
	}
	return nil
}

// deleteJobs deletes the jobs of a workload whose rollout is over.
func deleteJobs(ctx context.Context, r *rollout.Round) error {
	jobs := &kruise.ImagePullJobList{}
	if err := r.CachedClient().List(ctx, jobs, client.InNamespace(r.Workload.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ImagePullJobs: %w", err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if !metav1.IsControlledBy(job, r.Workload) || job.DeletionTimestamp != nil {
			continue
		}
		err := r.CachedClient().Delete(ctx, job.DeepCopy(), client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting ImagePullJob %s: %w", job.Name, err)
		}
	}
	return nil
}
