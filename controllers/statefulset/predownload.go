// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/predownload"
)

// PredownloadSettings implements predownload.Kind, by annotations alone.
func (k *Kind) PredownloadSettings(o client.Object) predownload.PrePullSpec {
	set := o.(*kruise.StatefulSet)
	s, _ := resolveStrategy(set) // ReadSpec reports a number that cannot be read
	out := predownload.ParseAnnotations(set, desiredReplicas(set))
	out.Selector, out.MaxUnavailable = set.Spec.Selector, s.MaxUnavailable
	return out
}
