// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/predownload"
)

// PredownloadSettings implements predownload.Kind, by annotations alone. Percentages are of the number of nodes in the
// status. OpenKruise reads the annotation with the number of updated pods that have to be ready, but does
// not wait for them.
func (k *Kind) PredownloadSettings(o client.Object) predownload.PrePullSpec {
	set := o.(*kruise.DaemonSet)
	nodes := int(set.Status.DesiredNumberScheduled)
	s, _ := resolveStrategy(set, nodes) // ResolveSpec reports a number that cannot be read
	out := predownload.ParseAnnotations(set, nodes)
	out.Selector, out.MaxUnavailable, out.SameNode = set.Spec.Selector, s.MaxUnavailable, true
	return out
}
