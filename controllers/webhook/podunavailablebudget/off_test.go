// SPDX-License-Identifier: Apache-2.0

package podunavailablebudget

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// Where nothing holds pods back no budget is made, and those there are can be
// changed.
func TestGatesAreOff(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1beta1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(s).Build()
	b := &v1beta1.PodUnavailableBudget{}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for _, tc := range []struct {
		off  bool
		old  *v1beta1.PodUnavailableBudget
		want bool
	}{{true, nil, true}, {true, b, false}, {false, nil, false}} {
		found := &rules.Findings{}
		New(reader, tc.off).Validate(t.Context(), b, tc.old, found)
		got := len(found.Errs) == 1 && strings.Contains(found.Errs[0].Error(), "feature PodUnavailableBudget is invalid, please open via feature-gate(")
		if got != tc.want || !tc.want && len(found.Errs) > 0 {
			t.Errorf("off %t, old %t: %v", tc.off, tc.old != nil, found.Errs)
		}
	}
}
