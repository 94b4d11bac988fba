// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// A status that the API server refuses says nothing of it: an event does, on objects of ours, whoever writes it and however. What is
// taken later is none: an API server that is away would be an event on each object.
func TestAStatusThatIsRefusedIsReportedByAnEvent(t *testing.T) {
	s, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	resource := schema.GroupResource{Group: "apps.kruise.io", Resource: "clonesets"}
	forbidden := apierrors.NewForbidden(resource, "web", errors.New("a policy denies it"))
	denied := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 400, Message: "admission webhook denied the request"}}
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "web"}
	for name, tc := range map[string]struct {
		on     client.Object
		answer error
		want   int
	}{
		"refused":                  {&kruise.CloneSet{ObjectMeta: meta}, forbidden, 1},
		"by a webhook":             {&kruise.CloneSet{ObjectMeta: meta}, denied, 1},
		"by a webhook, wrapped":    {&kruise.CloneSet{ObjectMeta: meta}, fmt.Errorf("writing: %w", denied), 1},
		"invalid":                  {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewInvalid(schema.GroupKind{Group: resource.Group, Kind: "CloneSet"}, "web", nil), 1},
		"too large":                {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewRequestEntityTooLargeError("3 MiB"), 1},
		"a bad request":            {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewBadRequest("no such field"), 1},
		"beyond a quota":           {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewForbidden(resource, "web", errors.New("exceeded quota: all")), 1},
		"taken":                    {&kruise.CloneSet{ObjectMeta: meta}, nil, 0},
		"changed by another":       {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewConflict(resource, "web", errors.New("it has changed")), 0},
		"gone":                     {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewNotFound(resource, "web"), 0},
		"too old":                  {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewResourceExpired("too old"), 0},
		"nobody known":             {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewUnauthorized("the token has ended"), 0},
		"too many requests":        {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewTooManyRequests("wait", 1), 0},
		"too many, without a time": {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewTooManyRequestsError("wait"), 0},
		"an error of the server":   {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewInternalError(errors.New("etcd has no leader")), 0},
		"a webhook away":           {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewInternalError(errors.New("failed calling webhook")), 0},
		"slow":                     {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewServerTimeout(resource, "update", 1), 0},
		"a timeout":                {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewTimeoutError("request did not complete", 1), 0},
		"unavailable":              {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewServiceUnavailable("starting"), 0},
		"a proxy":                  {&kruise.CloneSet{ObjectMeta: meta}, apierrors.NewGenericServerResponse(502, "PUT", resource, "web", "bad gateway", 0, true), 0},
		"refused to connect":       {&kruise.CloneSet{ObjectMeta: meta}, syscall.ECONNREFUSED, 0},
		"without an answer":        {&kruise.CloneSet{ObjectMeta: meta}, context.DeadlineExceeded, 0},
		"ended":                    {&kruise.CloneSet{ObjectMeta: meta}, context.Canceled, 0},
		"a pod":                    {&corev1.Pod{ObjectMeta: meta}, forbidden, 0},
	} {
		t.Run(name, func(t *testing.T) {
			below := fake.NewClientBuilder().WithScheme(s).WithInterceptorFuncs(interceptor.Funcs{
				SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
					return tc.answer
				},
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return tc.answer
				},
			}).Build()
			fakes := record.NewFakeRecorder(10)
			var events lateRecorder
			c := statusReporter{below, &events}
			if err := c.Status().Update(t.Context(), tc.on); !errors.Is(err, tc.answer) { // before there is a manager
				t.Errorf("got %v", err)
			}
			var recorder record.EventRecorder = fakes
			events.Store(&recorder)
			if err := c.Status().Update(t.Context(), tc.on); !errors.Is(err, tc.answer) {
				t.Errorf("updating: %v", err)
			}
			if err := c.Status().Patch(t.Context(), tc.on, client.RawPatch("application/merge-patch+json", []byte("{}"))); !errors.Is(err, tc.answer) {
				t.Errorf("patching: %v", err)
			}
			if len(fakes.Events) != 2*tc.want {
				t.Fatalf("there are %d events, want %d", len(fakes.Events), 2*tc.want)
			}
			for range 2 * tc.want {
				if got, want := <-fakes.Events, "Warning FailedUpdateStatus the status cannot be written: "+tc.answer.Error(); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		})
	}
}
