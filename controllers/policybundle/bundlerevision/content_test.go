// SPDX-License-Identifier: Apache-2.0

package bundlerevision

import (
	"testing"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
)

// The data of a ControllerRevision that another client wrote is never a bundle, whatever it has.
func FuzzRead(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := Read([]byte(text), ArchiveDigest([]byte("another archive"))); err == nil {
			t.Error("data with another archive is read")
		}
	})
}
