// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"fmt"
	"io"
	"sort"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubectl/pkg/util/podutils"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

const (
	// logsPatience is how long logs waits for a pod, or for a container that is followed, as in kubectl.
	logsPatience = 20 * time.Second
	// allLines is the value of --tail for a whole log, and selectedLines how many lines a selection has without the flag.
	allLines, selectedLines = -1, 10
)

// logReading has the flags of logs.
type logReading struct {
	*finder
	chooser
	selector                            string
	allPods, allContainers, prefix      bool
	follow, ignoreErrors, hasTail       bool
	previous, timestamps, skipTLSVerify bool
	since                               time.Duration
	sinceTime                           string
	tail, limitBytes                    int64
	maxRequests                         int
}

// NewLogsCommand makes the command that prints the logs of containers.
func NewLogsCommand() *cobra.Command {
	l := &logReading{finder: newFinder()}
	cmd := &cobra.Command{
		Use:   "logs (POD | KIND/NAME | -l LABELS) [-c CONTAINER | -S SIDECARSET] [flags]",
		Short: "Print the logs of the pods of a workload",
		Long: `Logs prints the log of a container. Of a workload it takes one pod, as kubectl does: one that
runs and is ready, if there is any. With --all-pods it takes all of them.

` + sidecarText + `
A log that is followed stays that of the container which worked at the beginning.

` + edit.DescribeKinds(l.Allowed),
		Example: `  regatta logs clone/web --tail 20
  regatta logs asts/db -f --all-pods --max-log-requests 10

  # Of the container that SidecarSet log-agent put into each pod
  regatta logs clone/web -S log-agent --all-pods --since 5m`,
		DisableFlagsInUseLine: true,
		RunE:                  l.runLogs,
	}
	l.finder.addFlags(cmd, logsPatience)
	l.chooser.addFlags(cmd, l.finder)
	l.addFlags(cmd.Flags())
	return cmd
}

func (l *logReading) addFlags(f *pflag.FlagSet) {
	f.StringVarP(&l.selector, "selector", "l", "", "print the logs of the pods that have these `labels`, such as app=web")
	f.BoolVar(&l.allPods, "all-pods", false, "print the logs of all pods of the workload, with --prefix")
	f.BoolVar(&l.allContainers, "all-containers", false, "print the logs of all containers of a pod, or with -S of all that the SidecarSet put into it")
	f.BoolVarP(&l.follow, "follow", "f", false, "go on with lines that are written later")
	f.BoolVarP(&l.previous, "previous", "p", false, "print the log of the container before its last restart")
	f.BoolVar(&l.prefix, "prefix", false, "begin each line with the names of the pod and the container")
	f.BoolVar(&l.timestamps, "timestamps", false, "begin each line with its time")
	f.Int64Var(&l.tail, "tail", allLines, "how many of the last lines to print; without the flag all, or 10 with --selector")
	f.DurationVar(&l.since, "since", 0, "print lines of this time until now only, such as 5m")
	f.StringVar(&l.sinceTime, "since-time", "", "print lines since this `TIME` only, such as 2026-12-24T10:00:00Z")
	f.Int64Var(&l.limitBytes, "limit-bytes", 0, "the most bytes of a log; 0 for no limit")
	f.BoolVar(&l.ignoreErrors, "ignore-errors", false, "go on with the other logs if one cannot be read")
	f.IntVar(&l.maxRequests, "max-log-requests", 5, "how many logs may be followed at once")
	f.BoolVar(&l.skipTLSVerify, "insecure-skip-tls-verify-backend", false, "do not check the certificate of the kubelet")
}

func (l *logReading) runLogs(cmd *cobra.Command, args []string) error {
	l.hasTail = cmd.Flags().Changed("tail")
	options, err := l.parseFlags(args)
	if err != nil {
		return err
	}
	if err := l.openCluster(cmd); err != nil {
		return err
	}
	pods, err := l.choosePods(cmd.Context(), args)
	if err != nil {
		return err
	}
	var logs []containerLog
	for _, pod := range pods {
		containers, err := l.chooseContainers(pod)
		if err != nil {
			return err
		}
		for _, container := range containers {
			logs = append(logs, containerLog{pod.Namespace, pod.Name, container})
		}
	}
	if l.follow && len(logs) > l.maxRequests {
		return exit.UsageErrorf("--max-log-requests is %d, and %d logs would be followed; choose fewer, or raise it", l.maxRequests, len(logs))
	}
	return l.printLogs(cmd.Context(), cmd.OutOrStdout(), logs, options)
}

// parseFlags reads the arguments and the flags before the cluster is asked.
func (l *logReading) parseFlags(args []string) (*corev1.PodLogOptions, error) {
	switch {
	case l.selector != "" && len(args) > 0:
		return nil, exit.UsageErrorf("--selector names the pods; leave out %s", args[0])
	case l.selector == "" && len(args) == 0:
		return nil, exit.UsageErrorf("name a pod, or a workload as KIND/NAME, or select pods with --selector")
	case len(args) > 1:
		return nil, exit.UsageErrorf("name one pod or workload, not %d; a container is named with -c", len(args))
	case l.since < 0:
		return nil, exit.UsageErrorf("--since is %s; want more than 0", l.since)
	case l.since > 0 && l.sinceTime != "":
		return nil, exit.UsageErrorf("--since and --since-time exclude each other")
	case l.tail < allLines:
		return nil, exit.UsageErrorf("--tail is %d; want 0 or more, or -1 for all lines", l.tail)
	case l.limitBytes < 0:
		return nil, exit.UsageErrorf("--limit-bytes is %d; want 1 or more, or 0 for no limit", l.limitBytes)
	case l.maxRequests < 1:
		return nil, exit.UsageErrorf("--max-log-requests is %d; want 1 or more", l.maxRequests)
	case l.allContainers && l.container != "":
		return nil, exit.UsageErrorf("--all-containers and --container exclude each other")
	}
	if _, err := labels.Parse(l.selector); err != nil {
		return nil, exit.UsageErrorf("--selector is %q: %w", l.selector, err)
	}
	if len(args) > 0 {
		if _, err := l.parseArgument(args[0]); err != nil {
			return nil, err
		}
	}
	return l.buildOptions()
}

func (l *logReading) buildOptions() (*corev1.PodLogOptions, error) {
	out := &corev1.PodLogOptions{
		Follow: l.follow, Previous: l.previous, Timestamps: l.timestamps, InsecureSkipTLSVerifyBackend: l.skipTLSVerify,
	}
	if l.sinceTime != "" {
		since, err := time.Parse(time.RFC3339, l.sinceTime)
		if err != nil {
			return nil, exit.UsageErrorf("--since-time is %q; want a time such as 2026-12-24T10:00:00Z", l.sinceTime)
		}
		out.SinceTime = &metav1.Time{Time: since}
	}
	if l.since > 0 {
		seconds := int64((l.since + time.Second - 1) / time.Second) // the API server knows whole seconds, and not 0
		out.SinceSeconds = &seconds
	}
	if l.limitBytes > 0 {
		out.LimitBytes = &l.limitBytes
	}
	if l.selector != "" && !l.hasTail {
		l.tail = selectedLines
	}
	if l.tail != allLines {
		out.TailLines = &l.tail
	}
	return out, nil
}

// choosePods returns the pods whose logs are printed.
func (l *logReading) choosePods(ctx context.Context, args []string) ([]*corev1.Pod, error) {
	pods, err := l.findSelected(ctx, args)
	if err != nil {
		return nil, err
	}
	if pods, err = l.selectPods(pods, l.notes); err != nil {
		return nil, err
	}
	sort.Sort(podutils.ByLogging(pods))
	if l.allPods || l.selector != "" {
		l.prefix = l.prefix || l.allPods
		return pods, nil
	}
	if len(pods) > 1 {
		fmt.Fprintf(l.notes, "Found %d pods, using pod/%s\n", len(pods), pods[0].Name)
	}
	return pods[:1], nil
}

func (l *logReading) findSelected(ctx context.Context, args []string) ([]*corev1.Pod, error) {
	if l.selector == "" {
		return l.findPods(ctx, args[0])
	}
	pods, _, err := l.listPods(ctx, l.selector)
	if err == nil && len(pods) == 0 {
		return nil, exit.RefusalErrorf("no pod in namespace %s has the labels %s", l.namespace, l.selector)
	}
	return pods, err
}

// chooseContainers returns the containers of a pod whose logs are printed.
func (l *logReading) chooseContainers(pod *corev1.Pod) ([]string, error) {
	if !l.allContainers {
		notes := l.notes
		if l.allPods {
			notes = io.Discard
		}
		name, err := l.chooseContainer(pod, notes)
		return []string{name}, err
	}
	var out []string
	if l.sidecarSet != "" {
		all, err := l.listSidecars(pod)
		for _, s := range all {
			out = append(out, s.container)
		}
		return out, err
	}
	for _, container := range listContainers(pod) {
		out = append(out, container.Name)
	}
	return out, nil
}
