// SPDX-License-Identifier: Apache-2.0

package restartrequest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func TestWhenARequestIsTriedAgain(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		created        time.Time
		ended, deleted *metav1.Time
		attempt        string
		wait           time.Duration
		due            bool
	}{
		"it goes on":                               {wait: PollInterval},
		"it has just ended":                        {ended: ptr.To(metav1.NewTime(now)), wait: 30 * time.Second},
		"it ended long ago":                        {ended: ptr.To(metav1.NewTime(now.Add(-time.Hour))), due: true},
		"the clock of its node is an hour late":    {created: now, ended: ptr.To(metav1.NewTime(now.Add(-time.Hour))), wait: 30 * time.Second},
		"the clock of its node is a year early":    {created: now.Add(-10 * time.Second), ended: ptr.To(metav1.NewTime(now.Add(365 * 24 * time.Hour))), wait: 20 * time.Second},
		"such an early one that was made long ago": {created: now.Add(-time.Hour), ended: ptr.To(metav1.NewTime(now.Add(365 * 24 * time.Hour))), due: true},
		"it is being deleted":                      {ended: ptr.To(metav1.NewTime(now.Add(-time.Hour))), deleted: ptr.To(metav1.NewTime(now)), wait: PollInterval},
		"the third waits for four times":           {ended: ptr.To(metav1.NewTime(now)), attempt: "3", wait: 2 * time.Minute},
		"none waits for longer than 5 min":         {ended: ptr.To(metav1.NewTime(now)), attempt: "1000000", wait: 5 * time.Minute},
		"what is no number counts as one":          {ended: ptr.To(metav1.NewTime(now)), attempt: "null", wait: 30 * time.Second},
		"a negative number counts as one":          {ended: ptr.To(metav1.NewTime(now)), attempt: "-9", wait: 30 * time.Second},
		"a number without end counts as one":       {ended: ptr.To(metav1.NewTime(now)), attempt: "99999999999999999999", wait: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			o := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: tc.deleted, CreationTimestamp: metav1.NewTime(tc.created)}}
			if tc.attempt != "" {
				o.Annotations = map[string]string{AttemptAnnotation: tc.attempt}
			}
			o.Status.CompletionTime = tc.ended
			if wait, due := NextTry(o, now); wait != tc.wait || due != tc.due {
				t.Errorf("it waits for %s and is due %t, want %s and %t", wait, due, tc.wait, tc.due)
			}
		})
	}
}
