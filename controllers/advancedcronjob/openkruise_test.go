// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/apiserver"
	"github.com/regatta-sh/regatta/test/openkruise"
)

// Taking over what OpenKruise left starts no run that it has started, also if the jobs of
// the last runs, or what it remembers of them, are gone; the next run starts when it is due.
func TestTakingOverFromOpenKruise(t *testing.T) {
	last := map[string]string{"before": "2026-11-22T10:49:00Z", "during": "2026-11-22T10:51:00Z", "after": "2026-11-22T10:52:00Z"}
	for stage, at1 := range last {
		for _, what := range []string{"whole", "without the jobs", "forgotten"} {
			t.Run(stage+" "+what, func(t *testing.T) {
				w := newWorld(t, nil)
				for _, o := range openkruise.Objects(t, apiserver.Scheme(t), "testdata/openkruise/"+stage+".yaml") {
					o.SetResourceVersion("")
					job, cron := o.(*kruise.AdvancedCronJob)
					if cron && what == "forgotten" {
						job.Status.LastScheduleTime, job.Status.Active = nil, nil
					}
					if !cron && what != "whole" {
						continue
					}
					if err := w.api.Create(t.Context(), o); err != nil {
						t.Fatal(err)
					}
				}
				w.created = nil
				w.key = client.ObjectKey{Namespace: "shop", Name: "tick"}
				w.now = at(t, at1)
				for range 3 {
					w.reconcile()
				}
				if len(w.created) > 0 {
					t.Errorf("it started %v", w.created)
				}
				left := meta.FindStatusCondition(w.get().Status.Conditions, kruise.AdvancedCronJobRunLeftOut)
				if (left != nil) != (what == "forgotten") {
					t.Errorf("left out is %+v", left)
				}
				w.now = w.now.Add(60e9)
				for range 3 {
					w.reconcile()
				}
				if len(w.created) != 1 {
					t.Errorf("a minute later it has started %v", w.created)
				}
			})
		}
	}
}
