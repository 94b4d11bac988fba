// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/test/cluster/local"
	"github.com/regatta-sh/regatta/test/cluster/simulated"
	"github.com/regatta-sh/regatta/test/install"
	"github.com/regatta-sh/regatta/test/perf/procfs"
)

// managerProgram is what is measured, and its process.
const managerProgram = "kruise-manager"

// OwnOptions say what Own is to make.
type OwnOptions struct {
	Name string
	// Real are the nodes that run the managers, as a user's do; 0 has one manager run
	// beside the cluster. Simulated are those of the pods that are measured.
	Real, Simulated int
	// Delay is what each request of the managers and of the controller manager
	// takes longer.
	Delay        time.Duration
	SchedulerQPS int
	// Source is the checkout that is measured, this one if empty, and Values are more
	// arguments for helm.
	Source string
	Values []string
	// FeatureGates are those of the chart and of the manager, such as ImagePullJobGate=true; the default ones if empty.
	FeatureGates string
	// Bundle is the file of a ClusterPolicyBundle that is installed too, none if empty.
	Bundle string
	// Bin is a folder for Regatta's programs, which run from there.
	Bin string
	Out io.Writer
}

// Own brings up a cluster of simulated nodes with Regatta on it. A cluster that
// has that name already is removed first: it may not be idle. The caller
// takes it down, after an error too.
func Own(ctx context.Context, o OwnOptions) (*Target, error) {
	root := o.Source
	if root == "" {
		var err error
		if root, err = install.Root(); err != nil {
			return nil, err
		}
	}
	programs, err := install.Build(ctx, root, o.Bin, o.Out)
	if err != nil {
		return nil, err
	}
	t := &Target{}
	t.Subject.Name, t.Subject.Version = "regatta", version(ctx, root)
	if err := local.Down(ctx, o.Name, io.Discard); err != nil {
		return nil, err
	}
	cluster, err := local.Up(ctx, local.Options{
		Name: o.Name, Real: o.Real, Simulated: o.Simulated, Delay: o.Delay, SchedulerQPS: o.SchedulerQPS, FeatureGates: gates(), Out: o.Out,
	})
	if err != nil {
		return nil, err
	}
	installed, err := install.Install(ctx, install.Options{
		Root: root, Programs: programs, Cluster: cluster, Values: o.values(), Arguments: o.arguments(), Out: o.Out,
	})
	if err != nil {
		return nil, err
	}
	t.Subject.User, t.Cluster.Real, t.Cluster.DelaySeconds = installed.User, o.Real, o.Delay.Seconds()
	if err := t.know(cluster.State); err != nil {
		return nil, err
	}
	if err := t.connect(cluster.State.Kubeconfig()); err != nil {
		return nil, err
	}
	if o.Bundle != "" {
		if err := t.installBundle(ctx, o.Bundle); err != nil {
			return t, err
		}
	}
	if o.Real > 0 {
		err = t.managersInPods(ctx, cluster)
		return t, err
	}
	t.Subject.PIDs = t.Peers[managerProgram]
	delete(t.Peers, managerProgram)
	t.Metrics, err = metricsOf(t.Subject.PIDs)
	return t, err
}

// RealNodes are two where this user may make them, so that the replicas of the chart are apart.
func RealNodes() int {
	if os.Geteuid() == 0 {
		return 2
	}
	return 0
}

// gates let a native StatefulSet replace several pods at a time, as all others do.
func gates() []string { return []string{"MaxUnavailableStatefulSet=true"} }

// values are arguments for helm. The limits of the chart hold for production; what is
// measured is the program, unless the caller says otherwise.
func (o OwnOptions) values() []string {
	values := slices.Clone(o.Values)
	if o.Real > 0 {
		// A node agent on a simulated node would say that it runs, and no more.
		values = append([]string{"--set", `daemon.nodeSelector.regatta\.sh/node=` + simulated.KindReal}, values...)
		if len(o.Values) == 0 {
			values = append(values, "--set", "manager.resources.limits.cpu=null")
		}
	}
	if o.FeatureGates != "" {
		values = append(values, "--set", "featureGates="+strings.ReplaceAll(o.FeatureGates, ",", `\,`))
	}
	return values
}

// arguments are those of a manager beside the cluster, which the values of the chart do not reach.
func (o OwnOptions) arguments() []string {
	if o.FeatureGates == "" {
		return nil
	}
	return []string{"--feature-gates=" + o.FeatureGates}
}

// managersInPods finds the managers of a cluster: their processes, among those of all
// clusters on this machine, and their metrics.
func (t *Target) managersInPods(ctx context.Context, cluster *local.Cluster) error {
	client, err := cluster.Client()
	if err != nil {
		return err
	}
	pods, err := client.CoreV1().Pods("kruise-system").List(ctx, metav1.ListOptions{LabelSelector: "control-plane=controller-manager"})
	if err != nil {
		return fmt.Errorf("listing the managers: %w", err)
	}
	for _, pod := range pods.Items {
		in, err := procfs.InPod(managerProgram, string(pod.UID))
		if err != nil {
			return err
		}
		t.Subject.PIDs = append(t.Subject.PIDs, in...)
		if port := metricsPort(pod.Spec); port > 0 && len(in) > 0 {
			t.Metrics = append(t.Metrics, metricsAt(net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(port))))
		}
	}
	if len(t.Subject.PIDs) == 0 {
		return fmt.Errorf("finding the managers: none of %d pods runs %s", len(pods.Items), managerProgram)
	}
	return nil
}

// metricsPort is where a pod serves metrics, 0 if nowhere.
func metricsPort(spec corev1.PodSpec) int {
	for _, container := range spec.Containers {
		for _, port := range container.Ports {
			if port.Name == "metrics" {
				return int(port.ContainerPort)
			}
		}
	}
	return 0
}

func metricsAt(address string) string { return "http://" + address + "/metrics" }

// metricsOf finds the URL of the metrics of a manager on this machine.
func metricsOf(pids []int) ([]string, error) {
	if len(pids) != 1 {
		return nil, fmt.Errorf("finding the manager: %d processes run it", len(pids))
	}
	arguments, err := procfs.Arguments(pids[0])
	if err != nil {
		return nil, err
	}
	for _, a := range arguments {
		if address, ok := strings.CutPrefix(a, "--metrics-addr="); ok {
			return []string{metricsAt(address)}, nil
		}
	}
	return nil, nil
}

// version is the commit that a source stands at.
func version(ctx context.Context, root string) string {
	git := func(args ...string) string {
		command := exec.CommandContext(ctx, "git", args...)
		command.Dir = root
		text, err := command.Output()
		if err != nil {
			return "" // it may be no repository
		}
		return strings.TrimSpace(string(text))
	}
	commit := git("rev-parse", "--short=12", "HEAD")
	if git("status", "--porcelain", "--", "controllers", "engine", "policies", "charts") != "" {
		commit += " with changes"
	}
	return commit
}
