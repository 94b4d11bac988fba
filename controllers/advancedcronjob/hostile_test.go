// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"testing"

	"github.com/regatta-sh/regatta/controllers/annotation/annotationtest"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func FuzzSchedule(f *testing.F) {
	annotationtest.AddHostile(f)
	f.Fuzz(func(t *testing.T, text string) {
		job := &kruise.AdvancedCronJob{}
		job.Spec.Schedule = text
		_, _ = parseSchedule(job)
		job.Spec.TimeZone = &text
		_, _ = parseSchedule(job)
	})
}
