// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// startAgain is what a kubelet does with a container that has ended: a moment later there is a new run, which the status
// of the pod tells. KWOK leaves that status as it is.
func (a *Agents) startAgain(c container) {
	if a.options.Stopped != nil {
		a.options.Stopped(c.pod.Namespace, c.pod.Name)
	}
	time.AfterFunc(a.options.Restart, func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		before := &corev1.Pod{}
		if err := a.mgr.GetClient().Get(ctx, client.ObjectKeyFromObject(c.pod), before); err != nil {
			klog.ErrorS(err, "A container that was stopped is not started again", "pod", klog.KObj(c.pod))
			return
		}
		pod := before.DeepCopy()
		run(pod, c, metav1.Now().Rfc3339Copy())
		if err := a.kubelet.Status().Patch(ctx, pod, client.MergeFrom(before)); err != nil {
			klog.ErrorS(err, "A container that was stopped is not started again", "pod", klog.KObj(c.pod))
		}
	})
}

// run writes the next run of a container into the status of its pod.
func run(pod *corev1.Pod, c container, now metav1.Time) {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if s.Name != c.name {
			continue
		}
		s.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", FinishedAt: now, StartedAt: metav1.NewTime(c.started), ContainerID: s.ContainerID,
		}}
		s.RestartCount = c.restarts + 1
		s.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		// The ID that KWOK makes of the number of restarts.
		s.ContainerID = fmt.Sprintf("%s://%x", name, sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", pod.UID, c.name, s.RestartCount)))
	}
}
