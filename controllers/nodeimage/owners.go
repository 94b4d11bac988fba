// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
	"github.com/regatta-sh/regatta/controllers/reconcile"
)

// unfinishedAgain is how soon a tag that is kept for an unfinished job is checked again.
const unfinishedAgain = time.Minute

// owners are the ImagePullJobs that tags name, by their UIDs; nil for jobs that are gone. Owners of
// other kinds are not in the map, so they stay.
type owners map[types.UID]*kruise.ImagePullJob

// isStillAsked reports whether an owner exists and still asks for the image.
func (o owners) isStillAsked(ref corev1.ObjectReference, image, tag string) bool {
	job, known := o[ref.UID]
	return !known || job != nil && asksFor(job, image, tag)
}

// asksFor reports whether a job is for an image. Its image may have been edited since the tag was written.
func asksFor(job *kruise.ImagePullJob, image, tag string) bool {
	i, err := tags.ParseImage(job.Spec.Image)
	return err != nil || i.Name == image && i.Tag == tag
}

// isUnfinished reports whether an owner is a job that is to complete, but has not ended.
func (o owners) isUnfinished(ref corev1.ObjectReference) bool {
	job := o[ref.UID]
	return job != nil && job.Status.CompletionTime == nil && job.Spec.CompletionPolicy.Type != kruise.NeverCompletionPolicyType
}

// ownersOf reads the jobs that the tags of a NodeImage name. If the cache does not have a job, or has
// it with another image, the API server is read.
func (r *Reconciler) ownersOf(ctx context.Context, image *kruise.NodeImage) (owners, error) {
	out := owners{}
	read := map[types.UID]bool{} // from the API server
	for name, spec := range image.Spec.Images {
		for i := range spec.Tags {
			for _, ref := range spec.Tags[i].OwnerReferences {
				job, known := out[ref.UID]
				if ref.Kind != "ImagePullJob" || known && (job == nil || read[ref.UID] || asksFor(job, name, spec.Tags[i].Tag)) {
					continue
				}
				var err error
				if !known {
					job, err = ownerIn(ctx, r.Client, ref)
				}
				if err == nil && (job == nil || !asksFor(job, name, spec.Tags[i].Tag)) {
					job, err = ownerIn(ctx, r.Live, ref)
					read[ref.UID] = true
				}
				if err != nil {
					return nil, fmt.Errorf("reading an owner in NodeImage %s: %w", image.Name, err)
				}
				out[ref.UID] = job
			}
		}
	}
	return out, nil
}

// ownerIn returns the job that an owner reference names, nil if the reader does not have it.
func ownerIn(ctx context.Context, reader client.Reader, ref corev1.ObjectReference) (*kruise.ImagePullJob, error) {
	job := &kruise.ImagePullJob{}
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	err := reader.Get(ctx, key, job)
	switch {
	case apierrors.IsNotFound(err) || err == nil && job.UID != ref.UID:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading ImagePullJob %s: %w", key, err)
	}
	return job, nil
}

// ofJob returns requests for the NodeImages with tags of a job.
func (r *Reconciler) ofJob(ctx context.Context, job client.Object) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &kruise.NodeImageList{}, func(image *kruise.NodeImage) bool { return referencesJob(image, job.GetUID()) })
}

// allRequests lists all NodeImages.
func (r *Reconciler) allRequests(ctx context.Context) ([]reconcile.Request, error) {
	return reconcile.ListRequests(ctx, r.Client, &kruise.NodeImageList{}, reconcile.AllObjects[*kruise.NodeImage])
}

func referencesJob(image *kruise.NodeImage, job types.UID) bool {
	for _, spec := range image.Spec.Images {
		for i := range spec.Tags {
			for _, ref := range spec.Tags[i].OwnerReferences {
				if ref.UID == job {
					return true
				}
			}
		}
	}
	return false
}

// dropSecrets removes from images the pull secrets that do not exist, except copies, which the
// controller of their jobs removes (IMG-06).
func (r *Reconciler) dropSecrets(ctx context.Context, image *kruise.NodeImage) error {
	for name, spec := range image.Spec.Images {
		kept := make([]kruise.ReferenceObject, 0, len(spec.PullSecrets))
		for _, ref := range spec.PullSecrets {
			if ref.Mode != kruise.PullSecretModeBatch {
				key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
				switch err := r.Live.Get(ctx, key, &corev1.Secret{}); {
				case apierrors.IsNotFound(err):
					continue
				case err != nil && !apierrors.IsForbidden(err): // a secret that may not be read may exist
					return fmt.Errorf("reading pull secret %s: %w", key, err)
				}
			}
			kept = append(kept, ref)
		}
		if len(kept) < len(spec.PullSecrets) {
			spec.PullSecrets = kept
			image.Spec.Images[name] = spec
		}
	}
	return nil
}
