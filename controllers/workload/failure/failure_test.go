// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/message"
)

func TestTheConditionOfEachKindOfStatus(t *testing.T) {
	first, later := time.Unix(1_800_000_000, 0), time.Unix(1_800_000_600, 0)
	for _, status := range []any{
		&kruise.SidecarSetStatus{}, &kruise.BroadcastJobStatus{}, &kruise.DaemonSetStatus{}, &kruise.StatefulSetStatus{}, &kruise.CloneSetStatus{},
	} {
		t.Run(fmt.Sprintf("%T", status), func(t *testing.T) {
			if !failure.SetCondition(status, errors.New("listing pods: no answer"), 3, first) || failure.SetCondition(status, errors.New("listing pods: no answer"), 3, later) {
				t.Error("the first is not new, or the second is")
			}
			text := fmt.Sprintf("%+v", status)
			if !strings.Contains(text, "FailedReconcile") || !strings.Contains(text, "listing pods: no answer") {
				t.Errorf("the status is %s", text)
			}
			ready, _ := condition.FindCondition(status, kruise.ConditionReady)
			if waits, is := condition.FindCondition(status, kruise.ConditionReconciling); !is || waits.Message != "listing pods: no answer" || ready.Status != metav1.ConditionFalse {
				t.Errorf("the status is %s", text)
			}
			if !failure.SetCondition(status, errors.New(strings.Repeat("x", 1<<20)), 3, later) {
				t.Error("another error is not new")
			}
			text = fmt.Sprintf("%+v", status)
			if strings.Count(text, first.Format("15:04:05")) == 0 || len(text) > 4*message.MostBytes || strings.Contains(text, "no answer") {
				t.Errorf("the time is not that of the first error, or the message is not bounded: %s", text)
			}
		})
	}
	if failure.SetCondition(&struct{ Conditions []string }{}, errors.New("no"), 1, first) || failure.SetCondition(&struct{}{}, errors.New("no"), 1, first) {
		t.Error("a status without conditions has one")
	}
}

func TestWhichErrorsAreReported(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{nil, false}, {errors.New("no"), true},
		{fmt.Errorf("writing: %w", apierrors.NewConflict(pods, "a", nil)), false}, {apierrors.NewNotFound(pods, "a"), false},
	} {
		if got := failure.IsReported(tc.err); got != tc.want {
			t.Errorf("%v: %t", tc.err, got)
		}
	}
}
