// SPDX-License-Identifier: Apache-2.0

package probes

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/engine/recovery"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/message"
)

const (
	// lookAgain is how soon a missing container is searched for again.
	lookAgain = time.Second
	// nonRunning is the message of a container that has ended.
	nonRunning = "Container(%s) is Non-running"
)

// worker runs one probe of one pod.
type worker struct {
	agent  *Agent
	node   string
	pod    v1alpha1.PodProbe // without its probes
	probe  v1alpha1.ContainerProbe
	cancel context.CancelFunc
	// resumed is true for a probe that an earlier agent has reported.
	resumed bool

	// record is the reported state; the agent's lock guards it.
	record *v1alpha1.ContainerProbeState
	run    progress
}

// progress is the state of the probe for the current run of the container.
type progress struct {
	container string // its ID, "" before the first probe
	started   time.Time
	last      v1alpha1.ProbeState
	times     int32 // the number of equal results in a row
}

func newWorker(a *Agent, node string, pod *v1alpha1.PodProbe, probe *v1alpha1.ContainerProbe) *worker {
	w := &worker{agent: a, node: node, pod: *pod.DeepCopy(), probe: *probe.DeepCopy()}
	w.pod.Probes = nil
	return w
}

func (w *worker) isSameProbe(o *worker) bool {
	return equality.Semantic.DeepEqual(w.pod, o.pod) && equality.Semantic.DeepEqual(w.probe, o.probe)
}

// startProbing begins to probe. A probe that is resumed after a restart of the agent begins at a
// random time within a period, since all probes of the node at once would be a peak.
func (w *worker) startProbing(ctx context.Context) {
	ctx, w.cancel = context.WithCancel(ctx)
	var delay time.Duration
	if w.resumed {
		delay = rand.N(w.probePeriod()) //nolint:gosec // it need not be unpredictable
	}
	recovery.GoUntilDone(ctx, "probes", func(ctx context.Context) {
		for ctx.Err() == nil {
			t := time.NewTimer(delay)
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
			if w.agent.slots.Acquire(ctx, w.pod.Namespace) != nil {
				return
			}
			delay = w.roundOnce(ctx)
		}
	})
}

// roundOnce probes once. The caller holds a slot.
func (w *worker) roundOnce(ctx context.Context) time.Duration {
	defer w.agent.slots.Release(w.pod.Namespace)
	return w.probeOnce(ctx)
}

func secondsAtLeast(n, least int32) time.Duration { return time.Duration(max(n, least)) * time.Second }

func (w *worker) probePeriod() time.Duration { return secondsAtLeast(w.probe.Probe.PeriodSeconds, 1) }

// probeOnce probes once, and returns when to probe again.
func (w *worker) probeOnce(ctx context.Context) time.Duration {
	begun := time.Now()
	c, runtime, err := w.findContainer(ctx)
	switch {
	case err != nil: // the runtime does not answer, so the report stays
		return w.probePeriod()
	case runtime == nil || !c.Running && !c.Exited:
		return min(w.probePeriod(), lookAgain)
	}
	if err := w.trackRun(ctx, c, runtime); err != nil {
		return w.probePeriod()
	}
	if c.Exited {
		w.run.last, w.run.times = v1alpha1.ProbeFailed, 0
		w.reportResult(v1alpha1.ProbeFailed, strings.ReplaceAll(nonRunning, "%s", c.Name))
		return min(w.probePeriod(), lookAgain)
	}
	if left := w.run.started.Add(secondsAtLeast(w.probe.Probe.InitialDelaySeconds, 1)).Sub(w.agent.now()); left > 0 {
		return left
	}
	state, message := w.runProbe(ctx, c, runtime)
	if ctx.Err() != nil {
		return 0
	}
	w.countResult(ctx, c, state, message)
	return max(w.probePeriod()-time.Since(begun), 0)
}

// findContainer returns the newest run of the container; without a runtime if there is none. An error of one runtime does not
// matter for containers of another one.
func (w *worker) findContainer(ctx context.Context) (cri.Container, *cri.Runtime, error) {
	runtimes, err := w.agent.node.ListRuntimes(ctx)
	if err != nil {
		return cri.Container{}, nil, err
	}
	var wrong []error
	for _, runtime := range runtimes {
		containers, err := runtime.PodContainers(ctx, w.pod.UID)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if c, ok := containers[w.probe.ContainerName]; ok {
			return c, runtime, nil
		}
	}
	return cri.Container{}, nil, errors.Join(wrong...)
}

// trackRun starts over for a new run of the container, since the report is about an earlier one. A
// worker that has just started distinguishes runs by their times.
func (w *worker) trackRun(ctx context.Context, c cri.Container, runtime *cri.Runtime) error {
	if w.run.container == c.ID {
		return nil
	}
	seen, err := runtime.WithStartTime(ctx, c)
	if err != nil {
		return err
	}
	record := w.reportedState()
	goesOn := w.run.container == "" && record != nil && record.LastProbeTime != nil && !seen.StartedAt.After(record.LastProbeTime.Time)
	w.run = progress{container: c.ID, started: seen.StartedAt}
	switch {
	case goesOn:
		w.run.last, w.run.times = record.State, max(w.resultThreshold(record.State), 1)
	case record != nil && record.State != v1alpha1.ProbeUnknown && c.Running:
		w.reportResult(v1alpha1.ProbeUnknown, "")
	}
	return nil
}

// countResult reports a result once it came as often in a row as its threshold requires. A result of a
// run that has ended meanwhile does not count.
func (w *worker) countResult(ctx context.Context, c cri.Container, state v1alpha1.ProbeState, message string) {
	if state == "" {
		return
	}
	record := w.reportedState()
	if state == v1alpha1.ProbeUnknown { // it does not count, but a user must see why there is no result
		if record == nil || record.State == v1alpha1.ProbeUnknown {
			w.reportResult(state, message)
		}
		return
	}
	if state != w.run.last {
		w.run.last, w.run.times = state, 0
	}
	w.run.times = min(w.run.times, 1<<20) + 1
	if w.run.times < w.resultThreshold(state) {
		return
	}
	if record == nil || record.State != state {
		now, runtime, err := w.findContainer(ctx)
		if err != nil || runtime == nil || now.ID != c.ID || !now.Running {
			w.run.times--
			return
		}
	}
	w.reportResult(state, message)
}

func (w *worker) resultThreshold(state v1alpha1.ProbeState) int32 {
	if state == v1alpha1.ProbeSucceeded {
		return max(w.probe.Probe.SuccessThreshold, 1)
	}
	return max(w.probe.Probe.FailureThreshold, 1)
}

func (w *worker) reportedState() *v1alpha1.ContainerProbeState {
	w.agent.mu.Lock()
	defer w.agent.mu.Unlock()
	return w.record
}

// reportResult is PPM-09: it reports a result that has changed, or whose report is old.
func (w *worker) reportResult(state v1alpha1.ProbeState, text string) {
	a := w.agent
	now := metav1.NewTime(a.now()).Rfc3339Copy()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.workers[key{w.pod.UID, w.probe.Name}] != w {
		return // another worker has replaced this one
	}
	next := &v1alpha1.ContainerProbeState{Name: w.probe.Name, State: state, Message: message.Truncate(text), LastProbeTime: &now, LastTransitionTime: &now}
	if old := w.record; old != nil {
		if old.State == state {
			if old.Message == next.Message && old.LastProbeTime != nil && now.Sub(old.LastProbeTime.Time) < reportAgain {
				return
			}
			next.LastTransitionTime = ptr.To(*old.LastTransitionTime)
		}
	}
	w.record = next
	a.enqueueStatus(w.node)
}
