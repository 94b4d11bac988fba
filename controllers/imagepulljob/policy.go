// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"context"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/nodeimage/tags"
)

// Times of tags of jobs that never end: they are pulled again about once a day.
const (
	neverTTL         = 24 * 60 * 60
	neverTTLSpread   = 600
	neverDeadline    = 1800
	alwaysTTLSpread  = 300
	defaultTTLAlways = 300
)

// pullPolicy returns the pull policy of a tag for a job (IMG-04). The TTL is drawn from the range of the job, so that not all
// tags of an image end at once.
func (r *Reconciler) pullPolicy(job *kruise.ImagePullJob) *kruise.ImageTagPullPolicy {
	p := ptr.Deref(job.Spec.PullPolicy, kruise.PullPolicy{})
	timeout, limit := ptr.Deref(p.TimeoutSeconds, kruise.DefaultPullTimeoutSeconds), ptr.Deref(p.BackoffLimit, kruise.DefaultPullBackoffLimit)
	least, spread := r.ttlRange(job)
	ttl := int32(min(least+int64(r.random(spread)), math.MaxInt32)) //nolint:gosec // bounded
	return &kruise.ImageTagPullPolicy{TimeoutSeconds: &timeout, BackoffLimit: &limit, ActiveDeadlineSeconds: deadlineOf(job), TTLSecondsAfterFinished: &ttl}
}

// deadlineOf is the deadline of one pull of a job, in seconds; nil if it has none.
func deadlineOf(job *kruise.ImagePullJob) *int64 {
	if !neverCompletes(job) {
		return job.Spec.CompletionPolicy.ActiveDeadlineSeconds
	}
	p := ptr.Deref(job.Spec.PullPolicy, kruise.PullPolicy{})
	return ptr.To(max(neverDeadline, int64(ptr.Deref(p.TimeoutSeconds, kruise.DefaultPullTimeoutSeconds))))
}

// ttlRange returns the least TTL of a tag of a job in seconds; the TTL is longer by less than spread.
func (r *Reconciler) ttlRange(job *kruise.ImagePullJob) (least int64, spread int) {
	completion := job.Spec.CompletionPolicy
	p := ptr.Deref(job.Spec.PullPolicy, kruise.PullPolicy{})
	switch {
	case neverCompletes(job):
		return neverTTL - neverTTLSpread, 2 * neverTTLSpread
	case completion.TTLSecondsAfterFinished != nil:
		least = int64(*completion.TTLSecondsAfterFinished)
	case completion.ActiveDeadlineSeconds != nil:
		least = *completion.ActiveDeadlineSeconds
	default:
		least = int64(ptr.Deref(p.TimeoutSeconds, kruise.DefaultPullTimeoutSeconds)) * int64(ptr.Deref(p.BackoffLimit, kruise.DefaultPullBackoffLimit))
	}
	return least + int64(r.alwaysTTL), alwaysTTLSpread
}

// sharedPullPolicy is the policy of a job for a tag that other jobs want too. If another job never ends, the TTL of the tag is
// not shortened: the image would be pulled again too early.
func (r *Reconciler) sharedPullPolicy(ctx context.Context, job *kruise.ImagePullJob, tag *kruise.ImageTagSpec, others []corev1.ObjectReference) *kruise.ImageTagPullPolicy {
	policy := r.pullPolicy(job)
	if tag.PullPolicy == nil || tag.PullPolicy.TTLSecondsAfterFinished == nil || *tag.PullPolicy.TTLSecondsAfterFinished <= *policy.TTLSecondsAfterFinished {
		return policy
	}
	for _, ref := range others {
		other := &kruise.ImagePullJob{}
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, other)
		if err == nil && other.UID == ref.UID && neverCompletes(other) {
			policy.TTLSecondsAfterFinished = ptr.To(*tag.PullPolicy.TTLSecondsAfterFinished)
		}
	}
	return policy
}

// longestPull is how long a node tries a pull at most. It compares the policies of jobs that share a tag.
func longestPull(p *kruise.ImageTagPullPolicy) time.Duration {
	if p == nil {
		p = &kruise.ImageTagPullPolicy{}
	}
	timeout, limit := ptr.Deref(p.TimeoutSeconds, kruise.DefaultPullTimeoutSeconds), ptr.Deref(p.BackoffLimit, kruise.DefaultPullBackoffLimit)
	seconds := int64(timeout) * (int64(limit) + 1)
	if p.ActiveDeadlineSeconds != nil {
		seconds = min(seconds, *p.ActiveDeadlineSeconds)
	}
	return time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second
}

// failedTooSoon reports whether the pull of a tag has failed by a policy that allows less time than the job does: the policy of
// another job, or of the job before an edit. Then the job asks once more. The time only grows from pull to pull, so jobs that
// share a tag do not ask in turns without end.
func failedTooSoon(node *kruise.NodeImage, image string, tag *kruise.ImageTagSpec, job *kruise.ImagePullJob) bool {
	s := tags.Status(node, image, tag)
	if s == nil || s.Phase != kruise.ImagePhaseFailed {
		return false
	}
	p := ptr.Deref(job.Spec.PullPolicy, kruise.PullPolicy{})
	wanted := &kruise.ImageTagPullPolicy{TimeoutSeconds: p.TimeoutSeconds, BackoffLimit: p.BackoffLimit, ActiveDeadlineSeconds: deadlineOf(job)}
	return longestPull(wanted) > longestPull(tag.PullPolicy)
}
