// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

func TestProgressIsWrittenNowAndThen(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	job := &kruise.ImagePullJob{ObjectMeta: metav1.ObjectMeta{UID: "j"}}
	job.Status = kruise.ImagePullJobStatus{Desired: 10, Active: 2}
	tests := map[string]struct {
		change func(*kruise.ImagePullJobStatus)
		after  time.Duration
		want   time.Duration
	}{
		"no change":              {func(*kruise.ImagePullJobStatus) {}, 0, 0},
		"progress at once":       {func(s *kruise.ImagePullJobStatus) { s.Active, s.Succeeded, s.Message = 1, 1, "10%" }, 100 * time.Millisecond, 400 * time.Millisecond},
		"progress later":         {func(s *kruise.ImagePullJobStatus) { s.Failed, s.FailedNodes = 1, []string{"a"} }, 600 * time.Millisecond, 0},
		"more nodes":             {func(s *kruise.ImagePullJobStatus) { s.Desired = 11 }, 0, 0},
		"the end":                {func(s *kruise.ImagePullJobStatus) { s.Succeeded, s.CompletionTime = 10, &metav1.Time{Time: now} }, 0, 0},
		"what a rule holds back": {func(s *kruise.ImagePullJobStatus) { s.Conditions = []metav1.Condition{{Type: "Held"}} }, 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := &paced{every: 500 * time.Millisecond}
			s := *job.Status.DeepCopy()
			tc.change(&s)
			if got := p.timeToWrite(job, s, now); got != 0 {
				t.Errorf("the first one waits for %s", got)
			}
			p.recordWrite(job.UID, now)
			if got := p.timeToWrite(job, s, now.Add(tc.after)); got != tc.want {
				t.Errorf("it waits for %s, want %s", got, tc.want)
			}
			p.forgetJob(job.UID)
			if got := p.timeToWrite(job, s, now); got != 0 {
				t.Errorf("another job waits for %s", got)
			}
		})
	}
}
