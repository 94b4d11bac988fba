// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
	"github.com/regatta-sh/regatta/controllers/workload/revision"
)

// NextStep is what a pod in the middle of an update needs.
type NextStep string

const (
	// Nothing: the pod waits for its containers, or was never updated.
	Nothing NextStep = ""
	// Batch: the next containers may be changed.
	Batch NextStep = "Batch"
	// Grace: the grace period is over.
	Grace NextStep = "Grace"
	// Done: the update is complete.
	Done NextStep = "Done"
)

// NextStep returns what a pod's update needs now, and after which delay to check again.
func (u Updater) NextStep(pod *corev1.Pod) (NextStep, time.Duration, error) {
	s, err := DecodeState(pod)
	if err != nil {
		return Nothing, 0, err
	}
	spec, err := decodeGrace(pod)
	if err != nil {
		return Nothing, 0, err
	}
	if s == nil && spec != nil {
		return Grace, 0, nil // another client removed the record; without it the end of the wait is unknown
	}
	if s == nil {
		return Nothing, 0, nil
	}
	if spec != nil {
		if left := graceLeft(s, spec.GraceSeconds, u.Now()); left > 0 {
			return Nothing, left, nil
		}
		return Grace, 0, nil
	}
	if batchIncomplete(pod, s) != "" {
		return Nothing, 0, nil
	}
	if len(s.NextContainerImages)+len(s.NextContainerRefMetadata)+len(s.NextContainerResources) == 0 {
		return Done, 0, nil
	}
	if s.PreCheckBeforeNext != nil {
		for _, name := range s.PreCheckBeforeNext.ContainersRequiredReady {
			if !containerstatus.IsReady(pod, name) && !containerstatus.HasSucceeded(pod, name) {
				return Nothing, 0, nil
			}
		}
	}
	return Batch, 0, nil
}

// BatchTrouble returns what prevents the containers of the next batch of an update from being changed, "" if nothing
// does: a container of the previous batch has failed and is not started again.
func BatchTrouble(pod *corev1.Pod) string {
	s, err := DecodeState(pod)
	if err != nil || s == nil || s.PreCheckBeforeNext == nil || isStatusStale(pod) {
		return ""
	}
	for _, name := range s.PreCheckBeforeNext.ContainersRequiredReady {
		if containerstatus.HasFailed(pod, name) {
			return fmt.Sprintf("container %s has ended with exit code %d and is not started again, so the containers that are to be updated after it are not", name, statusOf(pod, name).State.Terminated.ExitCode)
		}
	}
	return ""
}

// ContinueUpdate does the step that NextStep returned: the change after the grace period, or the next
// batch. If the pod was given another revision meanwhile, only the record of its grace period is removed.
// It returns the pod as it was last written, nil if it was not.
func (u Updater) ContinueUpdate(ctx context.Context, pod *corev1.Pod, next NextStep) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	before := pod.DeepCopy()
	s, err := DecodeState(pod)
	if err != nil {
		return nil, err
	}
	if s == nil {
		s = newState(pod.Labels[revisionLabel], u.Now())
	}
	switch next {
	case Grace:
		spec, err := decodeGrace(pod)
		if err != nil {
			return nil, err
		}
		if spec == nil {
			break
		}
		dropGrace(pod)
		if !revision.SameHash(pod.Labels[revisionLabel], spec.Revision) {
			return u.patchPod(ctx, pod, before)
		}
		return u.applyFirstBatch(ctx, pod, before, s, spec)
	case Batch:
		w := pendingWork{s.NextContainerImages, s.NextContainerRefMetadata, s.NextContainerResources}
		return u.applyBatch(ctx, pod, before, s, w)
	}
	return nil, fmt.Errorf("continuing pod %s: nothing is to be done", pod.Name)
}
