// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestNewer(t *testing.T) {
	object := func(uid, version string) metav1.Object {
		return &metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}
	}
	tests := map[string]struct {
		a, b metav1.Object
		want bool
	}{
		"a later version":       {object("u", "10"), object("u", "9"), true},
		"the same version":      {object("u", "10"), object("u", "10"), false},
		"an earlier version":    {object("u", "9"), object("u", "10"), false},
		"another object":        {object("v", "10"), object("u", "9"), false},
		"one without a number":  {object("u", "x"), object("u", "9"), false},
		"one without a version": {object("u", ""), object("u", "9"), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := IsNewer(tc.a, tc.b); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
