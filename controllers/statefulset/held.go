// SPDX-License-Identifier: Apache-2.0

package statefulset

import "context"

// askHold asks whether the update is held, where a pod that is missing would be of its
// revision and was not taken by it before.
func (s *scaler) askHold(ctx context.Context, n need) {
	if s.t.Current() == s.t.Update() {
		return
	}
	s.replaced = s.r.Replaced(s.f)
	creates := 0
	for _, i := range n.create {
		if s.revisionOf(i).Name == s.t.Update() && !s.replaced[podName(s.set, i)] {
			creates++
		}
	}
	if creates > 0 {
		s.onlyCurrent = s.r.UpdateHold(ctx, s.f, creates, false).Current
	}
}
