// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func FuzzSpec(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Add(`{"spec":{"containers":[null]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		out, err := ApplyRevision(&kruise.SidecarSetSpec{}, &appsv1.ControllerRevision{Data: runtime.RawExtension{Raw: []byte(text)}})
		if (out == nil) != (err != nil) {
			t.Errorf("the error is %v, and there is a spec: %v", err, out != nil)
		}
	})
}
