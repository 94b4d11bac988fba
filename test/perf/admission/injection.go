// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhookconfig"
	"github.com/regatta-sh/regatta/controllers/webhookconfig/podscope"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/stand"
)

// Scenarios of pods, which the user agents of requests name. The latter two have the number of SidecarSets behind them.
const (
	noSet     = "none"     // there is no SidecarSet
	matched   = "matched-" // one SidecarSet selects the pod
	unmatched = "other-"   // there are SidecarSets, and none selects the pod
	warming   = "warming"  // requests that are not in the table
)

// sidecarLabel is what SidecarSets select pods by.
const sidecarLabel = "perf.regatta.sh/sidecar"

// injected is the namespace of the pods.
const injected = "injected"

// injections measures what SidecarSets add to creating pods. No scheduler takes the pods, so that nothing but the API
// server and what it calls is busy.
type injections struct {
	*place
	sets    []int
	pods    int
	rounds  int
	clients []int

	stand *stand.Stand
}

func injectionCommand(p *place) *cobra.Command {
	o := &injections{place: p}
	c := &cobra.Command{
		Use: "injection", Short: "Measure what SidecarSets add to creating pods", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), c.OutOrStdout()) },
	}
	f := c.Flags()
	f.IntSliceVar(&o.sets, "sets", []int{1, 10, 100}, "how many SidecarSets there are, of which one selects pods")
	f.IntVar(&o.pods, "pods", 300, "pods of each kind in each round")
	f.IntVar(&o.rounds, "rounds", 4, "how often everything is measured, in turn from few to many SidecarSets and back")
	f.IntSliceVar(&o.clients, "clients", []int{1, 10}, "how many send requests at a time")
	return c
}

func (o *injections) run(ctx context.Context, out io.Writer) error {
	return o.measure(ctx, out, func(ctx context.Context, s *stand.Stand) error {
		o.stand = s
		start := time.Now()
		if err := o.all(ctx); err != nil {
			return err
		}
		took, failed, err := durations(s.Target.AuditLog, start)
		if err != nil {
			return err
		}
		decided, err := decisions(ctx, s.Target.Metrics, "injection/sidecars", "sidecars")
		if err != nil {
			return err
		}
		called, err := calls(ctx, s)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\nmilliseconds at the API server; %d requests failed\n%s%s", o.table(took), failed, called, decided)
		return nil
	})
}

// all has every round measure every number of SidecarSets, none among them.
func (o *injections) all(ctx context.Context) error {
	if err := o.prepare(ctx); err != nil {
		return err
	}
	for n := range o.rounds {
		sets := append([]int{0}, o.sets...)
		if n%2 == 1 {
			slices.Reverse(sets)
		}
		for _, count := range sets {
			if err := o.with(ctx, count); err != nil {
				return err
			}
			fmt.Fprintf(o.Out, "round %d of %d, %d SidecarSets\n", n+1, o.rounds, count)
		}
	}
	return nil
}

// prepare makes the namespace, and waits until pods are taken there.
func (o *injections) prepare(ctx context.Context) error {
	if err := o.stand.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: injected}}); err != nil {
		return fmt.Errorf("making a namespace: %w", err)
	}
	return until(ctx, "pods to be taken", func() (bool, error) {
		return o.stand.Client.Create(ctx, unscheduled("first", "none"), client.DryRunAll) == nil, nil
	})
}

// with measures with so many SidecarSets, and removes them again.
func (o *injections) with(ctx context.Context, count int) error {
	for i := range count {
		if err := o.stand.Client.Create(ctx, sidecarSet(i)); err != nil {
			return fmt.Errorf("making a SidecarSet: %w", err)
		}
	}
	if err := o.known(ctx, count); err != nil {
		return err
	}
	scenarios := map[string]string{noSet: "0"}
	if count > 0 {
		scenarios = map[string]string{fmt.Sprint(matched, count): "0", fmt.Sprint(unmatched, count): "none"}
	}
	for _, clients := range o.clients {
		for scenario, label := range scenarios {
			if err := o.cell(ctx, scenario, label, clients); err != nil {
				return err
			}
		}
	}
	if err := o.stand.Client.DeleteAllOf(ctx, &kruise.SidecarSet{}); err != nil {
		return fmt.Errorf("removing the SidecarSets: %w", err)
	}
	return o.known(ctx, 0)
}

// known waits until so many SidecarSets exist, and the API server and the managers act by them.
func (o *injections) known(ctx context.Context, count int) error {
	return until(ctx, fmt.Sprintf("%d SidecarSets to be in force", count), func() (bool, error) {
		list := &kruise.SidecarSetList{}
		if err := o.stand.Client.List(ctx, list); err != nil {
			return false, fmt.Errorf("listing SidecarSets: %w", err)
		}
		seen := 0
		for _, set := range list.Items {
			if set.Status.ObservedGeneration == set.Generation && set.Status.LatestRevision != "" {
				seen++
			}
		}
		if len(list.Items) != count || seen != count {
			return false, nil
		}
		if count == 0 {
			now, err := o.webhooks(ctx)
			return now != "" && !strings.Contains(now, sidecarLabel), err
		}
		for range 10 { // both replicas
			p := unscheduled("first", "0")
			if o.stand.Client.Create(ctx, p, client.DryRunAll) != nil || len(p.Spec.Containers) != 2 {
				return false, nil
			}
		}
		return true, nil
	})
}

// webhooks are those that new pods are sent to, and for which SidecarSets, as a text.
func (o *injections) webhooks(ctx context.Context) (string, error) {
	c := &admissionv1.MutatingWebhookConfiguration{}
	if err := o.stand.Client.Get(ctx, client.ObjectKey{Name: webhookconfig.ConfigurationName}, c); err != nil {
		return "", fmt.Errorf("reading the webhooks: %w", err)
	}
	var out strings.Builder
	for _, w := range c.Webhooks {
		fmt.Fprintln(&out, w.Name, w.MatchConditions)
	}
	return out.String() + c.Annotations[podscope.Annotation], nil
}

// sidecarSet is the i-th. All of them are alike but for what they select.
func sidecarSet(i int) *kruise.SidecarSet {
	s := &kruise.SidecarSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("perf-%d", i)}}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{sidecarLabel: fmt.Sprint(i)}}
	s.Spec.Volumes = []corev1.Volume{{Name: "log", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	s.Spec.Containers = []kruise.SidecarContainer{{Container: corev1.Container{
		Name: "log", Image: "registry.k8s.io/pause:3.8",
		VolumeMounts: []corev1.VolumeMount{{Name: "log", MountPath: "/var/log"}},
	}}}
	return s
}

// unscheduled is a pod that no scheduler takes, with the label that SidecarSets select by.
func unscheduled(name, label string) *corev1.Pod {
	p := pod(injected, "p", name)
	p.Labels = map[string]string{sidecarLabel: label}
	p.Spec.SchedulerName = "none"
	return p
}

// cell creates pods of a scenario, and takes them away again. Some go before that are not measured, which open
// connections and fill caches.
func (o *injections) cell(ctx context.Context, scenario, label string, clients int) error {
	const first = 20
	for _, part := range []struct {
		scenario string
		pods     int
	}{{warming, first}, {scenario, o.pods}} {
		config := rest.CopyConfig(o.stand.Target.Config)
		config.UserAgent = fmt.Sprintf("%s %s %d", agent, part.scenario, clients)
		k8s, err := kubernetes.NewForConfig(config)
		if err != nil {
			return fmt.Errorf("making a client: %w", err)
		}
		var all []*corev1.Pod
		for i := range part.pods {
			all = append(all, unscheduled(fmt.Sprint(part.scenario, "-", i), label))
		}
		if err := each(all, clients, func(p *corev1.Pod) error {
			made, err := k8s.CoreV1().Pods(injected).Create(ctx, p, metav1.CreateOptions{})
			if err == nil && (len(made.Spec.Containers) == 2) != strings.HasPrefix(scenario, matched) {
				return fmt.Errorf("pod %s has %d containers", p.Name, len(made.Spec.Containers))
			}
			return err
		}); err != nil {
			return fmt.Errorf("creating pods: %w", err)
		}
	}
	if err := o.stand.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(injected), client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("taking pods away: %w", err)
	}
	return until(ctx, "the pods to go", func() (bool, error) {
		list := &corev1.PodList{}
		err := o.stand.Client.List(ctx, list, client.InNamespace(injected), client.Limit(1))
		return len(list.Items) == 0, err
	})
}

// patience is how long until waits.
const patience = 5 * time.Minute

// until waits for something that is so sooner or later.
func until(ctx context.Context, what string, so func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("it takes too long"))
	defer cancel()
	for {
		done, err := so()
		if err != nil || done {
			return err
		}
		if err := wait(ctx); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
}

// table says for each number of SidecarSets what it adds to what a pod takes without any.
func (o *injections) table(took map[measured][]time.Duration) string {
	var rows [][]string
	for _, clients := range o.clients {
		without := took[measured{"create", noSet, clients}]
		row := func(sets, which string, with []time.Duration) []string {
			added := func(percent int) string { return ms(quantile(with, percent) - quantile(without, percent)) }
			return []string{
				fmt.Sprint(clients), sets, which, fmt.Sprint(len(with)),
				ms(quantile(with, 50)) + " / " + ms(quantile(with, 99)), added(50) + " / " + added(99),
			}
		}
		none := row("none", "", without)
		none[len(none)-1] = ""
		rows = append(rows, none)
		for _, n := range o.sets {
			rows = append(rows,
				row(fmt.Sprint(n), "one", took[measured{"create", fmt.Sprint(matched, n), clients}]),
				row(fmt.Sprint(n), "none", took[measured{"create", fmt.Sprint(unmatched, n), clients}]))
		}
	}
	return report.Markdown([]string{"clients", "SidecarSets", "of them select the pod", "requests", "p50 / p99", "added, p50 / p99"}, rows)
}
