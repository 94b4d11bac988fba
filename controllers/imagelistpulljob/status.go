// SPDX-License-Identifier: Apache-2.0

package imagelistpulljob

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
	"github.com/regatta-sh/regatta/controllers/workload/message"
)

// statusOf is IMG-12. Failed images are in the order of the list.
func (r *Reconciler) statusOf(list *kruise.ImageListPullJob, jobs []*kruise.ImagePullJob) kruise.ImageListPullJobStatus {
	s := *list.Status.DeepCopy()
	now := metav1.NewTime(r.Now()).Rfc3339Copy()
	if s.StartTime == nil {
		s.StartTime = &now
	}
	s.Desired = int32(len(list.Spec.Images)) //nolint:gosec // 255 at most
	s.Active, s.Completed, s.Succeeded, s.FailedImageStatuses = 0, 0, 0, nil
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b *kruise.ImagePullJob) int {
		return slices.Index(list.Spec.Images, a.Spec.Image) - slices.Index(list.Spec.Images, b.Spec.Image)
	})
	for _, job := range jobs {
		c := job.Status
		if c.Active > 0 {
			s.Active++
		}
		if c.Failed > 0 {
			s.FailedImageStatuses = append(s.FailedImageStatuses, kruise.FailedImageStatus{
				ImagePullJob: job.Name, Name: job.Spec.Image, Message: message.Shorten(describeFailure(job)),
			})
		}
		if c.StartTime == nil || c.Desired != c.Succeeded+c.Failed {
			continue
		}
		s.Completed++
		if c.Desired == c.Succeeded {
			s.Succeeded++
		}
	}
	if list.Spec.CompletionPolicy.Type != kruise.NeverCompletionPolicyType && s.Completed == s.Desired {
		s.CompletionTime = &now
	}
	kstatus.SetConditions(&s, summarizeProgress(list, &s), list.Generation, r.Now())
	return s
}

// summarizeProgress returns what the conditions of package kstatus say of a list with a status.
func summarizeProgress(list *kruise.ImageListPullJob, s *kruise.ImageListPullJobStatus) kstatus.Summary {
	text := fmt.Sprintf("%d of %d images are pulled by all nodes", s.Succeeded, s.Desired)
	switch {
	case s.CompletionTime != nil && len(s.FailedImageStatuses) > 0:
		failed := s.FailedImageStatuses[0]
		return kstatus.NewStalled(kruise.PullFailedReason, fmt.Sprintf("%s; %s: %s", text, failed.Name, failed.Message))
	case s.CompletionTime != nil || list.Spec.CompletionPolicy.Type == kruise.NeverCompletionPolicyType && s.Succeeded == s.Desired:
		return kstatus.NewReady(kruise.ImagesPulledReason, text)
	}
	return kstatus.NewReconciling(kruise.ProgressingReason, text)
}

// describeFailure names the nodes that failed, as long as they are few.
func describeFailure(job *kruise.ImagePullJob) string {
	const few = 10
	nodes := job.Status.FailedNodes
	more := ""
	if n := len(nodes) - few; n > 0 {
		nodes, more = nodes[:few], fmt.Sprintf(" and %d more, which are in the status of the ImagePullJob", n)
	}
	return fmt.Sprintf("%d of %d nodes have not pulled the image: %s%s.", job.Status.Failed, job.Status.Desired, strings.Join(nodes, ", "), more)
}

// patchStatus writes the status of a list if it has changed.
func (r *Reconciler) patchStatus(ctx context.Context, list *kruise.ImageListPullJob, jobs []*kruise.ImagePullJob) error {
	s := r.statusOf(list, jobs)
	if equality.Semantic.DeepEqual(list.Status, s) {
		return nil
	}
	before := list.DeepCopy()
	before.Status.Desired = -1 // the schema requires the number, so it is in every patch
	list.Status = s
	if err := r.Client.Status().Patch(ctx, list, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of ImageListPullJob %s: %w", client.ObjectKeyFromObject(list), err)
	}
	return nil
}
