// SPDX-License-Identifier: Apache-2.0

package imagelistpulljob

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/imagepulljob"
	"github.com/regatta-sh/regatta/controllers/workload/message"
)

// hashLabel is the label of a list and its jobs with the hash of the template that the jobs were made from.
const hashLabel = appsv1.ControllerRevisionHashLabelKey

// syncJobs is IMG-11: it makes a job for each image by the current template, and returns the jobs that
// exist afterwards.
func (r *Reconciler) syncJobs(ctx context.Context, list *kruise.ImageListPullJob, jobs []*kruise.ImagePullJob) ([]*kruise.ImagePullJob, error) {
	want, err := hashTemplate(&list.Spec.ImagePullJobTemplate)
	if err != nil {
		return nil, err
	}
	keep, remove, create := planJobs(list, want, jobs)
	if len(create) > 0 {
		// Names are random, so a job that the cache does not show yet would be created twice.
		if jobs, err = listChildren(ctx, r.Live, list); err != nil {
			return nil, err
		}
		keep, remove, create = planJobs(list, want, jobs)
	}
	if len(remove)+len(create) == 0 {
		return keep, nil
	}
	if err := r.labelTemplateHash(ctx, list, want); err != nil {
		return nil, err
	}
	for _, job := range remove {
		err := r.Client.Delete(ctx, job, client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("deleting ImagePullJob %s: %w", client.ObjectKeyFromObject(job), err)
		}
		r.Events.Eventf(list, corev1.EventTypeNormal, kruise.SuccessfulDeleteImagePullJobReason, kruise.SuccessfulDeleteImagePullJobMessage, job.Name)
	}
	made := 0
	defer func() {
		if made > 0 {
			r.Events.Eventf(list, corev1.EventTypeNormal, kruise.SuccessfulCreateImagePullJobReason, kruise.SuccessfulCreateImagePullJobMessage, made)
		}
	}()
	for _, image := range create {
		job := jobOf(list, image, want)
		if err := r.Client.Create(ctx, job); err != nil {
			return nil, fmt.Errorf("creating an ImagePullJob for image %s: %w", image, message.HideDrawnName(err, job.GenerateName))
		}
		made++
		keep = append(keep, job)
	}
	return keep, nil
}

// planJobs returns which jobs to keep, which to delete and for which images to create one. Of two jobs
// for an image the older one is kept.
func planJobs(list *kruise.ImageListPullJob, want string, jobs []*kruise.ImagePullJob) (keep, remove []*kruise.ImagePullJob, create []string) {
	slices.SortFunc(jobs, func(a, b *kruise.ImagePullJob) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	by := map[string]bool{}
	for _, job := range jobs {
		if by[job.Spec.Image] || !slices.Contains(list.Spec.Images, job.Spec.Image) || !matchesTemplate(list, want, job) {
			remove = append(remove, job)
			continue
		}
		by[job.Spec.Image] = true
		keep = append(keep, job)
	}
	for _, image := range list.Spec.Images {
		if !by[image] {
			by[image] = true
			create = append(create, image)
		}
	}
	return keep, remove, create
}

// matchesTemplate reports whether a job was made from the template. OpenKruise's hash depends on
// memory addresses, so the spec of a job with another hash is compared.
func matchesTemplate(list *kruise.ImageListPullJob, want string, job *kruise.ImagePullJob) bool {
	if job.Labels[hashLabel] == want {
		return true
	}
	a, b := jobOf(list, job.Spec.Image, want).Spec, *job.Spec.DeepCopy()
	imagepulljob.FillSpec(&a)
	imagepulljob.FillSpec(&b)
	b.CompletionPolicy.TTLSecondsAfterFinished = nil
	return equality.Semantic.DeepEqual(a, b)
}

// jobOf is the job for one image of a list. It has no TTL: the list's own TTL applies, since a job
// that is deleted before the list would be created again.
func jobOf(list *kruise.ImageListPullJob, image, hash string) *kruise.ImagePullJob {
	job := &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{
		Namespace: list.Namespace, GenerateName: list.Name + "-", Labels: map[string]string{hashLabel: hash},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(list, kruise.GroupVersion.WithKind("ImageListPullJob"))},
	}}
	job.Spec = kruise.ImagePullJobSpec{Image: image, ImagePullJobTemplate: *list.Spec.ImagePullJobTemplate.DeepCopy()}
	job.Spec.CompletionPolicy.TTLSecondsAfterFinished = nil
	return job
}

// labelTemplateHash writes the hash of the template onto a list.
func (r *Reconciler) labelTemplateHash(ctx context.Context, list *kruise.ImageListPullJob, want string) error {
	if list.Labels[hashLabel] == want {
		return nil
	}
	before := list.DeepCopy()
	list.Labels = maps.Clone(list.Labels)
	metav1.SetMetaDataLabel(&list.ObjectMeta, hashLabel, want)
	if err := r.Client.Patch(ctx, list, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("labelling ImageListPullJob %s: %w", client.ObjectKeyFromObject(list), err)
	}
	return nil
}

// hashTemplate is the hash of a template.
func hashTemplate(template *kruise.ImagePullJobTemplate) (string, error) {
	raw, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("encoding the template: %w", err)
	}
	h := fnv.New32a()
	h.Write(raw) // writing to a hash never fails
	return rand.SafeEncodeString(fmt.Sprint(h.Sum32())), nil
}
