// SPDX-License-Identifier: Apache-2.0

package simulated

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/regatta-sh/regatta/test/cluster/binaries"
	"github.com/regatta-sh/regatta/test/cluster/state"
)

// TaintKey is the taint that simulated nodes get when asked for.
const TaintKey = "kwok.x-k8s.io/node"

// CreateNodes creates the simulated nodes. They are ready from the start, so
// that pods can be placed before KWOK has seen them.
func CreateNodes(ctx context.Context, client kubernetes.Interface, s *state.State, tainted bool) error {
	for n := 1; n <= s.Simulated; n++ {
		_, err := client.CoreV1().Nodes().Create(ctx, node(s, n, tainted, time.Now()), metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating the simulated node %d: %w", n, err)
		}
	}
	return nil
}

func node(s *state.State, n int, tainted bool, now time.Time) *corev1.Node {
	name := state.SimulatedNode(n)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("64"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             resource.MustParse("200"),
	}
	made := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				NodeLabel:                        KindSimulated,
				"type":                           "kwok",
				corev1.LabelHostname:             name,
				corev1.LabelOSStable:             "linux",
				corev1.LabelArchStable:           "amd64",
				corev1.LabelTopologyZone:         s.Zone(n),
				corev1.LabelTopologyRegion:       "local",
				"node-role.kubernetes.io/worker": "",
			},
			Annotations: map[string]string{TaintKey: "fake"},
		},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources, Phase: corev1.NodeRunning,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: s.Plan.SimulatedNode(n).String()},
				{Type: corev1.NodeHostName, Address: name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: binaries.KubernetesVersion, ContainerRuntimeVersion: "kwok://" + binaries.KwokVersion,
				OperatingSystem: "linux", Architecture: "amd64", OSImage: "simulated",
			},
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "simulated",
				LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
			}},
		},
	}
	if tainted {
		made.Spec.Taints = []corev1.Taint{{Key: TaintKey, Value: "fake", Effect: corev1.TaintEffectNoSchedule}}
	}
	return made
}

// Managed returns nil once KWOK answers for the last node: it keeps a lease
// for each.
func Managed(ctx context.Context, client kubernetes.Interface, s *state.State) error {
	_, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, state.SimulatedNode(s.Simulated), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("asking for the lease of the last simulated node: %w", err)
	}
	return nil
}
