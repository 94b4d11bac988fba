// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// convertEach converts the items of a list.
func convertEach[From, To any](in []From, convert func(*From) To) []To {
	if in == nil {
		return nil
	}
	out := make([]To, 0, len(in))
	for i := range in {
		out = append(out, convert(&in[i]))
	}
	return out
}
