// SPDX-License-Identifier: Apache-2.0

// Package versions compares versions of objects, so that a process uses its own writes until its cache
// shows them.
package versions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// IsNewer reports whether a is a newer version of b. Resource versions are ordered numbers since
// Kubernetes 1.35. A version that is not a number counts as older, and so does another object with the same name.
func IsNewer(a, b metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && order > 0 && a.GetUID() == b.GetUID()
}
