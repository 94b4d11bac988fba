// SPDX-License-Identifier: Apache-2.0

// Package restartrequest retries ContainerRecreateRequests of Regatta that ended without a restart: the container
// still runs, for example because a node agent could not carry out the request.
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
	// AttemptAnnotation has the number of requests for one purpose, including this one: a
	// number from 2 on. The first request does not have it.
	AttemptAnnotation = "apps.kruise.io/request-attempt"
	// PollInterval is the delay before a container is checked again while the request for it has not
	// ended.
	PollInterval = 30 * time.Second

	firstDelay = 30 * time.Second
	maxDelay   = 5 * time.Minute
	// maxAttempt bounds the number in the annotation, which a user can write.
	maxAttempt = 1 << 20
)

// AttemptNumber returns the number in the annotation of a request; 1 if it has none that can be read.
func AttemptNumber(o *kruise.ContainerRecreateRequest) int {
	n, err := strconv.Atoi(o.Annotations[AttemptAnnotation])
	if err != nil || n < 1 || n > maxAttempt {
		return 1
	}
	return n
}

// NextTry returns how long to wait before a restart is requested again while the container
// still runs: 30 s after the first request has ended, twice as long after each further one, at most 5 min. It is not
// due while the request is under way. The time of its end is from the clock of its node. If that clock is wrong, so that the
// request ended before it was created, or long after now, the delay counts from its creation.
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

// ReplaceEnded deletes a request that has ended, so that the next one can have its name, and
// sets the number of the attempt in next. It fails if the request has changed or was replaced.
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
