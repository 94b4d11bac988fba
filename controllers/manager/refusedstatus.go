// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// failedUpdateStatus is the reason of the event. Only Regatta records it: OpenKruise writes such an error only
// to the log of its manager.
const failedUpdateStatus = "FailedUpdateStatus"

// statusReporter is a client that records an event on an object of Regatta's kinds if the API server refuses its status. The status
// itself cannot show that, and stays outdated.
type statusReporter struct {
	client.Client
	events *lateRecorder
}

// lateRecorder has the event recorder once the manager exists: a manager makes its client before its recorders.
type lateRecorder = atomic.Pointer[record.EventRecorder]

// newClient makes the client of a manager.
func (o *Options) newClient(events *lateRecorder) client.NewClientFunc {
	return func(config *rest.Config, options client.Options) (client.Client, error) {
		c, err := client.New(config, options)
		if err != nil {
			return nil, err
		}
		if o.CopyCached {
			c = copyingClient{c}
		}
		return statusReporter{c, events}, nil
	}
}

// Status implements client.StatusClient.
func (c statusReporter) Status() client.SubResourceWriter {
	return statusWriter{c.Client.Status(), c}
}

type statusWriter struct {
	client.SubResourceWriter
	reporter statusReporter
}

// Create implements client.SubResourceWriter.
func (w statusWriter) Create(ctx context.Context, o, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return w.reporter.reportRefusal(o, w.SubResourceWriter.Create(ctx, o, sub, opts...))
}

// Update implements client.SubResourceWriter.
func (w statusWriter) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	return w.reporter.reportRefusal(o, w.SubResourceWriter.Update(ctx, o, opts...))
}

// Patch implements client.SubResourceWriter.
func (w statusWriter) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return w.reporter.reportRefusal(o, w.SubResourceWriter.Patch(ctx, o, patch, opts...))
}

// reportRefusal returns the error of a write of a status. It records an event if a retry of the same write would be refused, too.
func (c statusReporter) reportRefusal(o client.Object, err error) error {
	if !isLastingRefusal(err) {
		return err
	}
	kind, unknown := c.GroupVersionKindFor(o)
	if unknown != nil || !strings.HasSuffix(kind.Group, ".kruise.io") {
		return err
	}
	if events := c.events.Load(); events != nil {
		(*events).Event(o, corev1.EventTypeWarning, failedUpdateStatus, fmt.Sprintf("the status cannot be written: %v", err))
	}
	return err
}

// isLastingRefusal reports whether the error of a write means that the API server refuses the object: it is invalid or too large, or a rule,
// a quota or a webhook denies it. If the API server is busy, cannot be reached, or cannot authenticate the manager for a moment, the writes
// of all objects fail, and succeed later. If the object has changed or is gone, the next write differs.
func isLastingRefusal(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return false
	}
	if _, busy := apierrors.SuggestsClientDelay(err); busy {
		return false
	}
	switch code := answer.Status().Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusGone, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}
