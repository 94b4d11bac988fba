// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
	"github.com/regatta-sh/regatta/controllers/workload/predownload"
)

// PredownloadSettings implements predownload.Kind.
func (k *Kind) PredownloadSettings(o client.Object) predownload.PrePullSpec {
	set := o.(*kruise.CloneSet)
	out := predownload.PrePullSpec{Selector: set.Spec.Selector}
	ru := rollingStrategy(set)
	if ru == nil {
		return out
	}
	unavailable := intstr.FromString(kruise.DefaultCloneSetMaxUnavailable)
	if ru.MaxUnavailable != nil {
		unavailable = *ru.MaxUnavailable
	}
	out.MaxUnavailable, _ = budget.ResolvePercent(unavailable, desiredReplicas(set), false) // Spec reports one that cannot be read
	if s := ru.InPlaceUpdateStrategy; s != nil {
		out.Parallelism, out.TimeoutSeconds = s.ImagePreDownloadParallelism, s.ImagePreDownloadTimeoutSeconds
		if s.ImagePreDownloadMinUpdatedReadyPods != nil {
			out.MinUpdatedReady = int(*s.ImagePreDownloadMinUpdatedReadyPods)
		}
	}
	return out
}
