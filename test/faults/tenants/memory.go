// SPDX-License-Identifier: Apache-2.0

package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// gauge reads from the kubelets how much memory the containers of managers use.
type gauge struct {
	kubernetes.Interface

	mu     sync.Mutex
	peak   int64
	failed error
}

func newGauge(i kubernetes.Interface) *gauge { return &gauge{Interface: i} }

// watchMemory reads once a second until the context ends. A kubelet measures every ten seconds or so: a peak in between shows only as
// a restart, if the memory was not enough.
func (g *gauge) watchMemory(ctx context.Context) {
	for ctx.Err() == nil {
		used, err := g.readUsed(ctx)
		g.mu.Lock()
		g.peak = max(g.peak, used)
		if ctx.Err() == nil {
			g.failed = err
		}
		g.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// takePeak returns the most bytes that one manager has used since it was called last.
func (g *gauge) takePeak() (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	peak := g.peak
	g.peak = 0
	if peak == 0 {
		return 0, errors.Join(errors.New("no kubelet told the memory of a manager"), g.failed)
	}
	return peak, nil
}

// summary is the part of a kubelet's statistics that is read, see k8s.io/kubelet/pkg/apis/stats/v1alpha1.
type summary struct {
	Pods []struct {
		PodRef struct {
			Namespace string `json:"namespace"`
		} `json:"podRef"`
		Containers []struct {
			Name   string `json:"name"`
			Memory struct {
				WorkingSetBytes int64 `json:"workingSetBytes"`
			} `json:"memory"`
		} `json:"containers"`
	} `json:"pods"`
}

// readUsed is the working set of the container of a manager that uses most, in bytes.
func (g *gauge) readUsed(ctx context.Context) (most int64, err error) {
	nodes, err := g.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("listing nodes: %w", err)
	}
	for i := range nodes.Items {
		text, err := g.CoreV1().RESTClient().Get().Resource("nodes").Name(nodes.Items[i].Name).SubResource("proxy").Suffix("stats/summary").DoRaw(ctx)
		if err != nil {
			return 0, fmt.Errorf("reading the statistics of node %s: %w", nodes.Items[i].Name, err)
		}
		var read summary
		if err := json.Unmarshal(text, &read); err != nil {
			return 0, fmt.Errorf("reading the statistics of node %s: %w", nodes.Items[i].Name, err)
		}
		for _, pod := range read.Pods {
			for _, container := range pod.Containers {
				if pod.PodRef.Namespace == system && container.Name == "manager" {
					most = max(most, container.Memory.WorkingSetBytes)
				}
			}
		}
	}
	return most, nil
}
