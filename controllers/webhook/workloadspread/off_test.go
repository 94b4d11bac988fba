// SPDX-License-Identifier: Apache-2.0

package workloadspread

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// Where nothing puts pods into subsets no spread is made, and the spec of those there are
// stays as it is.
func TestTheGateIsOff(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1beta1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(s).Build()
	spread := &v1beta1.WorkloadSpread{}
	spread.Spec.TargetReference = v1beta1.TargetReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet", Name: "web"}
	spread.Spec.Subsets = []v1beta1.WorkloadSpreadSubset{{Name: "a"}}
	for _, off := range []bool{true, false} {
		kind := New(reader, rules.Configuration{Reader: reader, Namespace: "ns"}, podtemplate.Settings{}, off, nil)
		for _, old := range []*v1beta1.WorkloadSpread{nil, spread} {
			found := &rules.Findings{}
			kind.Validate(t.Context(), spread, old, found)
			got := len(found.Errs) == 1 && strings.Contains(found.Errs[0].Error(), "feature-gate WorkloadSpread is not enabled")
			if got != off || !off && len(found.Errs) > 0 {
				t.Errorf("off %t, old %t: %v", off, old != nil, found.Errs)
			}
		}
	}
}
