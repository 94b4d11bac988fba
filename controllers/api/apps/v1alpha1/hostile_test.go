// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"testing"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
)

// What a mirror reads it writes as a text that it reads again.
func FuzzMirrors(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		acquiredMirror().Parse(text)
		mirror := snapshotMirror()
		if read, ok := mirror.Parse(text); ok && len(read) > 0 {
			if again, ok := mirror.Parse(mirror.Format(read)); !ok || len(again) != len(read) {
				t.Errorf("%d statuses are %d after they are written", len(read), len(again))
			}
		}
	})
}
