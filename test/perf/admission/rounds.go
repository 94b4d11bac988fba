// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/test/cluster/simulated"
	"github.com/regatta-sh/regatta/test/perf/stand"
)

// The two namespaces, which differ in nothing but the switch.
const (
	with    = "protected"
	without = "switched-off"
)

const budgetLabel = "perf.regatta.sh/budget"

// rounds sends the requests. How long they took is read from the audit log, which
// identifies them by their user agent.
type rounds struct {
	*options
	stand *stand.Stand
}

func (r *rounds) run(ctx context.Context) error {
	start := time.Now()
	for _, namespace := range []string{with, without} {
		if err := r.prepare(ctx, namespace); err != nil {
			return err
		}
	}
	made := time.Since(start)
	for _, namespace := range []string{with, without} {
		if err := r.await(ctx, namespace, 1); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.Out, "%d budgets with a pod each were made in %s, and known %s later\n", 2*r.budgets, made.Round(time.Second), (time.Since(start) - made).Round(time.Second/10))
	for n := range r.rounds {
		for _, clients := range r.clients {
			pair := []string{with, without}
			if n%2 == 1 {
				pair = []string{without, with}
			}
			for _, evict := range []bool{false, true} {
				for _, namespace := range pair {
					if err := r.cell(ctx, namespace, clients, evict); err != nil {
						return err
					}
				}
			}
			fmt.Fprintf(r.Out, "round %d of %d, %d clients\n", n+1, r.rounds, clients)
		}
	}
	return nil
}

// prepare makes the budgets, each with one pod that stays, so that it always has
// something to protect.
func (r *rounds) prepare(ctx context.Context, namespace string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := r.stand.Client.Create(ctx, ns); err != nil {
		return fmt.Errorf("making a namespace: %w", err)
	}
	var pods []*corev1.Pod
	for i := range r.budgets {
		pods = append(pods, pod(namespace, fmt.Sprintf("b-%d", i), "stays"))
	}
	if err := each(pods, 10, func(p *corev1.Pod) error { return r.protect(ctx, p) }); err != nil {
		return err
	}
	if namespace == without {
		ns.Labels["policy.kruise.io/protection"] = "off"
		if err := r.stand.Client.Update(ctx, ns); err != nil {
			return fmt.Errorf("switching protection off: %w", err)
		}
	}
	return nil
}

// protect makes a pod and its budget.
func (r *rounds) protect(ctx context.Context, p *corev1.Pod) error {
	b := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Labels[budgetLabel]}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: p.Labels}
	b.Spec.MaxUnavailable = ptr.To(intstr.FromInt(r.pods))
	b.Spec.ProtectTotalReplicas = ptr.To(int32(r.pods + 1))
	if err := r.stand.Client.Create(ctx, b); err != nil {
		return fmt.Errorf("making a budget: %w", err)
	}
	for r.stand.Client.Create(ctx, p.DeepCopy()) != nil { // until there is the service account of the namespace
		if err := wait(ctx); err != nil {
			return fmt.Errorf("making a pod: %w", err)
		}
	}
	return nil
}

func pod(namespace, budget, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: budget + "-" + name, Labels: map[string]string{budgetLabel: budget}},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{simulated.NodeLabel: simulated.KindSimulated},
			TerminationGracePeriodSeconds: ptr.To(int64(0)),
			Containers:                    []corev1.Container{{Name: "app", Image: "registry.k8s.io/pause:3.8"}},
		},
	}
}

func wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}

// cell creates all pods, and takes them away again once every budget allows it.
func (r *rounds) cell(ctx context.Context, namespace string, clients int, evict bool) error {
	config := rest.CopyConfig(r.stand.Target.Config)
	config.UserAgent = fmt.Sprintf("%s %s %d", agent, namespace, clients)
	k8s, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	pods := k8s.CoreV1().Pods(namespace)
	var all []*corev1.Pod
	for i := range r.pods {
		for b := range r.budgets {
			all = append(all, pod(namespace, fmt.Sprintf("b-%d", b), fmt.Sprint(i)))
		}
	}
	if err := each(all, clients, func(p *corev1.Pod) error {
		_, err := pods.Create(ctx, p, metav1.CreateOptions{})
		return err
	}); err != nil {
		return fmt.Errorf("creating pods: %w", err)
	}
	if err := r.await(ctx, namespace, r.pods+1); err != nil {
		return err
	}
	if err := each(all, clients, func(p *corev1.Pod) error {
		if evict {
			return pods.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.Name}})
		}
		return pods.Delete(ctx, p.Name, metav1.DeleteOptions{})
	}); err != nil {
		return fmt.Errorf("taking pods away: %w", err)
	}
	return r.await(ctx, namespace, 1)
}

// await waits until every budget counts so many pods and has no records.
func (r *rounds) await(ctx context.Context, namespace string, pods int) error {
	for {
		list := &policy.PodUnavailableBudgetList{}
		if err := r.stand.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("listing budgets: %w", err)
		}
		ready := 0
		for _, b := range list.Items {
			if int(b.Status.CurrentAvailable) == pods && len(b.Status.DisruptedPods) == 0 {
				ready++
			}
		}
		if ready == len(list.Items) {
			return nil
		}
		// Listing thousands of budgets is work that would be measured, too.
		for range 1 + r.budgets/250 {
			if err := wait(ctx); err != nil {
				return fmt.Errorf("waiting for budgets: %w: %d are as they should be", err, ready)
			}
		}
	}
}

// each does something with all pods, so many at a time, and gives the first error.
func each(pods []*corev1.Pod, clients int, f func(*corev1.Pod) error) error {
	work := make(chan *corev1.Pod, len(pods))
	for _, p := range pods {
		work <- p
	}
	close(work)
	var all sync.WaitGroup
	errs := make(chan error, len(pods))
	for range clients {
		all.Go(func() {
			for p := range work {
				if err := f(p); err != nil {
					errs <- err
				}
			}
		})
	}
	all.Wait()
	close(errs)
	return <-errs
}
