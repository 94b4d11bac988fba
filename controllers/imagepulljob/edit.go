// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"context"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
	"github.com/regatta-sh/regatta/engine/recovery"
)

// mostEdits is how many NodeImages one reconcile writes for an edit of a job.
const mostEdits = 200

// followEdit writes the changes of an edited job into the tags of the nodes that were asked before the edit. The version of a tag
// does not change, so no image is pulled again: a running pull continues with the new policy. It reports whether nodes are left for
// the next reconcile.
func (r *Reconciler) followEdit(ctx context.Context, o order, asked []*kruise.NodeImage) (more bool, err error) {
	group := recovery.NewGroup("imagepulljob", inFlight)
	written := 0
	for _, node := range asked {
		changed := *node // a shallow copy: its maps and lists are replaced, not changed
		if !r.applyEdit(&changed, o) {
			continue
		}
		if written++; written > mostEdits {
			more = true
			break
		}
		group.Go(func() error {
			image, err := r.writeNode(ctx, node, func(image *kruise.NodeImage) { r.applyEdit(image, o) })
			if err != nil {
				return fmt.Errorf("changing on node %s how %s is pulled: %w", node.Name, o.job.Spec.Image, err)
			}
			if image != nil {
				r.written.rememberWrite(image)
			}
			return nil
		})
	}
	return more, group.Wait()
}

// applyEdit brings the tag of a job up to date, and reports whether that changed it. If another job is the last owner of the
// tag, the tag is left to that job.
func (r *Reconciler) applyEdit(node *kruise.NodeImage, o order) bool {
	spec := node.Spec.Images[o.image.Name]
	i := slices.IndexFunc(spec.Tags, func(t kruise.ImageTagSpec) bool { return t.Tag == o.image.Tag })
	if i < 0 || !isLastOwner(&spec.Tags[i], o.job) {
		return false
	}
	tag := *spec.Tags[i].DeepCopy()
	policy := ptr.Deref(tag.PullPolicy, kruise.ImageTagPullPolicy{})
	wanted := r.pullPolicy(o.job)
	if r.keepsTTL(policy.TTLSecondsAfterFinished, len(tag.OwnerReferences) > 1, o.job) {
		wanted.TTLSecondsAfterFinished = policy.TTLSecondsAfterFinished
	}
	sandbox := spec.SandboxConfig
	if s := tags.Status(node, o.image.Name, &tag); s != nil && (s.Phase == kruise.ImagePhaseSucceeded || s.Phase == kruise.ImagePhaseFailed) { // the pull has ended, so its settings stay
		wanted.TimeoutSeconds, wanted.BackoffLimit, wanted.ActiveDeadlineSeconds = policy.TimeoutSeconds, policy.BackoffLimit, policy.ActiveDeadlineSeconds
	} else {
		tag.ImagePullPolicy = o.job.Spec.ImagePullPolicy
		if !slices.ContainsFunc(spec.Tags, func(t kruise.ImageTagSpec) bool { return !isLastOwner(&t, o.job) }) {
			sandbox = o.job.Spec.SandboxConfig // all tags of an image share one config
		}
	}
	tag.PullPolicy = wanted
	if equality.Semantic.DeepEqual(tag, spec.Tags[i]) && equality.Semantic.DeepEqual(sandbox, spec.SandboxConfig) {
		return false
	}
	spec.Tags = slices.Clone(spec.Tags)
	spec.Tags[i], spec.SandboxConfig = tag, sandbox.DeepCopy()
	images := make(map[string]kruise.ImageSpec, len(node.Spec.Images))
	for name, image := range node.Spec.Images {
		images[name] = image
	}
	images[o.image.Name] = spec
	node.Spec.Images = images
	return true
}

// isLastOwner reports whether a job is the one that asked for a tag last.
func isLastOwner(tag *kruise.ImageTagSpec, job *kruise.ImagePullJob) bool {
	n := len(tag.OwnerReferences)
	return n > 0 && tag.OwnerReferences[n-1].UID == job.UID
}

// keepsTTL reports whether the TTL of a tag is in the range that the job's TTL is drawn from. A longer TTL may come from
// another job that shares the tag.
func (r *Reconciler) keepsTTL(ttl *int32, shared bool, job *kruise.ImagePullJob) bool {
	if ttl == nil {
		return false
	}
	least, spread := r.ttlRange(job)
	least = min(least, math.MaxInt32)
	return int64(*ttl) >= least && (shared || int64(*ttl) < least+int64(spread))
}
