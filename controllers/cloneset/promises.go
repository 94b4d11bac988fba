// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/witness"
)

var _ witness.Promiser = &Kind{}

// Broken implements witness.Promiser: there are never more pods than maxSurge allows. Pods
// that prepare their deletion may be left out of that count.
func (k *Kind) Broken(o client.Object, before, after witness.Sight) string {
	set := o.(*kruise.CloneSet)
	strategy, err := resolve(set)
	if err != nil {
		return err.Error()
	}
	counted := func(s witness.Sight) int {
		if k.excludes(set) {
			return s.Active - s.Preparing
		}
		return s.Active
	}
	if most := replicas(set) + strategy.MaxSurge; counted(after) > counted(before) && counted(after) > most {
		return fmt.Sprintf("makes %d pods, there may be %d", counted(after), most)
	}
	return ""
}
