// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/test/perf/procfs"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/stand"
)

// single measures the agent of a real node.
type single struct {
	stand.Options
	pods   int
	period time.Duration
	during time.Duration
}

func agentCommand() *cobra.Command {
	o := &single{Options: stand.Options{Out: os.Stderr, Real: 1, FeatureGates: "PodProbeMarkerGate=true"}}
	c := &cobra.Command{
		Use: "agent", Short: "Measure the agent of a real node, which needs root", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return o.Run(c.Context(), func(ctx context.Context, s *stand.Stand) error { return o.measure(ctx, s, c.OutOrStdout()) })
		},
	}
	f := c.Flags()
	o.Flags(f, "perf-agent", 0)
	f.IntVar(&o.pods, "pods", 30, "pods on the node, each with a probe by a command, one by HTTP and one by TCP")
	f.DurationVar(&o.period, "period", 10*second, "how often each probe runs, in whole seconds")
	f.DurationVar(&o.during, "for", 60*second, "how long the agent is measured without probes and with them")
	return c
}

func (o *single) measure(ctx context.Context, s *stand.Stand, out io.Writer) error {
	if err := s.MakeNamespace(ctx); err != nil {
		return err
	}
	for i := range o.pods {
		if err := s.Client.Create(ctx, realPod(i)); err != nil {
			return fmt.Errorf("making a pod: %w", err)
		}
	}
	if err := s.Await(ctx, fmt.Sprintf("%d pods that are ready", o.pods), func(ctx context.Context) (bool, error) {
		n, err := o.count(ctx, s, corev1.PodReady)
		return n == o.pods, err
	}); err != nil {
		return err
	}
	pid, err := agentOf(ctx, s)
	if err != nil {
		return err
	}
	var rows [][]string
	row := func(probes int) error {
		cells, err := o.span(ctx, pid)
		rows = append(rows, append([]string{fmt.Sprint(o.pods), fmt.Sprint(probes)}, cells...))
		return err
	}
	if err := row(0); err != nil {
		return err
	}
	m := realMarker(o.period)
	if err := s.Client.Create(ctx, m); err != nil {
		return fmt.Errorf("making the marker: %w", err)
	}
	if err := s.Await(ctx, "the results of all probes", func(ctx context.Context) (bool, error) {
		for i := range m.Spec.Probes {
			if n, err := o.count(ctx, s, corev1.PodConditionType(m.Spec.Probes[i].PodConditionType)); err != nil || n != o.pods {
				return false, err
			}
		}
		return true, nil
	}); err != nil {
		return err
	}
	if err := row(o.pods * len(m.Spec.Probes)); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\nEach probe runs every %s; CPU time is the mean of %s.\n", report.Markdown(
		[]string{"pods", "probes", "agent's millicores", "MiB", "MiB at most"}, rows), o.period, o.during)
	return nil
}

// span measures a process for a while: its CPU time in millicores, and its memory.
func (o *single) span(ctx context.Context, pid int) ([]string, error) {
	before, err := procfs.CPUSeconds(pid)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := wait(ctx, o.during); err != nil {
		return nil, err
	}
	after, err := procfs.CPUSeconds(pid)
	if err != nil {
		return nil, err
	}
	took := time.Since(start).Seconds()
	now, err := procfs.ResidentBytes(pid)
	if err != nil {
		return nil, err
	}
	most, err := procfs.PeakBytes(pid)
	mib := func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/(1<<20)) }
	return []string{fmt.Sprintf("%.1f", 1000*(after-before)/took), mib(now), mib(most)}, err
}

// count is how many pods have a condition that is True.
func (o *single) count(ctx context.Context, s *stand.Stand, kind corev1.PodConditionType) (n int, err error) {
	list := &corev1.PodList{}
	if err := s.Client.List(ctx, list, client.InNamespace(stand.Namespace)); err != nil {
		return 0, fmt.Errorf("listing pods: %w", err)
	}
	for i := range list.Items {
		for _, c := range list.Items[i].Status.Conditions {
			if c.Type == kind && c.Status == corev1.ConditionTrue {
				n++
			}
		}
	}
	return n, nil
}

// agentOf is the process of the agent of the only node.
func agentOf(ctx context.Context, s *stand.Stand) (int, error) {
	list := &corev1.PodList{}
	if err := s.Client.List(ctx, list, client.InNamespace("kruise-system")); err != nil {
		return 0, fmt.Errorf("listing the agents: %w", err)
	}
	for i := range list.Items {
		pids, err := procfs.InPod("kruise-daemon", string(list.Items[i].UID))
		if err != nil {
			return 0, err
		}
		if len(pids) == 1 {
			return pids[0], nil
		}
	}
	return 0, errors.New("finding the agent: no pod runs kruise-daemon")
}

// realPod runs BusyBox, which answers HTTP on port 80.
func realPod(i int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: stand.Namespace, Name: podName(i), Labels: map[string]string{podLabel: "app"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: ptr.To(int64(0)),
			Containers:                    []corev1.Container{{Name: "app", Image: "registry.example/app:v1"}},
		},
	}
}

// realMarker has every pod probed in each way that there is.
func realMarker(period time.Duration) *v1alpha1.PodProbeMarker {
	m := &v1alpha1.PodProbeMarker{ObjectMeta: metav1.ObjectMeta{Namespace: stand.Namespace, Name: "all"}}
	m.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{podLabel: "app"}}
	for name, how := range map[string]corev1.ProbeHandler{
		"exec": {Exec: &corev1.ExecAction{Command: []string{"true"}}},
		"http": {HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(80), Scheme: corev1.URISchemeHTTP}},
		"tcp":  {TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(80)}},
	} {
		m.Spec.Probes = append(m.Spec.Probes, v1alpha1.PodContainerProbe{
			Name: name, ContainerName: "app", PodConditionType: conditionPrefix + name,
			Probe: v1alpha1.ContainerProbeSpec{Probe: corev1.Probe{ProbeHandler: how, PeriodSeconds: int32(period.Seconds()), TimeoutSeconds: 5}},
		})
	}
	return m
}
