// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The pods of the Jobs wait for a node that is not there, so that Jobs go on, but where a
// scenario takes the selector away.
var cronJob = kind{
	native: `
apiVersion: batch/v1
kind: CronJob
metadata: {name: often}
spec:
  schedule: "* * * * *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, nodeSelector: {none: here}, containers: [{name: main, image: "app:v1"}]}}}}
`,
	advanced: `
apiVersion: apps.kruise.io/v1beta1
kind: AdvancedCronJob
metadata: {name: often}
spec:
  schedule: "* * * * *"
  template: {jobTemplate: {spec: {template: {spec: {restartPolicy: Never, nodeSelector: {none: here}, containers: [{name: main, image: "app:v1"}]}}}}}
`,
	paths:   strings.NewReplacer("/spec/jobTemplate", "/spec/template/jobTemplate", "/spec/suspend", "/spec/paused"),
	see:     seeCronJob,
	history: func(*side) string { return "" },
}

// seeCronJob has how many Jobs there are, how many of them the status calls active, and which
// minute was the last that was scheduled, counted from the one in which the scenario began.
func seeCronJob(ctx context.Context, o *side) (string, error) {
	var jobs batchv1.JobList
	if err := o.c.List(ctx, &jobs, client.InNamespace(o.namespace)); err != nil {
		return "", fmt.Errorf("listing jobs: %w", err)
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(o.object.GroupVersionKind())
	if err := o.c.Get(ctx, client.ObjectKeyFromObject(o.object), object); err != nil {
		return "", fmt.Errorf("reading the object: %w", err)
	}
	active, _, err := unstructured.NestedSlice(object.Object, "status", "active")
	if err != nil {
		return "", fmt.Errorf("reading the status: %w", err)
	}
	last, found, err := unstructured.NestedString(object.Object, "status", "lastScheduleTime")
	if err != nil {
		return "", fmt.Errorf("reading the status: %w", err)
	}
	text := fmt.Sprintf("%d jobs, %d active", len(jobs.Items), len(active))
	if !found || last == "" {
		return text + ", none scheduled", nil
	}
	at, err := time.Parse(time.RFC3339, last)
	if err != nil {
		return "", fmt.Errorf("reading the last time: %w", err)
	}
	return fmt.Sprintf("%s, last of minute %d", text, int(at.Sub(o.started.Truncate(time.Minute)).Minutes())), nil
}

// earlyInTheMinute keeps the minute from ending between the two creates.
func earlyInTheMinute(t *testing.T) {
	t.Helper()
	if now := time.Now(); now.Second() > 40 {
		select {
		case <-t.Context().Done():
		case <-time.After(time.Until(now.Truncate(time.Minute).Add(61 * time.Second))):
		}
	}
}

// until waits until so many minutes of the clock have begun since the scenario did, and a while more.
func until(minutes int, more time.Duration) func(context.Context, *side) error {
	return func(ctx context.Context, o *side) error {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Until(o.started.Truncate(time.Minute).Add(time.Duration(minutes)*time.Minute + more))):
			return nil
		}
	}
}

func concurrency(policy batchv1.ConcurrencyPolicy) string {
	return fmt.Sprintf(`{"op": "add", "path": "/spec/concurrencyPolicy", "value": %q}`, policy)
}

func deadline(seconds int) string {
	return fmt.Sprintf(`{"op": "add", "path": "/spec/startingDeadlineSeconds", "value": %d}`, seconds)
}

const (
	suspended = `{"op": "add", "path": "/spec/suspend", "value": true}`
	resumed   = `[{"op": "replace", "path": "/spec/suspend", "value": false}]`
	finishes  = `{"op": "remove", "path": "/spec/jobTemplate/spec/template/spec/nodeSelector"}`
)

// daily has one run a day, at the minute after next as the clock of one zone shows it, in a zone.
func daily(clock, zone string) string {
	where, err := time.LoadLocation(clock)
	if err != nil {
		panic(err) // the zones of the tests are built in
	}
	at := time.Now().Add(2 * time.Minute).In(where)
	return fmt.Sprintf(`{"op": "replace", "path": "/spec/schedule", "value": "%d %d * * *"}, {"op": "add", "path": "/spec/timeZone", "value": %q}`, at.Minute(), at.Hour(), zone)
}

func cronJobs() []scenario {
	return []scenario{
		{name: "Allow runs one beside the other", edit: list(concurrency(batchv1.AllowConcurrent)), steps: []step{
			{does: "the first minute", want: "1 jobs, 1 active, last of minute 1"},
			{does: "the second minute", want: "2 jobs, 2 active, last of minute 2"},
		}},
		{name: "Forbid waits for the one that runs", edit: list(concurrency(batchv1.ForbidConcurrent)), steps: []step{
			{does: "the first minute", want: "1 jobs, 1 active, last of minute 1"},
			{does: "the second minute", act: until(2, 5*time.Second), want: "1 jobs, 1 active, last of minute 1", still: 2 * time.Second},
		}},
		{name: "Replace ends the one that runs", edit: list(concurrency(batchv1.ReplaceConcurrent)), steps: []step{
			{does: "the first minute", want: "1 jobs, 1 active, last of minute 1"},
			{does: "the second minute", want: "1 jobs, 1 active, last of minute 2"},
		}},
		{name: "runs that have ended are kept up to the limit", edit: list(finishes, `{"op": "add", "path": "/spec/successfulJobsHistoryLimit", "value": 1}`), steps: []step{
			{does: "the first minute", want: "1 jobs, 0 active, last of minute 1"},
			{does: "the second minute", want: "1 jobs, 0 active, last of minute 2"},
		}},
		{name: "a run that was missed starts late, within its deadline", edit: list(suspended, deadline(50)), steps: []step{
			{does: "the first minute", act: until(1, 5*time.Second), want: "0 jobs, 0 active, none scheduled", still: time.Second},
			{does: "resumed", act: change(resumed), want: "1 jobs, 1 active, last of minute 1"},
		}},
		{name: "a run that was missed does not start after its deadline", edit: list(suspended, deadline(12)), steps: []step{
			{does: "the first minute", act: until(1, 20*time.Second), want: "0 jobs, 0 active, none scheduled"},
			{does: "resumed", act: change(resumed), want: "0 jobs, 0 active, none scheduled", still: 5 * time.Second},
		}},
		{name: "a time is that of its zone", edit: list(daily("Asia/Shanghai", "Asia/Shanghai")), steps: []step{
			{does: "its minute", act: until(1, 30*time.Second), want: "1 jobs, 1 active, last of minute 2"},
		}},
		{name: "a time of another zone is another time", edit: list(daily("Asia/Shanghai", "Europe/Berlin")), steps: []step{
			{does: "its minute", act: until(2, 10*time.Second), want: "0 jobs, 0 active, none scheduled", still: time.Second},
		}},
	}
}
