// SPDX-License-Identifier: Apache-2.0

package uniteddeployment

import (
	"testing"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
)

func FuzzRevisionsAndPatches(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Add(`{"spec":{"template":null}}`)
	f.Fuzz(func(t *testing.T, text string) {
		isSameTemplate([]byte(text), []byte(`{"spec":{"template":{}}}`))
		if samePatch(text, "null") != samePatch("null", text) {
			t.Error("a patch is another one's same, and not the other way round")
		}
	})
}
