// SPDX-License-Identifier: Apache-2.0

package engine

// Checked reports whether it is known of all namespaces whether their bundles compile.
func Checked(s *Snapshot) bool {
	for _, in := range s.scopes {
		if !in.checked.Load() {
			return false
		}
	}
	return true
}
