// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
)

// Services resolves SERVICE.NAMESPACE.svc.cluster.local, and for the pods
// behind a service that have a host name, HOST.SERVICE.NAMESPACE.svc.cluster.local.
type Services struct {
	services corelisters.ServiceLister
	slices   discoverylisters.EndpointSliceLister
}

// NewServices watches services and their endpoints until ctx ends.
func NewServices(ctx context.Context, client kubernetes.Interface) (*Services, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	made := &Services{
		services: factory.Core().V1().Services().Lister(),
		slices:   factory.Discovery().V1().EndpointSlices().Lister(),
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("watching %s: %w", kind, ctx.Err())
		}
	}
	return made, nil
}

func canonical(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// Lookup implements Resolver.
func (s *Services) Lookup(name string) ([]netip.Addr, bool) {
	rest, ok := strings.CutSuffix(name, ".svc."+Domain)
	if !ok {
		return nil, false
	}
	labels := strings.Split(rest, ".")
	host := ""
	if len(labels) == 3 {
		host, labels = labels[0], labels[1:]
	}
	if len(labels) != 2 {
		return nil, false
	}
	service, err := s.services.Services(labels[1]).Get(labels[0])
	if err != nil {
		return nil, false
	}
	if address, err := netip.ParseAddr(service.Spec.ClusterIP); err == nil && host == "" {
		return []netip.Addr{address}, true
	}
	addresses := s.endpoints(service, host)
	// A headless service without pods is a name without addresses; a pod that
	// is not there is no name.
	return addresses, len(addresses) > 0 || host == ""
}

// endpoints returns the addresses of a service's pods, or of the one with that
// host name.
func (s *Services) endpoints(service *corev1.Service, host string) []netip.Addr {
	selector := labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name})
	found, err := s.slices.EndpointSlices(service.Namespace).List(selector)
	if err != nil {
		return nil
	}
	var addresses []netip.Addr
	for _, slice := range found {
		for _, endpoint := range slice.Endpoints {
			ready := endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready
			named := endpoint.Hostname != nil && *endpoint.Hostname == host
			if !ready || (host != "" && !named) {
				continue
			}
			for _, text := range endpoint.Addresses {
				if address, err := netip.ParseAddr(text); err == nil && address.Is4() && !slices.Contains(addresses, address) {
					addresses = append(addresses, address)
				}
			}
		}
	}
	return addresses
}
