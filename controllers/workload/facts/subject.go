// SPDX-License-Identifier: Apache-2.0

package facts

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/engine/decision"
)

// ObjectSubject names an object of a group and a kind as the subject of a decision.
func ObjectSubject(group, kind string, o metav1.Object) decision.Subject {
	return decision.Subject{Group: group, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: string(o.GetUID())}
}

// PodSubject names a pod as the subject of a decision.
func PodSubject(pod metav1.Object) decision.Subject { return ObjectSubject("", "Pod", pod) }
