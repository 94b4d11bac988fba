// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/cluster/simulated"
	"github.com/regatta-sh/regatta/test/perf/measure"
	"github.com/regatta-sh/regatta/test/perf/procfs"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/target"
	"github.com/regatta-sh/regatta/test/perf/workload"
)

// run measures and writes the report.
func run(ctx context.Context, o *options, out io.Writer) (err error) {
	d := &report.Document{Schema: report.Schema, Started: time.Now()}
	d.Settings = report.Settings{Pods: o.pods, MaxUnavailable: workload.MaxUnavailable, SettleSeconds: o.settle.Seconds(), Bundle: o.bundle}
	if d.Machine, err = report.ThisMachine(); err != nil {
		return err
	}
	delays := o.delays
	if o.kubeconfig != "" || o.scale != "" {
		delays = delays[:1]
	}
	for _, delay := range delays {
		if err = o.once(ctx, delay, d); err != nil {
			break
		}
	}
	if len(d.Runs) == 0 && d.Scale == nil {
		return err
	}
	// What was measured before an error is of use, too.
	return errors.Join(err, o.write(d, out), d.Table(o.out))
}

// once measures on one cluster.
func (o *options) once(ctx context.Context, delay time.Duration, d *report.Document) (err error) {
	t, down, err := o.target(ctx, delay)
	defer func() { err = errors.Join(err, down()) }()
	if err != nil {
		return err
	}
	return o.measure(ctx, t, d)
}

// target is the cluster to measure on, and how to leave it.
func (o *options) target(ctx context.Context, delay time.Duration) (*target.Target, func() error, error) {
	nothing := func() error { return nil }
	if o.kubeconfig != "" {
		t, err := target.Given(target.GivenOptions{
			Kubeconfig: o.kubeconfig, Name: o.label, Version: o.version, User: o.user, AuditLog: o.auditLog,
			PIDs: o.pids, Program: o.process, Metrics: o.metrics,
		})
		return t, nothing, err
	}
	bin, err := os.MkdirTemp("", "regatta-perf-")
	if err != nil {
		return nil, nothing, fmt.Errorf("making a folder for the programs: %w", err)
	}
	down := func() error {
		return errors.Join(local.Down(context.WithoutCancel(ctx), o.name, o.out), os.RemoveAll(bin))
	}
	if o.keep {
		down = nothing
	}
	qps := o.schedulerQPS
	if qps == 0 && o.scale != "" {
		qps = 2000
	}
	t, err := target.Own(ctx, target.OwnOptions{
		Name: o.name, Real: o.real, Simulated: o.nodes, Delay: delay, SchedulerQPS: qps, Source: o.source, Values: values(o.values), Bundle: o.bundle, Bin: bin, Out: o.out,
	})
	return t, down, err
}

// values are arguments for helm.
func values(all []string) (out []string) {
	for _, v := range all {
		out = append(out, "--set", v)
	}
	return out
}

func (o *options) measure(ctx context.Context, t *target.Target, d *report.Document) error {
	kinds := o.group.Kinds
	workloads, pods, err := o.many()
	if err != nil {
		return err
	}
	settings := measure.Settings{Pods: o.pods, Subsets: o.subsets, NodeSelector: o.nodeSelector, Settle: o.settle, Limit: o.limit, Idle: o.idle, Out: o.out}
	if workloads > 0 {
		kinds, settings.Pods, d.Settings.Pods = []workload.Kind{o.scaled()}, pods, pods
	}
	if o.real > 0 && o.kubeconfig == "" && len(settings.NodeSelector) == 0 {
		settings.NodeSelector = map[string]string{simulated.NodeLabel: simulated.KindSimulated}
	}
	session, err := measure.New(ctx, t, settings, kinds...)
	if err != nil {
		return err
	}
	defer func() {
		if err := session.Close(context.WithoutCancel(ctx)); err != nil {
			fmt.Fprintln(o.out, err)
		}
	}()
	d.Cluster, d.Subject = t.Cluster, t.Subject // with the nodes that are known by now
	if workloads > 0 {
		d.Scale, err = session.Scale(ctx, kinds[0], workloads)
		return err
	}
	for n := 1; n <= o.runs; n++ {
		for _, kind := range kinds {
			phases, err := session.RunJob(ctx, kind)
			d.Add(report.Run{Number: n, Workload: kind.Name, DelaySeconds: t.Cluster.DelaySeconds, Yardstick: kind.Yardstick, Phases: phases})
			if err != nil {
				return err
			}
			if err := o.write(d, io.Discard); err != nil {
				return err
			}
		}
	}
	return nil
}

// write writes the report to out, and to its file if there is to be one.
func (o *options) write(d *report.Document, out io.Writer) error {
	d.Medians = measure.Medians(d.Runs)
	var err error
	if d.Machine.LoadAfter, err = procfs.Load(); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := d.JSON(&text); err != nil {
		return err
	}
	if o.json != "" {
		if err := os.WriteFile(o.json, text.Bytes(), 0o644); err != nil {
			return fmt.Errorf("writing the report: %w", err)
		}
	}
	if _, err := out.Write(text.Bytes()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}
