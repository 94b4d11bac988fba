// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/test/cluster/state"
)

// Endpoints leads the Service kubernetes, and so all pods, to the API server by
// the longer way.
func Endpoints(ctx context.Context, s *state.State) error {
	client, err := Client(s)
	if err != nil {
		return err
	}
	name, port, protocol, ready := "https", int32(s.Ports.Delayed), corev1.ProtocolTCP, true //nolint:gosec // a port
	_, err = client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{s.APIServerHost()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("leading the Service kubernetes to %s: %w", s.DelayedAddress(), err)
	}
	return nil
}
