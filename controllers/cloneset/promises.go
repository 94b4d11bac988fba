// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/invariant"
)

var _ invariant.KindWithInvariants = &Kind{}

// BrokenPromise implements invariant.KindWithInvariants: there are never more pods than maxSurge allows. Pods
// that prepare their deletion may be left out of that count.
func (k *Kind) BrokenPromise(o client.Object, before, after invariant.Observation) string {
	set := o.(*kruise.CloneSet)
	strategy, err := resolveStrategy(set)
	if err != nil {
		return err.Error()
	}
	counted := func(s invariant.Observation) int {
		if k.excludesPreparingDelete(set) {
			return s.Active - s.Preparing
		}
		return s.Active
	}
	if most := desiredReplicas(set) + strategy.MaxSurge; counted(after) > counted(before) && counted(after) > most {
		return fmt.Sprintf("makes %d pods, there may be %d", counted(after), most)
	}
	return ""
}
