// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func FuzzTemplate(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Add(`{"apiVersion":"v1","kind":"Secret","metadata":null,"stringData":{"a":"x"}}`)
	f.Add(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":null}`)
	f.Fuzz(func(t *testing.T, text string) {
		d := &kruise.ResourceDistribution{}
		d.Spec.Resource = runtime.RawExtension{Raw: []byte(text)}
		if out, err := newTemplate(d); err == nil && out.object.GetName() == "" {
			t.Error("an object without a name is copied")
		}
	})
}
