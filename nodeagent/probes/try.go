// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/httpget"
)

const (
	// userAgent is the user agent of probes.
	userAgent = "kube-probe/regatta"
	// slack is how long a runtime may take in addition to the time of a command before the command counts
	// as timed out.
	slack = 2 * time.Second
)

// longestTry bounds timeoutSeconds: a running probe holds a slot of its node, for which probes of other namespaces may wait.
const longestTry = time.Minute

// runProbe runs the probe once. The state is empty if there is no result, and Unknown if the probe
// cannot be run.
func (w *worker) runProbe(ctx context.Context, c cri.Container, runtime *cri.Runtime) (v1alpha1.ProbeState, string) {
	timeout := min(secondsAtLeast(w.probe.Probe.TimeoutSeconds, 1), longestTry)
	switch p := &w.probe.Probe; {
	case p.Exec != nil:
		return w.probeExec(ctx, c, runtime, timeout)
	case p.HTTPGet != nil:
		address, why := w.probeAddress(p.HTTPGet.Port)
		if address == "" {
			return noAddressResult(why)
		}
		return probeHTTP(ctx, p.HTTPGet, address, timeout)
	case p.TCPSocket != nil:
		address, why := w.probeAddress(p.TCPSocket.Port)
		if address == "" {
			return noAddressResult(why)
		}
		return probeTCP(ctx, address, timeout)
	}
	return v1alpha1.ProbeUnknown, "the probe has none of exec, httpGet and tcpSocket"
}

func noAddressResult(why string) (v1alpha1.ProbeState, string) {
	if why == "" { // the pod has no IP yet
		return "", ""
	}
	return v1alpha1.ProbeUnknown, why
}

// probeAddress is the address of the pod. The manager has resolved the names of ports.
func (w *worker) probeAddress(port intstr.IntOrString) (address, why string) {
	if w.pod.IP == "" {
		return "", ""
	}
	n := port.IntValue()
	if n < 1 || n > 65535 {
		return "", fmt.Sprintf("port %s of container %s is none, want 1 to 65535", port.String(), w.probe.ContainerName)
	}
	return net.JoinHostPort(w.pod.IP, strconv.Itoa(n)), ""
}

func (w *worker) probeExec(ctx context.Context, c cri.Container, runtime *cri.Runtime, timeout time.Duration) (v1alpha1.ProbeState, string) {
	ctx, cancel := context.WithTimeout(ctx, timeout+slack)
	defer cancel()
	ended, err := runtime.RunCommand(ctx, c, w.probe.Probe.Exec.Command, timeout)
	switch {
	case err == nil && ended.Code == 0:
		return v1alpha1.ProbeSucceeded, commandOutput(ended)
	case err == nil:
		return v1alpha1.ProbeFailed, commandOutput(ended)
	case cri.PrintedTooMuch(err): // the exit code is not known, and success must not be assumed
		return v1alpha1.ProbeFailed, fmt.Sprintf("the command printed more than %d KiB", cri.MostOutput>>10)
	case cri.TimedOut(err):
		return v1alpha1.ProbeFailed, fmt.Sprintf("the command did not end within %s", timeout)
	case cri.IsUnavailable(err) || cri.IsGone(err) || ctx.Err() != nil:
		return "", ""
	}
	return v1alpha1.ProbeUnknown, err.Error()
}

func commandOutput(e cri.Ended) string {
	if len(e.Stdout) > 0 && len(e.Stderr) > 0 {
		return string(e.Stdout) + "\n" + string(e.Stderr)
	}
	return string(e.Stdout) + string(e.Stderr)
}

func probeHTTP(ctx context.Context, action *corev1.HTTPGetAction, address string, timeout time.Duration) (v1alpha1.ProbeState, string) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := httpget.RunAction(ctx, action, address, userAgent)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return v1alpha1.ProbeFailed, fmt.Sprintf("%s did not answer within %s", answer.URL, timeout)
	case err != nil:
		return v1alpha1.ProbeFailed, err.Error()
	case answer.Code >= http.StatusOK && answer.Code < http.StatusBadRequest:
		return v1alpha1.ProbeSucceeded, string(answer.Body)
	}
	return v1alpha1.ProbeFailed, fmt.Sprintf("HTTP probe failed with statuscode: %d", answer.Code)
}

func probeTCP(ctx context.Context, address string, timeout time.Duration) (v1alpha1.ProbeState, string) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return v1alpha1.ProbeFailed, err.Error()
	}
	_ = connection.Close() // the connection succeeded
	return v1alpha1.ProbeSucceeded, ""
}
