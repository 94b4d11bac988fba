// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// RefuseControlled returns an error if a UnitedDeployment controls the object. The UnitedDeployment writes the
// spec of its subsets, so that a change of it would not last.
func (o *Object) RefuseControlled() error {
	owner := metav1.GetControllerOf(o.Live)
	if owner == nil || owner.Kind != "UnitedDeployment" {
		return nil
	}
	if gv, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || gv.Group != kruise.GroupVersion.Group {
		return nil
	}
	return exit.RefusalError(fmt.Errorf("%s is of UnitedDeployment %s, which would undo the change; "+
		"change the UnitedDeployment instead", o, owner.Name))
}
