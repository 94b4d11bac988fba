// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/condition"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

// summarizeRequest sets the conditions of package kstatus. A request without a phase gets none, since the schema takes no status without one.
// While containers restart, the message counts none of them: that would be another write for each.
func (r *Reconciler) summarizeRequest(request *kruise.ContainerRecreateRequest) {
	s := &request.Status
	if s.Phase == "" {
		condition.RemoveConditions(s, kruise.ConditionStalled) // its feature gate was off
		return
	}
	kstatus.SetConditions(s, judgeRequest(s), request.Generation, r.Now())
}

func judgeRequest(s *kruise.ContainerRecreateRequestStatus) kstatus.Summary {
	if s.Phase == kruise.ContainerRecreateRequestPending || s.Phase == kruise.ContainerRecreateRequestRecreating {
		held, is := condition.FindCondition(s, kruise.ContainerRecreateRequestHeld)
		switch {
		case is && held.Status == metav1.ConditionTrue:
			return kstatus.NewReconciling(kruise.ContainerRecreateRequestHeld, held.Message)
		case s.Phase == kruise.ContainerRecreateRequestPending:
			return kstatus.NewReconciling(kruise.ProgressingReason, "The request waits for another one of its pod.")
		}
		return kstatus.NewReconciling(kruise.ProgressingReason, "The containers restart.")
	}
	succeeded, failed := 0, ""
	for i := range s.ContainerRecreateStates {
		switch c := &s.ContainerRecreateStates[i]; {
		case c.Phase == kruise.ContainerRecreateRequestSucceeded:
			succeeded++
		case failed == "":
			failed = fmt.Sprintf(" Container %s: %s", c.Name, c.Message)
		}
	}
	text := fmt.Sprintf("%d of %d containers have restarted.", succeeded, len(s.ContainerRecreateStates))
	if failed == "" && s.Message != "" { // it ended before its node reported on the containers
		failed = " " + s.Message
	}
	if failed != "" || s.Phase == kruise.ContainerRecreateRequestFailed {
		return kstatus.NewStalled(kruise.ContainersNotRestartedReason, text+failed)
	}
	return kstatus.NewReady(kruise.ContainersRestartedReason, text)
}
