// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOutcomeOf(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"none":                              {nil, Allowed},
		"a webhook refuses":                 {apierrors.NewForbidden(pods, "a", errors.New(`admission webhook "x" denied the request: no`)), Denied},
		"no manager answers":                {apierrors.NewInternalError(errors.New(`failed calling webhook "x": refused`)), Failed},
		"the pod is gone":                   {apierrors.NewNotFound(pods, "a"), Missed},
		"the pod has changed":               {apierrors.NewConflict(pods, "a", errors.New("changed")), Missed},
		"etcd does not answer":              {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), Failed},
		"the API server has too much to do": {apierrors.NewTooManyRequests("later", 1), Failed},
		"the connection breaks":             {fmt.Errorf("sending: %w", errors.New("http2: client connection lost")), Failed},
		"the API server takes no such pod":  {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), ""},
		"the client may not":                {apierrors.NewForbidden(pods, "a", errors.New("no rule")), ""},
		"the API server knows no resize":    {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 405, Reason: metav1.StatusReasonMethodNotAllowed}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcomeOf(test.err); got != test.want {
				t.Errorf("outcome %q, want %q", got, test.want)
			}
		})
	}
}
