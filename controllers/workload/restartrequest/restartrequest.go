// SPDX-License-Identifier: Apache-2.0

// Package restartrequest tries again what a ContainerRecreateRequest of ours did not do: a request
// that has ended although its container still runs, such as one that a node agent could not carry out.
package restartrequest

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

const (
	// AttemptAnnotation is how many requests there were for one purpose, this one included: a
	// number from 2 on. The first request does not have it.
	AttemptAnnotation = "apps.kruise.io/request-attempt"
	// PollInterval is how long after a request was found that has not ended its container is
	// looked at again.
	PollInterval = 30 * time.Second

	firstDelay = 30 * time.Second
	maxDelay   = 5 * time.Minute
	// maxAttempt bounds the number in the annotation, which a user can write.
	maxAttempt = 1 << 20
)

// AttemptNumber is the number of a request in the annotation; 1 where it has none that can be read.
func AttemptNumber(o *kruise.ContainerRecreateRequest) int {
	n, err := strconv.Atoi(o.Annotations[AttemptAnnotation])
	if err != nil || n < 1 || n > maxAttempt {
		return 1
	}
	return n
}

// NextTry is how long to wait until what a request was for is asked for again, while its container
// still runs: 30 s after the first request has ended, twice as long after each further one, at most 5 min. It is not
// due while the request goes on. When it ended is what the clock of its node said. One that is wrong makes a
// request that ended before it was made, or long after now: then the time counts from when it was made.
func NextTry(o *kruise.ContainerRecreateRequest, now time.Time) (wait time.Duration, due bool) {
	if o.Status.CompletionTime == nil || o.DeletionTimestamp != nil {
		return PollInterval, false
	}
	delay := maxDelay
	if n := AttemptNumber(o); n < 5 { // 30 s << 4 is more than the longest delay
		delay = min(firstDelay<<(n-1), maxDelay)
	}
	since := o.Status.CompletionTime.Time
	if since.Before(o.CreationTimestamp.Time) || since.Sub(now) > delay {
		since = o.CreationTimestamp.Time
	}
	if wait = since.Add(delay).Sub(now); wait > 0 {
		return wait, false
	}
	return 0, true
}

// ReplaceEnded removes a request that has ended, so that the next one can have its name, and
// counts in next. It fails if the request is another one by now.
func ReplaceEnded(ctx context.Context, c client.Client, ended, next *kruise.ContainerRecreateRequest) error {
	err := c.Delete(ctx, ended, client.Preconditions{UID: &ended.UID, ResourceVersion: &ended.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting ContainerRecreateRequest %s/%s, which has ended while its container runs: %w", ended.Namespace, ended.Name, err)
	}
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[AttemptAnnotation] = strconv.Itoa(AttemptNumber(ended) + 1)
	return nil
}
