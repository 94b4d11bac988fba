// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/reconcile"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/test/waiting"
)

func TestWhatKstatusSaysOfAContainerRecreateRequest(t *testing.T) {
	type state = kruise.ContainerRecreateRequestContainerRecreateState
	now, done := time.Unix(1_800_000_000, 0), ptr.To(metav1.Unix(1_800_000_000, 0))
	restarted, failed := state{Name: "web", Phase: kruise.ContainerRecreateRequestSucceeded}, state{Name: "log", Phase: kruise.ContainerRecreateRequestFailed, Message: "not found container on Node"}
	held := []metav1.Condition{{Type: kruise.ContainerRecreateRequestHeld, Status: metav1.ConditionTrue, Reason: "Budget", Message: "a budget is used up"}}
	grace := []metav1.Condition{{Type: kruise.ContainerRecreateRequestPreRecreateGrace, Status: metav1.ConditionTrue, Reason: "PreRecreateGrace"}}
	for name, tc := range map[string]struct {
		status       kruise.ContainerRecreateRequestStatus
		want         status.Status
		reason, text string
	}{
		"its node has not answered yet":         {kruise.ContainerRecreateRequestStatus{}, waiting.Current, "", ""},
		"it waits for another request":          {kruise.ContainerRecreateRequestStatus{Phase: kruise.ContainerRecreateRequestPending}, waiting.InProgress, kruise.ProgressingReason, "The request waits for another one of its pod."},
		"containers restart":                    {kruise.ContainerRecreateRequestStatus{Phase: kruise.ContainerRecreateRequestRecreating, ContainerRecreateStates: []state{restarted}, Conditions: grace}, waiting.InProgress, kruise.ProgressingReason, "The containers restart."},
		"a policy holds it":                     {kruise.ContainerRecreateRequestStatus{Phase: kruise.ContainerRecreateRequestRecreating, Conditions: held}, waiting.InProgress, kruise.ContainerRecreateRequestHeld, "a budget is used up"},
		"all containers have restarted":         {kruise.ContainerRecreateRequestStatus{Phase: kruise.ContainerRecreateRequestCompleted, CompletionTime: done, ContainerRecreateStates: []state{restarted}, Conditions: grace}, waiting.Current, kruise.ContainersRestartedReason, "1 of 1 containers have restarted."},
		"a container was not restarted":         {kruise.ContainerRecreateRequestStatus{Phase: kruise.ContainerRecreateRequestCompleted, CompletionTime: done, ContainerRecreateStates: []state{restarted, failed}}, waiting.Failed, kruise.ContainersNotRestartedReason, "1 of 2 containers have restarted. Container log: not found container on Node"},
		"it ended before its node said a thing": {kruise.ContainerRecreateRequestStatus{Phase: kruise.ContainerRecreateRequestCompleted, CompletionTime: done, Message: "pod has gone"}, waiting.Failed, kruise.ContainersNotRestartedReason, "0 of 0 containers have restarted. pod has gone"},
	} {
		request := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 1}, Status: tc.status}
		first := len(tc.status.Conditions)
		New(reconcile.Deps{Now: func() time.Time { return now }}).summarizeRequest(request)
		got, message := waiting.JudgeObject(t, kruise.GroupVersion.WithKind("ContainerRecreateRequest"), request)
		ready, _ := condition.FindCondition(&request.Status, kruise.ConditionReady)
		if got != tc.want || ready.Reason != tc.reason || ready.Message != tc.text {
			t.Errorf("%s: kstatus says %s (%s), and Ready is %+v; want %s, %s, %q", name, got, message, ready, tc.want, tc.reason, tc.text)
		}
		if all := request.Status.Conditions; first > 0 && all[0].Type != tc.status.Conditions[0].Type {
			t.Errorf("%s: the first condition is %+v", name, all[0])
		}
	}
}
