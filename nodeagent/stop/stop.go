// SPDX-License-Identifier: Apache-2.0

// Package stop stops single containers as the kubelet does: first the hook, then the signal, and a
// kill when the grace period is over. The kubelet starts them again.
package stop

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/regatta-sh/regatta/nodeagent/cri"
)

// leastGrace is how long a container has at least to stop, however long its hook took.
const leastGrace = 2 * time.Second

// Stopper stops containers.
type Stopper struct {
	// Address is the IP of the node, for hooks of pods that use its network.
	Address string
}

// Target is one run of a container.
type Target struct {
	Runtime *cri.Runtime
	Run     cri.Container
	// Hook runs before the container is stopped; may be nil.
	Hook *corev1.LifecycleHandler
	// Ports of the container, for names of ports in the hook.
	Ports []corev1.ContainerPort
}

// StopContainer runs the hook, and stops the container with the grace that is left. An error of the
// hook is passed to hookFailed, and does not prevent the stop.
func (s Stopper) StopContainer(ctx context.Context, t Target, grace time.Duration, hookFailed func(error)) error {
	if t.Hook != nil && grace > 0 {
		begun := time.Now()
		if err := s.preStop(ctx, t, grace); err != nil {
			hookFailed(err)
		}
		grace -= time.Since(begun)
	}
	return t.Runtime.StopContainer(ctx, t.Run, max(grace, leastGrace))
}
