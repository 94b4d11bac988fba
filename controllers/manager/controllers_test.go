// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"slices"
	"strings"
	"testing"
)

// Each kind that the manager serves is reconciled by a controller of its table, which has a name of its own, and whose log says what
// does not happen without it.
func TestEachKindHasAController(t *testing.T) {
	o, _ := newOptions(t)
	p := components{Options: o}
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	reconciled, names := map[string]int{}, map[string]bool{}
	for _, row := range slices.Concat(p.listControllers(), p.listWorkloadControllers()) {
		if row.name == "" || row.without == "" || row.build == nil || names[row.name] {
			t.Errorf("the row of %q is not whole, or another one has its name: %+v", row.name, row)
		}
		names[row.name] = true
		if row.kind != "" {
			reconciled[row.kind]++
		}
	}
	served := 0
	for kind := range scheme.AllKnownTypes() {
		list := kind.GroupVersion().WithKind(kind.Kind + "List")
		if !strings.HasSuffix(kind.Group, ".kruise.io") || !scheme.Recognizes(list) || strings.HasSuffix(kind.Kind, "PolicyBundle") {
			continue // policies have a controller of their own, see loadPolicies
		}
		served++
		want := 1
		if kind.Kind == "NodePodProbe" { // its results are read for liveness probes too
			want = 2
		}
		if got := reconciled[kind.Kind]; got != want {
			t.Errorf("%d controllers reconcile %ss, want %d", got, kind.Kind, want)
		}
	}
	if served < 18 {
		t.Errorf("the scheme has %d kinds", served)
	}
}
