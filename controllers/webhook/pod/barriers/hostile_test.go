// SPDX-License-Identifier: Apache-2.0

package barriers

import (
	"testing"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	points "github.com/regatta-sh/regatta/engine/decision/launchpriority"
)

func FuzzPlaces(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		out, fault := decodePriorities(text, []points.Container{{Name: "a"}})
		if fault != "" && out != nil {
			t.Errorf("with the fault %.100q there are places", fault)
		}
		for name := range out {
			if name != "a" {
				t.Errorf("the pod has no container %q", name)
			}
		}
	})
}
