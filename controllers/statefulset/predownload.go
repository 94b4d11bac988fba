// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/predownload"
)

// Wish implements predownload.Kind, by annotations alone.
func (k *Kind) Wish(o client.Object) predownload.Wish {
	set := o.(*kruise.StatefulSet)
	s, _ := resolve(set) // Spec reports a number that cannot be read
	out := predownload.Annotated(set, replicas(set))
	out.Selector, out.MaxUnavailable = set.Spec.Selector, s.MaxUnavailable
	return out
}
