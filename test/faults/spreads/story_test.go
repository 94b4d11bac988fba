// SPDX-License-Identifier: Apache-2.0

package spreads

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/faults/versions"
)

// Each step is a version of a pod: its name, its subset, and - before a name for a pod that is gone.
func TestASubsetBeyondItsLimitIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		steps          []string
		full, unspread int
		want           []string
	}{
		"within its limit":              {steps: []string{"p a", "q a", "r b"}, full: 1},
		"beyond it":                     {steps: []string{"p a", "q a", "r a"}, full: 1, want: []string{"revision 3, pod r: subset a has 3 pods, and may have 2"}},
		"a pod that is gone makes room": {steps: []string{"p a", "q a", "-p a", "r a"}, full: 2},
		"a pod that goes makes room":    {steps: []string{"p a", "q a", "~p a", "r a", "-p a"}, full: 2},
		"a pod that was let in without": {steps: []string{"p", "q", "p a", "q a"}, full: 1, unspread: 2},
		"the same pod again":            {steps: []string{"p a", "q a", "q a", "p a"}, full: 1},
		"a subset without a limit":      {steps: []string{"p rest", "q rest", "r rest"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &story{most: map[string]int{"a": 2}, of: map[string]string{}}
			for i, step := range tc.steps {
				var pod, subset string
				if _, err := fmt.Sscan(step, &pod, &subset); err != nil && subset != "" {
					t.Fatal(err)
				}
				v := versions.Version{Revision: int64(i + 1), Gone: pod[0] == '-'}
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod, Annotations: map[string]string{}}}
				switch pod[0] {
				case '~':
					p.DeletionTimestamp = &metav1.Time{}
					fallthrough
				case '-':
					p.Name = pod[1:]
				}
				if subset != "" {
					p.Annotations[kruise.MatchedWorkloadSpreadKey] = fmt.Sprintf(`{"name": "web", "subset": %q}`, subset)
				}
				v.Object = p
				s.note(v)
			}
			if !slices.Equal(s.violations, tc.want) || s.full != tc.full || s.unspread != tc.unspread || s.pods != len(tc.steps) {
				t.Errorf("found %q, full %d times, %d without a subset, of %d versions", s.violations, s.full, s.unspread, s.pods)
			}
		})
	}
}

// A trial that tried nothing is none.
func TestAReportOfNothingIsAnError(t *testing.T) {
	good := func() *Report {
		return &Report{load: Load{Pods: 10, Kill: func() error { return nil }}, created: 10, kills: 1, summary: summary{pods: 12, full: 1, statuses: 5}}
	}
	if err := good().Err(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Report){
		"a subset was over its limit":   func(r *Report) { r.violations = []string{"x"} },
		"no subset was full":            func(r *Report) { r.full = 0 },
		"too few pods were created":     func(r *Report) { r.created = 9 },
		"too few pods were seen":        func(r *Report) { r.pods = 9 },
		"each pod cost a write":         func(r *Report) { r.statuses = 10 },
		"no manager was killed, though": func(r *Report) { r.kills = 0 },
	} {
		r := good()
		spoil(r)
		if r.Err() == nil {
			t.Errorf("%s, and that is no error", name)
		}
	}
}
