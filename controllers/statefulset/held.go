// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// askHold evaluates which of the missing pods are held at the current revision. It evaluates those that would be of the update revision,
// except for pods that the update has deleted before.
func (s *scaler) askHold(ctx context.Context, n need) error {
	if s.t.CurrentRevision() == s.t.UpdateRevision() {
		return nil
	}
	replaced := s.r.ReplacedNames(s.f)
	var ordinals []int
	var missing []*corev1.Pod
	for _, i := range n.create {
		if s.revisionOf(i).Name != s.t.UpdateRevision() || replaced[podName(s.set, i)] {
			continue
		}
		pod, err := s.newPod(s.t.History.Current, i)
		if err != nil {
			return err
		}
		ordinals, missing = append(ordinals, i), append(missing, pod)
	}
	if len(missing) == 0 {
		return nil
	}
	hold := s.r.UpdateHold(ctx, s.f, len(missing), false, missing...)
	for at, i := range ordinals {
		s.held[i] = hold.Missing[at]
	}
	return nil
}
