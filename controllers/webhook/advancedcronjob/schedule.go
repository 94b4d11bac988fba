// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"strings"
	"time"
	_ "time/tzdata" // the image of the manager has no zones of its own

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func validateSchedule(spec *v1beta1.AdvancedCronJobSpec, path *field.Path, found *rules.Findings) {
	at := path.Child("schedule")
	switch zone, _, some := strings.Cut(spec.Schedule, " "); {
	case spec.Schedule == "":
		found.AddErrors(field.Required(at, "must be a schedule such as 0 3 * * *"))
	case !some && strings.Contains(zone, "="): // the parser panics at a zone that nothing follows
		found.AddErrors(field.Invalid(at, spec.Schedule, "must have a schedule after the zone"))
	default:
		if _, err := cron.ParseStandard(spec.Schedule); err != nil {
			found.AddErrors(field.Invalid(at, spec.Schedule, "must be a schedule such as 0 3 * * * or @daily: "+err.Error()))
		}
	}
	if spec.TimeZone != nil {
		if _, err := time.LoadLocation(*spec.TimeZone); err != nil {
			found.AddErrors(field.Invalid(path.Child("timeZone"), *spec.TimeZone, "must be the name of a zone, such as Europe/Berlin: "+err.Error()))
		}
	}
}
