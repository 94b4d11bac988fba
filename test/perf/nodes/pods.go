// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/test/cluster/state"
	"github.com/regatta-sh/regatta/test/perf/stand"
)

// podLabel is on all pods that are measured.
const podLabel = "perf.regatta.sh/pod"

// makePods makes pods, on the nodes in turn, and waits until all run. The scheduler has no part in it.
func makePods(ctx context.Context, s *stand.Stand, n int) error {
	var mu sync.Mutex
	running := map[string]bool{}
	if err := stand.Follow(ctx, s, &corev1.Pod{}, func(_, now *corev1.Pod) {
		if now != nil && now.Labels[podLabel] != "" && now.Status.Phase == corev1.PodRunning {
			mu.Lock()
			defer mu.Unlock()
			running[now.Name] = true
		}
	}); err != nil {
		return err
	}
	if err := stand.All(n, 20, func(i int) error {
		if err := s.Client.Create(ctx, pod(i, s.Nodes)); err != nil {
			return fmt.Errorf("making a pod: %w", err)
		}
		return nil
	}); err != nil {
		return err
	}
	return s.Await(ctx, fmt.Sprintf("%d pods that run", n), func(context.Context) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return len(running) == n, nil
	})
}

func podName(i int) string { return fmt.Sprintf("app-%d", i) }

func pod(i, nodes int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: stand.Namespace, Name: podName(i), Labels: map[string]string{podLabel: "app"}},
		Spec: corev1.PodSpec{
			NodeName:                      state.SimulatedNode(1 + i%nodes),
			TerminationGracePeriodSeconds: ptr.To(int64(0)),
			Containers:                    []corev1.Container{{Name: "app", Image: "registry.k8s.io/pause:3.8"}},
		},
	}
}
