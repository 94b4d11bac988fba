// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/regatta-sh/regatta/test/perf/target"
	"github.com/regatta-sh/regatta/test/perf/workload"
)

// options are the flags of the command.
type options struct {
	pods         int
	subsets      int
	workload     string
	runs         int
	scale        string
	nodeSelector map[string]string
	settle       time.Duration
	idle         time.Duration
	limit        time.Duration
	json         string

	// of a cluster of its own
	name         string
	nodes        int
	real         int
	delays       []time.Duration
	source       string
	values       []string
	bundle       string
	schedulerQPS int
	keep         bool

	// of another
	kubeconfig string
	label      string
	version    string
	user       string
	auditLog   string
	pids       []int
	process    string
	metrics    string

	group workload.Group
	out   io.Writer
}

func (o *options) add(f *pflag.FlagSet) {
	f.IntVar(&o.pods, "pods", 0, "how many pods the workload has; 1000 if 0, 5000 for workloadspread; daemonset has one on each node")
	f.IntVar(&o.subsets, "subsets", 20, "how many subsets a UnitedDeployment has, which share its pods")
	f.StringVar(&o.workload, "workload", "both", "what is measured: "+groupNames())
	f.IntVar(&o.runs, "runs", 1, "how often to measure")
	f.StringVar(&o.scale, "scale", "", "measure many workloads at once instead, such as 100x50: 100 CloneSets with 50 pods each; uniteddeployment is 10x1000 if empty")
	f.StringToStringVar(&o.nodeSelector, "node-selector", nil, "labels of the nodes for the pods, such as regatta.sh/node=simulated")
	f.DurationVar(&o.settle, "settle", 2*time.Second, "how long nothing may change before the next phase; writes are counted until then")
	f.DurationVar(&o.idle, "idle", 5*time.Minute, "how long an Advanced DaemonSet is left alone, to count what heartbeats of nodes cause; 0 for not at all")
	f.DurationVar(&o.limit, "limit", 15*time.Minute, "how long a phase may take")
	f.StringVar(&o.json, "json", "", "write the report to this file too, after every run")

	f.StringVar(&o.name, "name", "perf", "name of the local cluster that is brought up, and taken down afterwards")
	f.IntVar(&o.nodes, "nodes", 0, "its simulated nodes; if 0 as many as the workload needs: 40, 1000 for daemonset")
	f.IntVar(&o.real, "real", target.RealNodes(), "its real nodes, which run the managers as a user's do (needs root); with 0 one manager runs beside it")
	f.DurationSliceVar(&o.delays, "delay", defaultDelays(), "what each request of the managers and of the controller manager takes longer: one cluster after the other for each")
	f.StringVar(&o.source, "source", "", "measure the checkout in this folder, instead of this one")
	f.StringArrayVar(&o.values, "set", nil, "a value for helm, such as manager.resources.limits.cpu=200m; without any, the managers have no CPU limit")
	f.StringVar(&o.bundle, "bundle", "", "the file of a ClusterPolicyBundle to install, whose rules are measured too")
	f.IntVar(&o.schedulerQPS, "scheduler-qps", 0, "its scheduler's request rate; the stock 50 if 0, 2000 with --scale")
	f.BoolVar(&o.keep, "keep", false, "leave it up")

	f.StringVar(&o.kubeconfig, "kubeconfig", "", "measure on this cluster as it is instead")
	f.StringVar(&o.label, "label", "", "name of what is measured there, for the report")
	f.StringVar(&o.version, "version", "", "its version, for the report")
	f.StringVar(&o.user, "user", "kruise-manager", "user name under which it writes")
	f.StringVar(&o.auditLog, "audit-log", "", "the API server's audit log, for the writes; that of a local cluster is found")
	f.IntSliceVar(&o.pids, "pid", nil, "its processes on this machine, for CPU and memory")
	f.StringVar(&o.process, "process", "", "or the name of its program: all processes that run one count")
	f.StringVar(&o.metrics, "metrics", "", "URL of its metrics, for the number of reconciles")
}

// defaultDelays are none, and what a distant or busy API server takes.
func defaultDelays() []time.Duration {
	if target.RealNodes() == 0 {
		return []time.Duration{0}
	}
	return []time.Duration{0, 100 * time.Millisecond}
}

func (o *options) check() error {
	if err := o.checkNumbers(); err != nil {
		return err
	}
	if err := o.checkCluster(); err != nil {
		return err
	}
	return o.choose()
}

func (o *options) checkNumbers() error {
	switch {
	case o.pods < 0 || o.nodes < 0 || o.idle < 0 || o.runs < 1 || o.subsets < 1:
		return errors.New("--pods, --nodes and --idle cannot be negative, and --runs and --subsets have to be at least 1")
	case len(o.delays) == 0 || slices.Min(o.delays) < 0:
		return errors.New("--delay needs one or more durations that are not negative")
	}
	return nil
}

func (o *options) checkCluster() error {
	switch {
	case o.real == 0 && slices.Max(o.delays) > 0:
		return errors.New("--delay is for managers in pods: it needs --real, and that needs root")
	case o.keep && len(o.delays) > 1:
		return errors.New("--keep needs a single --delay: each has a cluster of that name")
	case o.kubeconfig != "" && (o.schedulerQPS > 0 || o.keep || o.source != "" || o.bundle != "" || len(o.values) > 0):
		return errors.New("--scheduler-qps, --keep, --source, --bundle and --set are for a cluster of its own, not for that of --kubeconfig")
	case o.kubeconfig == "" && (o.auditLog != "" || len(o.pids) > 0 || o.process != "" || o.metrics != ""):
		return errors.New("--audit-log, --pid, --process and --metrics tell of the cluster of --kubeconfig, which is not given")
	}
	return nil
}

// choose finds what is measured, and fills in the numbers that the caller leaves to it.
func (o *options) choose() error {
	at := slices.IndexFunc(workload.Groups(), func(g workload.Group) bool { return g.Name == o.workload })
	if at < 0 {
		return fmt.Errorf("--workload is %q, want one of %s", o.workload, groupNames())
	}
	o.group = workload.Groups()[at]
	o.pods, o.nodes = cmp.Or(o.pods, o.group.Pods), cmp.Or(o.nodes, o.group.Nodes)
	if o.scale == "" && o.group.Workloads > 0 {
		o.scale = fmt.Sprintf("%dx%d", o.group.Workloads, o.pods)
	}
	if kind := o.scaled(); o.scale != "" && (kind.PerNode || len(kind.Before) > 0 || len(kind.Updates) == 0) {
		return fmt.Errorf("--scale is for workloads with a number of pods each, not for %s", kind.Name)
	}
	_, _, err := o.many()
	return err
}

// scaled is the kind of which there are many at once: that which is compared with the
// others.
func (o *options) scaled() workload.Kind { return o.group.Kinds[len(o.group.Kinds)-1] }

func groupNames() string {
	var names []string
	for _, g := range workload.Groups() {
		names = append(names, g.Name)
	}
	return strings.Join(names, ", ")
}

// many reads --scale; none are 0.
func (o *options) many() (workloads, pods int, err error) {
	if o.scale == "" {
		return 0, 0, nil
	}
	a, b, _ := strings.Cut(o.scale, "x")
	workloads, errA := strconv.Atoi(a)
	pods, errB := strconv.Atoi(b)
	if errA != nil || errB != nil || workloads < 1 || pods < 1 {
		return 0, 0, fmt.Errorf("--scale is %q, want numbers of workloads and pods such as 100x50", o.scale)
	}
	return workloads, pods, nil
}
