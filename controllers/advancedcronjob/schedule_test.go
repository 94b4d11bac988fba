// SPDX-License-Identifier: Apache-2.0

package advancedcronjob

import (
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	_ "github.com/regatta-sh/regatta/test/proptest"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	out, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDue(t *testing.T) {
	for name, tc := range map[string]struct {
		schedule, zone, since, now, want string
		missed                           int
	}{
		"none yet":                        {schedule: "0 3 * * *", since: "2026-03-01T03:00:00Z", now: "2026-03-02T02:59:59Z"},
		"one just now":                    {schedule: "0 3 * * *", since: "2026-03-01T03:00:00Z", now: "2026-03-02T03:00:00Z", want: "2026-03-02T03:00:00Z"},
		"three, of which the last counts": {schedule: "*/10 * * * *", since: "2026-03-01T03:00:00Z", now: "2026-03-01T03:31:00Z", want: "2026-03-01T03:30:00Z", missed: 2},
		"a year of minutes":               {schedule: "* * * * *", since: "2025-03-01T03:00:00Z", now: "2026-03-01T03:31:30Z", want: "2026-03-01T03:31:00Z", missed: 100},
		"once a year":                     {schedule: "0 0 1 1 *", since: "2016-06-01T00:00:00Z", now: "2026-03-01T00:00:00Z", want: "2026-01-01T00:00:00Z", missed: 9},
		"a day that never comes":          {schedule: "0 0 30 2 *", since: "2016-06-01T00:00:00Z", now: "2026-03-01T00:00:00Z"},
		"a delay counts from the last":    {schedule: "@every 90m", since: "2026-03-01T00:10:00Z", now: "2026-03-01T05:00:00Z", want: "2026-03-01T04:40:00Z", missed: 2},
		"a delay that is not over":        {schedule: "@every 90m", since: "2026-03-01T00:10:00Z", now: "2026-03-01T01:39:59Z"},
		"in a zone":                       {schedule: "0 3 * * *", zone: "Asia/Shanghai", since: "2026-03-01T00:00:00Z", now: "2026-03-01T20:00:00Z", want: "2026-03-01T19:00:00Z"},
		"in a zone of the schedule":       {schedule: "TZ=Asia/Shanghai 0 3 * * *", since: "2026-03-01T00:00:00Z", now: "2026-03-01T20:00:00Z", want: "2026-03-01T19:00:00Z"},
		"clocks go forward":               {schedule: "30 3 * * *", zone: "Europe/Berlin", since: "2026-03-28T12:00:00Z", now: "2026-03-29T12:00:00Z", want: "2026-03-29T01:30:00Z"},
		"clocks go back":                  {schedule: "30 3 * * *", zone: "Europe/Berlin", since: "2026-10-24T12:00:00Z", now: "2026-10-25T12:00:00Z", want: "2026-10-25T02:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			job := &kruise.AdvancedCronJob{}
			job.Spec.Schedule = tc.schedule
			if tc.zone != "" {
				job.Spec.TimeZone = &tc.zone
			}
			s, err := parseSchedule(job)
			if err != nil {
				t.Fatal(err)
			}
			last, missed := lastDueTime(s, at(t, tc.since), at(t, tc.now))
			got := ""
			if !last.IsZero() {
				got = last.UTC().Format(time.RFC3339)
			}
			if got != tc.want || missed != tc.missed {
				t.Errorf("got %s after %d, want %s after %d", got, missed, tc.want, tc.missed)
			}
		})
	}
}

// Whatever was missed, the last time is the one that walking all of them ends at.
func TestTheLastTimeIsTheLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SampledFrom([]string{"* * * * *", "*/7 3 * * *", "0 0 1 * *", "15,45 */5 * * 1-5", "0 12 13 * 5", "@hourly", "CRON_TZ=America/New_York 30 1 * * *"}).Draw(t, "schedule")
		s, err := cron.ParseStandard(text)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(rapid.Int64Range(1_600_000_000, 1_900_000_000).Draw(t, "now"), 0).UTC()
		since := now.Add(-time.Duration(rapid.Int64Range(0, 20*24*3600).Draw(t, "ago")) * time.Second)
		var want time.Time
		n := 0
		for x := s.Next(since); !x.IsZero() && !x.After(now); x = s.Next(x) {
			want = x
			n++
		}
		last, missed := lastDueTime(s, since, now)
		if !last.Equal(want) || missed != min(max(n-1, 0), manyMissed) {
			t.Fatalf("got %s after %d, want %s after %d", last, missed, want, n-1)
		}
	})
}

func TestASchedulesThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"": "spec.schedule", "every day": "spec.schedule", "TZ=Europe/Berlin": "nothing follows the zone", "61 * * * *": "spec.schedule", "TZ=Nowhere/Land 0 3 * * *": "spec.schedule",
	} {
		job := &kruise.AdvancedCronJob{}
		job.Spec.Schedule = text
		if _, err := parseSchedule(job); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	for _, zone := range []string{"", "Local", "Nowhere/Land"} {
		job := &kruise.AdvancedCronJob{}
		job.Spec.Schedule, job.Spec.TimeZone = "0 3 * * *", ptr.To(zone)
		if _, err := parseSchedule(job); err == nil || !strings.Contains(err.Error(), "spec.timeZone") {
			t.Errorf("%q: got %v", zone, err)
		}
	}
}
