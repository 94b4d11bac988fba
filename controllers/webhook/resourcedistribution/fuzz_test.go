// SPDX-License-Identifier: Apache-2.0

package resourcedistribution

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func FuzzResource(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Add(`{"apiVersion":"v1","kind":"Secret","metadata":null,"data":{"a":1}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if object, ok := decodeResource([]byte(text), field.NewPath("spec", "resource"), &rules.Findings{}); ok && object.GetKind() == "" {
			t.Error("an object without a kind is taken")
		}
	})
}
