// SPDX-License-Identifier: Apache-2.0

package containerstatus_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
)

func TestWhichContainersHaveEndedForGood(t *testing.T) {
	exits := func(code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
	}
	rule := func(operator corev1.ContainerRestartRuleOnExitCodesOperator, action corev1.ContainerRestartRuleAction, codes ...int32) func(*corev1.Container) {
		return func(c *corev1.Container) {
			c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyNever)
			c.RestartPolicyRules = append(c.RestartPolicyRules, corev1.ContainerRestartRule{
				Action: action, ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: operator, Values: codes},
			})
		}
	}
	own := func(policy corev1.ContainerRestartPolicy) func(*corev1.Container) {
		return func(c *corev1.Container) { c.RestartPolicy = &policy }
	}
	in, notIn, restart := corev1.ContainerRestartRuleOnExitCodesOpIn, corev1.ContainerRestartRuleOnExitCodesOpNotIn, corev1.ContainerRestartRuleActionRestart
	for name, tc := range map[string]struct {
		policy corev1.RestartPolicy
		state  corev1.ContainerState
		edit   func(*corev1.Container)
		phase  corev1.PodPhase
		want   string // succeeded, failed or "" for one that runs or is started again
	}{
		"Never, with success":                  {policy: corev1.RestartPolicyNever, state: exits(0), want: "succeeded"},
		"Never, with a failure":                {policy: corev1.RestartPolicyNever, state: exits(1), want: "failed"},
		"Never, and it runs":                   {policy: corev1.RestartPolicyNever, state: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		"Never, and it waits":                  {policy: corev1.RestartPolicyNever, state: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
		"OnFailure, with success":              {policy: corev1.RestartPolicyOnFailure, state: exits(0), want: "succeeded"},
		"OnFailure, with a failure":            {policy: corev1.RestartPolicyOnFailure, state: exits(1)},
		"Always, with success":                 {policy: corev1.RestartPolicyAlways, state: exits(0)},
		"no policy, which is Always":           {state: exits(0)},
		"Always, of a pod that has ended":      {policy: corev1.RestartPolicyAlways, state: exits(2), phase: corev1.PodFailed, want: "failed"},
		"its own Never, in a pod of Always":    {policy: corev1.RestartPolicyAlways, state: exits(1), edit: own(corev1.ContainerRestartPolicyNever), want: "failed"},
		"its own Always, in a pod of Never":    {policy: corev1.RestartPolicyNever, state: exits(0), edit: own(corev1.ContainerRestartPolicyAlways)},
		"its own OnFailure, in a pod of Never": {policy: corev1.RestartPolicyNever, state: exits(1), edit: own(corev1.ContainerRestartPolicyOnFailure)},
		"a rule for its exit code":             {policy: corev1.RestartPolicyNever, state: exits(42), edit: rule(in, restart, 41, 42)},
		"a rule for all containers of the pod": {policy: corev1.RestartPolicyNever, state: exits(42), edit: rule(in, corev1.ContainerRestartRuleActionRestartAllContainers, 42)},
		"a rule for another exit code":         {policy: corev1.RestartPolicyNever, state: exits(1), edit: rule(in, restart, 42), want: "failed"},
		"a rule for all but some exit codes":   {policy: corev1.RestartPolicyNever, state: exits(1), edit: rule(notIn, restart, 0)},
		"a rule for all but its exit code":     {policy: corev1.RestartPolicyNever, state: exits(0), edit: rule(notIn, restart, 0), want: "succeeded"},
		"a rule of an unknown operator":        {policy: corev1.RestartPolicyNever, state: exits(1), edit: rule("Between", restart, 0, 9), want: "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := corev1.Container{Name: "a"}
			if tc.edit != nil {
				tc.edit(&c)
			}
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: tc.policy, Containers: []corev1.Container{{Name: "b"}, c}}}
			pod.Status = corev1.PodStatus{Phase: tc.phase, ContainerStatuses: []corev1.ContainerStatus{{Name: "b", Ready: true}, {Name: "a", State: tc.state}}}
			got := ""
			switch {
			case containerstatus.HasSucceeded(pod, "a"):
				got = "succeeded"
			case containerstatus.HasFailed(pod, "a"):
				got = "failed"
			}
			if got != tc.want || containerstatus.HasEnded(pod, "a") != (tc.want != "") {
				t.Errorf("it has %q (ended: %t), want %q", got, containerstatus.HasEnded(pod, "a"), tc.want)
			}
			if containerstatus.IsReady(pod, "a") || !containerstatus.IsReady(pod, "b") || containerstatus.HasEnded(pod, "c") {
				t.Error("another container was judged")
			}
		})
	}
}
