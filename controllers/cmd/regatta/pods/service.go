// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// serviceFlags are the flags about fields of a Service that do not depend on the workload.
type serviceFlags struct{ kind, affinity, clusterIP, externalIP, loadBalancerIP string }

func (s *serviceFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&s.kind, "type", "", "`ClusterIP|NodePort|LoadBalancer`: how the Service is reached; ClusterIP if unset")
	f.StringVar(&s.affinity, "session-affinity", "", "`None|ClientIP`: whether one client keeps one pod; None if unset")
	f.StringVar(&s.clusterIP, "cluster-ip", "", "`IP` of the Service in the cluster, or None for a headless Service; one that is free if unset")
	f.StringVar(&s.externalIP, "external-ip", "", "`IP` by which nodes accept requests for the Service besides its own")
	f.StringVar(&s.loadBalancerIP, "load-balancer-ip", "", "`IP` of the load balancer, with --type LoadBalancer")
}

func (s *serviceFlags) validateFlags() error {
	if err := requireChoice("type", s.kind, string(corev1.ServiceTypeClusterIP), string(corev1.ServiceTypeNodePort), string(corev1.ServiceTypeLoadBalancer)); err != nil {
		return err
	}
	if err := requireChoice("session-affinity", s.affinity, string(corev1.ServiceAffinityNone), string(corev1.ServiceAffinityClientIP)); err != nil {
		return err
	}
	if s.loadBalancerIP != "" && s.kind != string(corev1.ServiceTypeLoadBalancer) {
		return exit.UsageErrorf("--load-balancer-ip needs --type LoadBalancer")
	}
	clusterIP := s.clusterIP
	if clusterIP == corev1.ClusterIPNone {
		clusterIP = ""
	}
	for _, flag := range []struct{ name, address string }{
		{"cluster-ip", clusterIP}, {"external-ip", s.externalIP}, {"load-balancer-ip", s.loadBalancerIP},
	} {
		if _, err := netip.ParseAddr(flag.address); flag.address != "" && err != nil {
			return exit.UsageErrorf("--%s is %q; want an IP address", flag.name, flag.address)
		}
	}
	return nil
}

func (s *serviceFlags) buildSpec() corev1.ServiceSpec {
	spec := corev1.ServiceSpec{
		Type: corev1.ServiceType(s.kind), SessionAffinity: corev1.ServiceAffinity(s.affinity),
		ClusterIP: s.clusterIP, LoadBalancerIP: s.loadBalancerIP,
	}
	if s.externalIP != "" {
		spec.ExternalIPs = []string{s.externalIP}
	}
	return spec
}

// portFlags are the flags about the ports of a Service.
type portFlags struct {
	port, target, protocol string

	// numbers are what --port has, target is what --target-port has, nil without the flag.
	numbers []int32
	to      *intstr.IntOrString
}

func (p *portFlags) addFlags(f *pflag.FlagSet) {
	f.StringVar(&p.port, "port", "", "`PORT` of the Service, or several, separated by commas; those of the containers if unset")
	f.StringVar(&p.target, "target-port", "", "number or name of the `PORT` of the pods; that of the Service if unset")
	f.StringVar(&p.protocol, "protocol", "", "`TCP|UDP|SCTP`: protocol of the ports; that of the container with the port, or TCP, if unset")
}

// parseFlags reads the flags before the cluster is asked.
func (p *portFlags) parseFlags() error {
	if err := requireChoice("protocol", p.protocol, string(corev1.ProtocolTCP), string(corev1.ProtocolUDP), string(corev1.ProtocolSCTP)); err != nil {
		return err
	}
	var ports []string
	if p.port != "" {
		ports = strings.Split(p.port, ",")
	}
	for _, text := range ports {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || len(validation.IsValidPortNum(int(n))) > 0 {
			return exit.UsageErrorf("--port is %q; want a number from 1 to 65535", p.port)
		}
		if slices.Contains(p.numbers, int32(n)) {
			return exit.UsageErrorf("--port is %q, which has port %d twice", p.port, n)
		}
		p.numbers = append(p.numbers, int32(n))
	}
	if p.target == "" {
		return nil
	}
	to := intstr.Parse(p.target)
	wrong := validation.IsValidPortName(p.target)
	if to.Type == intstr.Int {
		wrong = validation.IsValidPortNum(to.IntValue())
	}
	if len(wrong) > 0 {
		return exit.UsageErrorf("--target-port is %q; want the number or the name of a port of the pods: %s", p.target, strings.Join(wrong, "; "))
	}
	p.to = &to
	return nil
}

// readContainerPorts returns the ports of the containers in the pod template of a workload.
func readContainerPorts(object *edit.Object) ([]corev1.ContainerPort, error) {
	path, err := object.Kind.PodSpecPath(object.Live)
	if err != nil {
		return nil, err
	}
	fields, _, err := unstructured.NestedMap(object.Live.Object, path...)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	spec := &corev1.PodSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, spec); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	var out []corev1.ContainerPort
	for i := range spec.Containers {
		out = append(out, spec.Containers[i].Ports...)
	}
	return out, nil
}

// buildPorts makes the ports of the Service, named as kubectl names them: a single one has no name.
func (p *portFlags) buildPorts(own []corev1.ContainerPort) []corev1.ServicePort {
	numbers := p.numbers
	if len(numbers) == 0 {
		for _, port := range own {
			if !slices.Contains(numbers, port.ContainerPort) {
				numbers = append(numbers, port.ContainerPort)
			}
		}
	}
	var out []corev1.ServicePort
	for i, number := range numbers {
		target := intstr.FromInt32(number)
		if p.to != nil {
			target = *p.to
		}
		protocols := p.findProtocols(own, target)
		for _, protocol := range protocols {
			port := corev1.ServicePort{Port: number, TargetPort: target, Protocol: protocol}
			switch {
			case len(protocols) > 1:
				port.Name = fmt.Sprintf("port-%d-%s", i+1, strings.ToLower(string(protocol)))
			case len(numbers) > 1:
				port.Name = fmt.Sprintf("port-%d", i+1)
			}
			out = append(out, port)
		}
	}
	return out
}

// findProtocols returns the protocols of a port of the pods: those of the containers that have the port, or TCP.
func (p *portFlags) findProtocols(own []corev1.ContainerPort, target intstr.IntOrString) []corev1.Protocol {
	if p.protocol != "" {
		return []corev1.Protocol{corev1.Protocol(p.protocol)}
	}
	var out []corev1.Protocol
	for _, port := range own {
		protocol := port.Protocol
		if protocol == "" {
			protocol = corev1.ProtocolTCP
		}
		same := target == intstr.FromInt32(port.ContainerPort) || port.Name != "" && target == intstr.FromString(port.Name)
		if same && !slices.Contains(out, protocol) {
			out = append(out, protocol)
		}
	}
	if len(out) == 0 {
		return []corev1.Protocol{corev1.ProtocolTCP}
	}
	return out
}
