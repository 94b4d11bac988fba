// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/kstatus"
)

// JudgeRollout sums up the rollout of a workload for package kstatus.
//   - It is ready when all pods are available and as many as the strategy asks for are updated. Pods that the partition keeps
//     do not count, nor old pods of a strategy that lets pods keep what they have.
//   - It is stalled when its progress deadline is exceeded, unless it waits for a hold to end.
//   - Otherwise it is reconciling. A failure or a hold is the reason, since both can end without a change of the object.
func JudgeRollout(v View) kstatus.Summary {
	trouble := v.FirstTrouble()
	switch {
	case v.IsSettled():
		return kstatus.NewReady(kruise.PodsAvailableReason, v.CompletionText())
	case v.Deadline != "" && !v.KeepsOld && !v.IsHeld():
		return kstatus.NewStalled(kruise.CloneSetProgressDeadlineExceededReason, v.Deadline)
	case trouble != nil:
		return kstatus.NewReconciling(trouble.Type, trouble.Message)
	case v.Done >= v.Target && v.Available < v.Wanted:
		return kstatus.NewReconciling(kruise.ProgressingReason, fmt.Sprintf("%s; %d of %d pods are available", v.ProgressText(), v.Available, v.Wanted))
	}
	return kstatus.NewReconciling(kruise.ProgressingReason, v.ProgressText())
}
