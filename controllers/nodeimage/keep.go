// SPDX-License-Identifier: Apache-2.0

package nodeimage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/gatedkinds"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/message"
	"github.com/regatta-sh/regatta/controllers/workload/nodes"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
)

// responseTime is how long a node may report nothing about a version, and how long it may be silent
// after a deadline.
const responseTime = nodes.ResponseTime

// reconcileNodeImage cleans one NodeImage, and returns when to reconcile again, also with an error.
func (r *Reconciler) reconcileNodeImage(ctx context.Context, image *kruise.NodeImage, node *corev1.Node) (time.Duration, error) {
	before := image.DeepCopy()
	if node != nil && !maps.Equal(image.Labels, node.Labels) {
		image.Labels = node.Labels
	}
	jobs, err := r.ownersOf(ctx, image)
	if err != nil {
		return 0, err
	}
	after := r.pruneImages(image, jobs)
	if err := r.dropSecrets(ctx, image); err != nil {
		return after, err
	}
	if !equality.Semantic.DeepEqual(before.Spec, image.Spec) || !maps.Equal(before.Labels, image.Labels) {
		if err := r.Client.Patch(ctx, image, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return after, fmt.Errorf("writing NodeImage %s: %w", image.Name, err)
		}
	}
	again, err := r.failOverdue(ctx, image, node)
	return requeue.EarliestDelay(after, again), err
}

// failOverdue fails in the status the pulls that the node does not report, and removes the condition of a feature gate that
// was off.
func (r *Reconciler) failOverdue(ctx context.Context, image *kruise.NodeImage, node *corev1.Node) (time.Duration, error) {
	before := image.DeepCopy()
	late, again := r.listOverdue(image, node)
	stalled, is := condition.FindCondition(&image.Status, gatedkinds.Stalled)
	if len(late) == 0 && (!is || stalled.Reason != gatedkinds.FeatureGateOff) {
		return again, nil
	}
	tags.SetSummary(&image.Status, r.Now())
	before.Status.Desired = -1 // the schema requires the number, so it is in every patch
	if err := r.Client.Status().Patch(ctx, image, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return again, fmt.Errorf("writing the status of NodeImage %s: %w", image.Name, err)
	}
	for _, l := range late {
		text := fmt.Sprintf(kruise.PullImageFailedMessage, l.image+":"+l.tag.Tag, image.Name, l.why)
		r.Events.Event(image, corev1.EventTypeWarning, kruise.PullImageFailedReason, text)
		for i := range l.tag.OwnerReferences {
			r.Events.Event(&l.tag.OwnerReferences[i], corev1.EventTypeWarning, kruise.PullImageFailedReason, text)
		}
	}
	return again, nil
}

// pruneImages is IMG-06: it drops owners that are gone or ask for another image by now, tags without owners or whose time is
// over, and images without tags. A tag stays while an owner that is to complete has not ended: otherwise its image would be
// pulled again for that job.
func (r *Reconciler) pruneImages(image *kruise.NodeImage, jobs owners) (after time.Duration) {
	for name, spec := range image.Spec.Images {
		spec.Tags = slices.DeleteFunc(slices.Clone(spec.Tags), func(tag kruise.ImageTagSpec) bool {
			wants := func(o corev1.ObjectReference) bool { return jobs.isStillAsked(o, name, tag.Tag) }
			return tag.CreatedAt == nil || len(tag.OwnerReferences) > 0 && !slices.ContainsFunc(tag.OwnerReferences, wants)
		})
		for i := range spec.Tags {
			tag := &spec.Tags[i]
			tag.OwnerReferences = slices.DeleteFunc(slices.Clone(tag.OwnerReferences), func(o corev1.ObjectReference) bool { return !jobs.isStillAsked(o, name, tag.Tag) })
		}
		spec.Tags = slices.DeleteFunc(spec.Tags, func(tag kruise.ImageTagSpec) bool {
			s := statusOf(image, name, tag.Tag)
			if s == nil || s.Version != tag.Version || s.CompletionTime == nil || tag.PullPolicy == nil || tag.PullPolicy.TTLSecondsAfterFinished == nil {
				return false
			}
			left := s.CompletionTime.Add(time.Duration(*tag.PullPolicy.TTLSecondsAfterFinished) * time.Second).Sub(r.Now())
			switch {
			case left > 0:
				after = requeue.EarliestDelay(after, left)
			case slices.ContainsFunc(tag.OwnerReferences, jobs.isUnfinished):
				after = requeue.EarliestDelay(after, unfinishedAgain)
				return false
			}
			return left <= 0
		})
		if len(spec.Tags) == 0 {
			delete(image.Spec.Images, name)
			continue
		}
		image.Spec.Images[name] = spec
	}
	return after
}

// late is a tag that its node should have reported.
type late struct {
	image string
	tag   kruise.ImageTagSpec
	why   string
}

// listOverdue is IMG-07: it fails the tags that their node does not report in time, and returns them.
func (r *Reconciler) listOverdue(image *kruise.NodeImage, node *corev1.Node) (out []late, after time.Duration) {
	for _, name := range slices.Sorted(maps.Keys(image.Spec.Images)) {
		for _, tag := range image.Spec.Images[name].Tags {
			s := statusOf(image, name, tag.Tag)
			told := s != nil && s.Version == tag.Version
			if told && s.CompletionTime != nil {
				continue
			}
			until, why := tag.CreatedAt.Add(responseTime), kruise.NodeImageNoResponseMessage
			if told {
				until, why = endOf(&tag, node)
			}
			if until.IsZero() {
				continue
			}
			if left := until.Sub(r.Now()); left > 0 {
				after = requeue.EarliestDelay(after, left)
				continue
			}
			r.failTag(image, name, tag, why)
			out = append(out, late{name, tag, why})
		}
	}
	return out, after
}

// endOf returns when a tag fails whose pull the node has begun, and why; zero for never. A node that is gone for good but
// not deleted never reports the end of a pull. If the user has set a deadline, that applies.
func endOf(tag *kruise.ImageTagSpec, node *corev1.Node) (until time.Time, why string) {
	if p := tag.PullPolicy; p != nil && p.ActiveDeadlineSeconds != nil {
		return tag.CreatedAt.Add(responseTime + time.Duration(*p.ActiveDeadlineSeconds)*time.Second), kruise.NodeImageDeadlineExceededMessage
	}
	if node == nil {
		return until, why
	}
	return nodes.LostAt(node, tag.CreatedAt.Time), kruise.NodeImageNoResponseMessage
}

// failTag writes into the status that a tag could not be pulled.
func (r *Reconciler) failTag(image *kruise.NodeImage, name string, tag kruise.ImageTagSpec, why string) {
	now := metav1.NewTime(r.Now()).Rfc3339Copy()
	status := kruise.ImageTagStatus{Tag: tag.Tag, Version: tag.Version, Phase: kruise.ImagePhaseFailed, CompletionTime: &now, Message: message.Shorten(why)}
	if image.Status.ImageStatuses == nil {
		image.Status.ImageStatuses = map[string]kruise.ImageStatus{}
	}
	tags := slices.DeleteFunc(slices.Clone(image.Status.ImageStatuses[name].Tags), func(s kruise.ImageTagStatus) bool {
		if s.Tag == tag.Tag {
			status.StartTime = s.StartTime
			return true
		}
		return false
	})
	tags = append(tags, status)
	slices.SortFunc(tags, func(a, b kruise.ImageTagStatus) int { return cmp.Compare(a.Tag, b.Tag) })
	image.Status.ImageStatuses[name] = kruise.ImageStatus{Tags: tags}
	image.Status.Failed++
	image.Status.Desired = 0
	for _, spec := range image.Spec.Images {
		image.Status.Desired += int32(len(spec.Tags)) //nolint:gosec // the schema bounds them
	}
}

func statusOf(image *kruise.NodeImage, name, tag string) *kruise.ImageTagStatus {
	tags := image.Status.ImageStatuses[name].Tags
	if i := slices.IndexFunc(tags, func(s kruise.ImageTagStatus) bool { return s.Tag == tag }); i >= 0 {
		return &tags[i]
	}
	return nil
}
