// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
	"github.com/regatta-sh/regatta/engine/recovery"
)

const (
	// inFlight is how many NodeImages are written at once.
	inFlight = 16
	// tries is how often a write is tried that conflicts with other writes of the same NodeImage.
	tries = 4
)

// order is what a job asks nodes to pull.
type order struct {
	job     *kruise.ImagePullJob
	image   tags.Image
	secrets []kruise.ReferenceObject
}

// requestPulls asks nodes for the image of a job. It returns the nodes that were asked.
func (r *Reconciler) requestPulls(ctx context.Context, o order, begin []*candidate) (done []*candidate, err error) {
	asked := make([]bool, len(begin))
	group := recovery.NewGroup("imagepulljob", inFlight)
	for n, c := range begin {
		group.Go(func() error {
			image, err := r.requestPull(ctx, o, c.node)
			if err != nil {
				return fmt.Errorf("asking node %s for %s: %w", c.Name, o.job.Spec.Image, err)
			}
			if image != nil {
				r.written.rememberWrite(image)
				asked[n] = true
			}
			return nil
		})
	}
	err = group.Wait()
	for n, c := range begin {
		if asked[n] {
			done = append(done, c)
		}
	}
	return done, err
}

// requestPull writes the image of a job into one NodeImage, and returns the NodeImage; nil if it is gone.
func (r *Reconciler) requestPull(ctx context.Context, o order, node *kruise.NodeImage) (*kruise.NodeImage, error) {
	return r.writeNode(ctx, node, func(image *kruise.NodeImage) { r.mergeOrder(ctx, image, o) })
}

// writeNode changes one NodeImage and returns it; nil if it is gone. Node agents write NodeImages too, so after a conflict
// the change is tried again on the current object.
func (r *Reconciler) writeNode(ctx context.Context, node *kruise.NodeImage, change func(*kruise.NodeImage)) (*kruise.NodeImage, error) {
	image := node.DeepCopy()
	for try := 1; ; try++ {
		before := image.DeepCopy()
		change(image)
		if equality.Semantic.DeepEqual(before.Spec, image.Spec) {
			return image, nil
		}
		err := r.Client.Patch(ctx, image, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		switch {
		case err == nil:
			return image, nil
		case apierrors.IsNotFound(err):
			return nil, nil
		case !apierrors.IsConflict(err) || try == tries:
			return nil, err
		}
		fresh := &kruise.NodeImage{}
		if err := r.Live.Get(ctx, types.NamespacedName{Name: node.Name}, fresh); err != nil || fresh.DeletionTimestamp != nil {
			return nil, client.IgnoreNotFound(err)
		}
		image = fresh
	}
}

// mergeOrder writes the image of a job into a NodeImage (IMG-04). A pull uses the policy of the job that asked for it last: that job
// is the last owner of the tag.
func (r *Reconciler) mergeOrder(ctx context.Context, node *kruise.NodeImage, o order) {
	if node.Spec.Images == nil {
		node.Spec.Images = map[string]kruise.ImageSpec{}
	}
	spec := node.Spec.Images[o.image.Name]
	spec.SandboxConfig = o.job.Spec.SandboxConfig.DeepCopy()
	spec.PullSecrets = append(slices.Clone(spec.PullSecrets), missingSecrets(spec.PullSecrets, o.secrets)...)
	spec.Tags = slices.Clone(spec.Tags)
	tag := tags.FindSpec(spec, o.image.Tag)
	owner := corev1.ObjectReference{
		APIVersion: kruise.GroupVersion.String(), Kind: "ImagePullJob", Namespace: o.job.Namespace, Name: o.job.Name, UID: o.job.UID,
	}
	now := metav1.NewTime(r.Now()).Rfc3339Copy()
	switch {
	case tag != nil && isOwnedBy(tag, o.job.UID) && !failedTooSoon(node, o.image.Name, tag, o.job): // at most a pull secret is new
	case tag == nil:
		fresh := kruise.ImageTagSpec{
			Tag: o.image.Tag, CreatedAt: &now, OwnerReferences: []corev1.ObjectReference{owner},
			PullPolicy: r.pullPolicy(o.job), ImagePullPolicy: o.job.Spec.ImagePullPolicy,
		}
		for _, s := range node.Status.ImageStatuses[o.image.Name].Tags {
			if s.Tag == o.image.Tag {
				fresh.Version = s.Version + 1
			}
		}
		spec.Tags = append(spec.Tags, fresh)
	default:
		others := slices.DeleteFunc(slices.Clone(tag.OwnerReferences), func(ref corev1.ObjectReference) bool { return ref.UID == o.job.UID })
		tag.PullPolicy = r.sharedPullPolicy(ctx, o.job, tag, others)
		tag.Version++
		tag.OwnerReferences = append(others, owner)
		tag.CreatedAt = &now
		tag.ImagePullPolicy = o.job.Spec.ImagePullPolicy
	}
	slices.SortStableFunc(spec.Tags, func(a, b kruise.ImageTagSpec) int { return cmp.Compare(a.Tag, b.Tag) })
	node.Spec.Images[o.image.Name] = spec
}
