// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the image of the manager has no zones of its own

	"github.com/robfig/cron/v3"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// invalid is why a schedule is not valid.
type invalid struct{ reason, message string }

func (e *invalid) Error() string { return e.message }

// parseSchedule reads the schedule of a job in its zone (ACJ-04). A schedule in an unknown zone is
// invalid: the times of another zone would be wrong by hours.
func parseSchedule(job *kruise.AdvancedCronJob) (cron.Schedule, error) {
	text := job.Spec.Schedule
	unparseable := func(err error) error {
		return &invalid{kruise.UnparseableScheduleReason, fmt.Sprintf("unparseable schedule %q: %v. Set spec.schedule to five fields such as 0 3 * * *, or to a word such as @daily.", job.Spec.Schedule, err)}
	}
	zoned := strings.Contains(text, "TZ")
	if zone := job.Spec.TimeZone; zone != nil && !zoned {
		if _, err := time.LoadLocation(*zone); err != nil || *zone == "" || *zone == "Local" {
			return nil, &invalid{kruise.UnknownTimeZoneReason, fmt.Sprintf("unknown time zone %q. Set spec.timeZone to the name of a zone, such as Europe/Berlin.", *zone)}
		}
		text = "CRON_TZ=" + *zone + " " + text
	}
	if !strings.Contains(strings.TrimSpace(text), " ") && zoned { // the parser panics at a zone that nothing follows
		return nil, unparseable(fmt.Errorf("nothing follows the zone"))
	}
	s, err := cron.ParseStandard(text)
	if err != nil {
		return nil, unparseable(err)
	}
	return s, nil
}

// manyMissed is up to how many missed times are counted.
const manyMissed = 100

// lastDueTime is the last time after since and not after now, zero if there is none, and how many
// there were before it, counted to manyMissed. It takes about the same time however long ago since is:
// a controller that did not run for months continues at once.
func lastDueTime(s cron.Schedule, since, now time.Time) (last time.Time, missed int) {
	if every, ok := s.(cron.ConstantDelaySchedule); ok {
		first := every.Next(since)
		if first.After(now) {
			return time.Time{}, 0
		}
		steps := int64(now.Sub(first) / every.Delay)
		return first.Add(time.Duration(steps) * every.Delay), int(min(steps, manyMissed)) //nolint:gosec // 100 at most
	}
	for window := time.Minute; last.IsZero(); window *= 2 {
		from := now.Add(-window)
		whole := window <= 0 || from.Before(since) // a window of centuries is more than a duration holds
		if whole {
			from = since
		}
		for t := s.Next(from); !t.IsZero() && !t.After(now); t = s.Next(t) {
			last = t
		}
		if whole {
			break
		}
	}
	if last.IsZero() {
		return last, 0
	}
	for t := s.Next(since); t.Before(last) && !t.IsZero() && missed < manyMissed; t = s.Next(t) {
		missed++
	}
	return last, missed
}
