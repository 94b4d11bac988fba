// SPDX-License-Identifier: Apache-2.0

package spreads

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
	"github.com/regatta-sh/regatta/controllers/workloadspread/spread"
	"github.com/regatta-sh/regatta/test/faults/versions"
)

// summary is what was stored.
type summary struct {
	// pods and statuses are how many versions of each there were.
	pods, statuses int
	// full is how often a subset came to its limit, and unspread how many pods were let in without a subset.
	full, unspread int
	violations     []string
}

// story follows the pods of each subset, version by version.
type story struct {
	most map[string]int
	// of is the subset of each pod that counts.
	of map[string]string
	summary
}

// note takes the next version of a pod or of the spread.
func (s *story) note(v versions.Version) {
	switch o := v.Object.(type) {
	case *kruise.WorkloadSpread:
		s.statuses++
	case *corev1.Pod:
		s.pods++
		m, was := spread.MarkOf(o), s.of[o.Name]
		switch counts := !v.Gone && availability.IsActive(o); {
		case !counts:
			delete(s.of, o.Name)
		case m == nil:
			if was == "" {
				s.unspread++
				s.of[o.Name] = "none"
			}
		case was != m.Subset:
			s.of[o.Name] = m.Subset
			s.check(v, m.Subset)
		}
	}
}

func (s *story) check(v versions.Version, subset string) {
	most, limited := s.most[subset]
	n := 0
	for _, of := range s.of {
		if of == subset {
			n++
		}
	}
	switch {
	case !limited:
	case n == most:
		s.full++
	case n > most:
		s.violations = append(s.violations, fmt.Sprintf("revision %d, pod %s: subset %s has %d pods, and may have %d", v.Revision, v.Object.GetName(), subset, n, most))
	}
}
