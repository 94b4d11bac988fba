// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/faults/trap"
)

// Calls of CRI that agents are killed in, or that something else happens in.
const (
	hook = "ExecSync"
	stop = "StopContainer"
	pull = "PullImage"
)

// restarts are ContainerRecreateRequests.
type restarts struct{}

func (restarts) name() string     { return "a restart" }
func (restarts) inside() []string { return []string{hook, stop} }

func (restarts) prepare(ctx context.Context, w *world, node string) (try, error) {
	r := &restart{world: w, name: fmt.Sprintf("restart-%d", w.next()), node: node, seconds: 1, linger: 1}
	return r, r.prepare(ctx)
}

// restart is one request for the container main of a pod of its own.
type restart struct {
	*world
	name, node string
	// seconds is how long the hook takes, and linger how long the container takes to end.
	seconds, linger int
	// deadline of the request; none if 0.
	deadline int64
}

func (r *restart) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: r.name}
}

// prepare makes the pod, and waits for it.
func (r *restart) prepare(ctx context.Context) error {
	pod := &corev1.Pod{ObjectMeta: r.meta()}
	pod.Spec = corev1.PodSpec{
		NodeName: r.node, TerminationGracePeriodSeconds: ptr.To[int64](5),
		// A container of a node that is gone for long is not evicted.
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{
			Name: "main", Image: "busybox:1.36",
			Command:   []string{"sh", "-c", fmt.Sprintf("trap 'sleep %d; exit 0' TERM; while true; do sleep 0.1; done", r.linger)},
			Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"sleep", fmt.Sprint(r.seconds)}}}},
		}},
	}
	if err := r.Create(ctx, pod); err != nil {
		return fmt.Errorf("making pod %s: %w", r.name, err)
	}
	return until(ctx, patience, func(ctx context.Context) (bool, string, error) {
		restarts, ready, err := r.runs(ctx)
		return restarts == 0 && ready, fmt.Sprintf("pod %s of %d restarts, ready %t", r.name, restarts, ready), err
	})
}

// runs says how often the container was restarted, and whether it runs.
func (r *restart) runs(ctx context.Context) (int32, bool, error) {
	pod := &corev1.Pod{ObjectMeta: r.meta()}
	if err := r.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return 0, false, fmt.Errorf("reading pod %s: %w", r.name, err)
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		return 0, false, nil
	}
	return pod.Status.ContainerStatuses[0].RestartCount, pod.Status.ContainerStatuses[0].Ready, nil
}

func (r *restart) begin(ctx context.Context) error {
	q := &kruise.ContainerRecreateRequest{ObjectMeta: r.meta()}
	q.Spec.PodName = r.name
	q.Spec.Containers = []kruise.ContainerRecreateRequestContainer{{Name: "main"}}
	q.Spec.Strategy = &kruise.ContainerRecreateRequestStrategy{TerminationGracePeriodSeconds: ptr.To[int64](10)}
	if r.deadline > 0 {
		q.Spec.ActiveDeadlineSeconds = &r.deadline
	}
	if err := r.Create(ctx, q); err != nil {
		return fmt.Errorf("making ContainerRecreateRequest %s: %w", r.name, err)
	}
	return nil
}

// status is the request in a line.
func (r *restart) status(ctx context.Context) (string, error) {
	q := &kruise.ContainerRecreateRequest{ObjectMeta: r.meta()}
	if err := r.Get(ctx, client.ObjectKeyFromObject(q), q); err != nil {
		return "", fmt.Errorf("reading ContainerRecreateRequest %s: %w", r.name, err)
	}
	out := []string{string(q.Status.Phase)}
	for _, c := range q.Status.ContainerRecreateStates {
		out = append(out, "container "+string(c.Phase))
	}
	if q.Status.Message != "" {
		out = append(out, fmt.Sprintf("%q", q.Status.Message))
	}
	return strings.Join(out, ", "), nil
}

// ends waits until the request has the status that is wanted.
func (r *restart) ends(ctx context.Context, limit time.Duration, want string) error {
	return until(ctx, limit, func(ctx context.Context) (bool, string, error) {
		got, err := r.status(ctx)
		return got == want, got, err
	})
}

// restarted is what a request comes to where all goes well.
const restarted = "Completed, container Succeeded"

func (r *restart) end(ctx context.Context, t *trap.Trap) (string, error) {
	if err := r.ends(ctx, patience, restarted); err != nil {
		return "", err
	}
	became := restarted + ", 1 restart"
	if n := t.Passed(hook); n > 1 {
		became += fmt.Sprintf(", the hook begun %d times", n)
	}
	return became, nil
}

func (r *restart) still(ctx context.Context) error {
	restarts, ready, err := r.runs(ctx)
	switch {
	case err != nil:
		return err
	case restarts != 1 || !ready:
		return fmt.Errorf("the container was restarted %d times, want once, and is ready: %t", restarts, ready)
	}
	got, err := r.status(ctx)
	if err == nil && got != restarted {
		err = fmt.Errorf("the request says %s", got)
	}
	return err
}

func (r *restart) remove(ctx context.Context) error {
	for _, o := range []client.Object{&kruise.ContainerRecreateRequest{ObjectMeta: r.meta()}, &corev1.Pod{ObjectMeta: r.meta()}} {
		if err := client.IgnoreNotFound(r.Delete(ctx, o, client.GracePeriodSeconds(0))); err != nil {
			return fmt.Errorf("removing %s: %w", r.name, err)
		}
	}
	return nil
}
