// SPDX-License-Identifier: Apache-2.0

package conversiondata

import (
	"testing"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
)

func FuzzTake(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		annotations := map[string]string{"key": text}
		var fields struct{ A map[string]*int }
		took := RestoreFields(&annotations, "key", &fields)
		if _, there := annotations["key"]; there == took {
			t.Errorf("it was read: %v, and is still there: %v", took, there)
		}
	})
}
