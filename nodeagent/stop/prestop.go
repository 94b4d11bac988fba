// SPDX-License-Identifier: Apache-2.0

package stop

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/regatta-sh/regatta/nodeagent/httpget"
)

// preStop runs the hook of a container, within the grace period.
func (s Stopper) preStop(ctx context.Context, t Target, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	switch hook := t.Hook; {
	case hook.Exec != nil:
		_, err := t.Runtime.ExecCommand(ctx, t.Run, hook.Exec.Command, grace)
		return err
	case hook.HTTPGet != nil:
		address, err := s.hookAddress(ctx, t, hook.HTTPGet.Host, hook.HTTPGet.Port)
		if err != nil {
			return err
		}
		return getHTTP(ctx, hook.HTTPGet, address)
	case hook.TCPSocket != nil:
		address, err := s.hookAddress(ctx, t, hook.TCPSocket.Host, hook.TCPSocket.Port)
		if err != nil {
			return err
		}
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("connecting to %s: %w", address, err)
		}
		return connection.Close()
	case hook.Sleep != nil:
		return sleepContext(ctx, time.Duration(hook.Sleep.Seconds)*time.Second)
	}
	return nil
}

// sleepContext waits, at most until the grace is over.
func sleepContext(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("sleeping for %s: %w", d, ctx.Err())
	}
}

// hookAddress is the address of a hook: the pod, unless the hook names another host.
func (s Stopper) hookAddress(ctx context.Context, t Target, host string, port intstr.IntOrString) (string, error) {
	number := port.IntValue()
	if port.Type == intstr.String && number == 0 {
		i := slices.IndexFunc(t.Ports, func(p corev1.ContainerPort) bool { return p.Name == port.StrVal })
		if i < 0 {
			return "", fmt.Errorf("container %s has no port %q", t.Run.Name, port.StrVal)
		}
		number = int(t.Ports[i].ContainerPort)
	}
	if number < 1 || number > 65535 {
		return "", fmt.Errorf("port %s of container %s is none, want 1 to 65535", port.String(), t.Run.Name)
	}
	if host == "" {
		ip, err := t.Runtime.SandboxIP(ctx, t.Run.Sandbox)
		if err != nil {
			return "", err
		}
		if host = ip; host == "" { // it uses the network of the node
			host = s.Address
		}
	}
	return net.JoinHostPort(host, strconv.Itoa(number)), nil
}

// getHTTP sends the HTTP request of a hook.
func getHTTP(ctx context.Context, hook *corev1.HTTPGetAction, address string) error {
	answer, err := httpget.RunAction(ctx, hook, address, "")
	if err != nil {
		return err
	}
	if answer.Code >= http.StatusBadRequest {
		return fmt.Errorf("asking %s: it answered %s", answer.URL, answer.Status)
	}
	return nil
}
