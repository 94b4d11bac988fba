// SPDX-License-Identifier: Apache-2.0

package adapters_test

import (
	"reflect"
	"testing"

	"k8s.io/component-base/featuregate"

	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/kinds/adapters"
)

// The manager starts, and a simulation runs, whatever the table says is acted on.
func TestEveryKindThatIsActedOnHasItsAdapter(t *testing.T) {
	settings := adapters.Settings{On: func(featuregate.Feature) bool { return false }}
	for _, w := range kinds.PodOwners() {
		kind, err := adapters.New(w, settings)
		if (err == nil) != w.Acting {
			t.Errorf("%s: acted on %t, and %v", w.Kind, w.Acting, err)
		}
		if err != nil {
			continue
		}
		typ := kind.WorkloadType()
		if typ.GroupKind() != w.GroupKind() || reflect.TypeOf(typ.New()) != reflect.TypeOf(w.New()) || reflect.TypeOf(typ.NewList()) != reflect.TypeOf(w.NewList()) {
			t.Errorf("the adapter of %s is that of %s", w.GroupKind(), typ.GroupKind())
		}
	}
}
