// SPDX-License-Identifier: Apache-2.0

package ephemeraljob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/requeue"
	"github.com/regatta-sh/regatta/engine"
	"github.com/regatta-sh/regatta/engine/decision/placement"
)

// state is what one reconcile knows of a job.
type state struct {
	job *kruise.EphemeralJob
	now time.Time
	// candidates are the pods that match the job, in the order of the job, with their states.
	candidates []*corev1.Pod
	states     []podState
	memory     *memory
	in         placement.EphemeralInput
	// targets are the pods that the job covers, with their states (EJ-01). A job that asks for more pods than match it covers
	// all that match.
	targets map[string]podState
	counts  map[podState]int
}

// isFinished reports whether a job has ended.
func isFinished(job *kruise.EphemeralJob) bool { return job.Status.CompletionTime != nil }

// reconcileJob is one reconcile. It returns when to reconcile again; 0 for when something changes.
func (r *Reconciler) reconcileJob(ctx context.Context, job *kruise.EphemeralJob) (time.Duration, error) {
	if isFinished(job) {
		return r.deleteExpired(ctx, job)
	}
	m := r.memory.GetOrCreate(job)
	pods, err := r.listPods(ctx, job, m)
	if err != nil {
		return 0, err
	}
	s := &state{job: job, now: r.Now(), candidates: pods, memory: m}
	for _, pod := range pods {
		s.states = append(s.states, m.stateOf(pod, job))
	}
	next := r.newChange(s)
	nodesAt, err := r.loseNodes(ctx, s, next)
	if err != nil {
		return 0, err
	}
	out, again := r.decidePods(ctx, s, m, next)
	s.selectTargets(out)
	if s.counts[untouched] == 0 { // such as after a write whose response was lost
		r.reportCreation(m, next, nil)
	}
	s.summarizeStatus(next)
	if s.failPastDeadline(next); next.status.CompletionTime != nil {
		again = requeue.EarliestDelay(again, s.timeToExpiry())
		return again, r.updateStatus(ctx, next)
	}
	again = requeue.EarliestDelay(requeue.EarliestDelay(again, s.timeToDeadline(next)), nodesAt)
	chosen := s.podsToStart(out)
	if job.Spec.Paused || len(chosen) == 0 {
		return again, r.updateStatus(ctx, next)
	}
	final, err := r.addContainers(ctx, job, m, chosen)
	r.reportCreation(m, next, errors.Join(final, err))
	if final != nil { // these pods have failed, which the next reconcile counts
		again = requeue.EarliestDelay(again, requeue.Soon)
	}
	return again, errors.Join(err, r.updateStatus(ctx, next))
}

// decidePods asks the policies which pods get the containers now.
func (r *Reconciler) decidePods(ctx context.Context, s *state, m *memory, next *change) (placement.EphemeralOutput, time.Duration) {
	s.in = buildEphemeralInput(s, m)
	if s.in.Counts.Waiting == 0 {
		r.reportHeldAndDenied(next, nil, nil)
		return placement.EphemeralOutput{}, 0
	}
	subject := facts.ObjectSubject(kruise.GroupVersion.Group, "EphemeralJob", s.job)
	out, record := engine.Decide(ctx, r.Engine, placement.EphemeralPoint(), subject, s.in)
	r.reportHeldAndDenied(next, out.ReportedHold(s.in), out.DeniedPods(s.in))
	return out, requeue.DecisionDelay(record, s.now, out.RequeueTimes()...)
}

// buildEphemeralInput returns the input of the decision.
func buildEphemeralInput(s *state, m *memory) placement.EphemeralInput {
	job := s.job
	in := placement.EphemeralInput{
		Now: s.now.UnixNano(),
		Job: placement.Job{
			Name: job.Name, Namespace: job.Namespace, Created: job.CreationTimestamp.UnixNano(), Labels: job.Labels, Annotations: facts.VisibleAnnotations(job.Annotations),
		},
	}
	for i := range job.Spec.Template.EphemeralContainers {
		c := &job.Spec.Template.EphemeralContainers[i]
		in.Containers = append(in.Containers, placement.Container{
			Name: c.Name, Image: c.Image, TargetContainerName: c.TargetContainerName,
			Privileged: c.SecurityContext != nil && ptr.Deref(c.SecurityContext.Privileged, false),
		})
	}
	busy := 0
	for i, pod := range s.candidates {
		_, refused := m.refused[pod.UID]
		p := placement.Pod{
			Name: pod.Name, Node: pod.Spec.NodeName, Refused: refused, Created: pod.CreationTimestamp.UnixNano(), Labels: pod.Labels, Annotations: facts.VisibleAnnotations(pod.Annotations),
		}
		switch s.states[i] {
		case untouched:
			p.State = placement.Waiting
			in.Counts.Waiting++
		case succeeded:
			p.State = placement.Succeeded
			in.Counts.Succeeded++
		case failed, unable, lost:
			p.State = placement.Failed
			in.Counts.Failed++
		default:
			p.State = placement.Active
			in.Counts.Active++
			busy++
		}
		in.Counts.Desired++
		in.Pods = append(in.Pods, p)
	}
	in.Room = max(int(ptr.Deref(job.Spec.Parallelism, kruise.DefaultEphemeralJobParallelism))-busy, 0)
	return in
}

// selectTargets is the cut of EJ-01: of the pods that are not denied, the first spec.replicas.
func (s *state) selectTargets(out placement.EphemeralOutput) {
	denied := out.DeniedPods(s.in)
	s.targets, s.counts = map[string]podState{}, map[podState]int{}
	for i, pod := range s.candidates {
		if _, no := denied[pod.Name]; no {
			continue
		}
		if limit := s.job.Spec.Replicas; limit != nil && len(s.targets) >= int(*limit) {
			break
		}
		s.targets[pod.Name] = s.states[i]
		s.counts[s.states[i]]++
	}
}

// podsToStart is EJ-04: the pods that get the containers now.
func (s *state) podsToStart(out placement.EphemeralOutput) []*corev1.Pod {
	pods := map[string]*corev1.Pod{}
	for _, pod := range s.candidates {
		if s.targets[pod.Name] == untouched {
			pods[pod.Name] = pod
		}
	}
	in, all := s.in, s.in.Pods
	in.Pods = nil
	for _, p := range all { // room is for targets only
		if _, target := s.targets[p.Name]; target {
			in.Pods = append(in.Pods, p)
		}
	}
	var chosen []*corev1.Pod
	for _, name := range out.Next(in) {
		chosen = append(chosen, pods[name])
	}
	return chosen
}

// summarizeStatus is EJ-03: the numbers, the phase and the conditions. A job of which some pods have succeeded
// and the others have failed has failed.
func (s *state) summarizeStatus(next *change) {
	count := func(states ...podState) (sum int32) {
		for _, state := range states {
			sum += int32(s.counts[state]) //nolint:gosec // as many as there are pods
		}
		return sum
	}
	st := &next.status
	st.Match = int32(len(s.targets)) //nolint:gosec // as many as there are pods
	st.Running, st.Waiting, st.Succeeded, st.Failed = count(running), count(waiting), count(succeeded), count(failed, unable, lost)
	goal, ended := len(s.targets), s.counts[succeeded]+s.counts[failed]+s.counts[unable]+s.counts[lost]
	switch {
	case len(s.job.Spec.Template.EphemeralContainers) == 0:
		st.Phase = kruise.EphemeralJobError
		next.setCondition(kruise.EphemeralJobConditionError, kruise.EphemeralJobErrorReason, "the template has no ephemeral containers")
		return
	case len(s.targets) == 0:
		st.Phase = kruise.EphemeralJobWaiting
		next.setCondition(kruise.EphemeralJobConditionMatchedEmpty, kruise.EphemeralJobMatchEmptyReason, kruise.EphemeralJobMatchEmptyMessage)
	case s.counts[succeeded] == goal:
		st.Phase = kruise.EphemeralJobSucceeded
		next.setCondition(kruise.EphemeralJobConditionSucceeded, kruise.EphemeralJobSucceededReason, kruise.EphemeralJobSucceededMessage)
		st.CompletionTime = &next.now
		return
	case ended == goal:
		st.Phase = kruise.EphemeralJobFailed
		st.CompletionTime = &next.now
	case s.counts[running] > 0:
		st.Phase = kruise.EphemeralJobRunning
	case s.counts[waiting] == goal:
		st.Phase = kruise.EphemeralJobWaiting
	default:
		st.Phase = kruise.EphemeralJobUnknown
	}
	if len(s.targets) > 0 {
		next.removeCondition(kruise.EphemeralJobConditionMatchedEmpty)
	}
	if st.Failed > 0 {
		next.setCondition(kruise.EphemeralJobConditionFailed, s.failureReason(), fmt.Sprintf("the containers of %d of %d pods failed%s", st.Failed, goal, s.describeFailedPods()))
	}
	if s.job.Spec.Paused && st.CompletionTime == nil {
		st.Phase = kruise.EphemeralJobPaused
	}
}

// failureReason is the reason of a job with failed pods: containers that ended or are lost, or that could not be added.
func (s *state) failureReason() string {
	if s.counts[failed]+s.counts[lost] == 0 {
		return kruise.EphemeralJobCreateFailedReason
	}
	return kruise.EphemeralJobFailedReason
}

// describeFailedPods says for some of the failed pods why they cannot have the containers, or are lost.
func (s *state) describeFailedPods() string {
	const few = 3
	var out strings.Builder
	told, all := 0, s.counts[unable]+s.counts[lost]
	for i, pod := range s.candidates {
		if _, target := s.targets[pod.Name]; !target || s.states[i] != unable && s.states[i] != lost {
			continue
		}
		if told == few {
			fmt.Fprintf(&out, "; %d more pods cannot have them or are lost", all-told)
			break
		}
		told++
		out.WriteString("; " + s.whyFailed(i))
	}
	return out.String()
}

// timeToDeadline is how long the job may go on; 0 if without a limit.
func (s *state) timeToDeadline(next *change) time.Duration {
	seconds := s.job.Spec.ActiveDeadlineSeconds
	if seconds == nil || next.status.StartTime == nil {
		return 0
	}
	return max(next.status.StartTime.Add(time.Duration(*seconds)*time.Second).Sub(s.now), requeue.Soon)
}

// failPastDeadline fails a job whose deadline has passed, unless it is paused.
func (s *state) failPastDeadline(next *change) {
	seconds := s.job.Spec.ActiveDeadlineSeconds
	if seconds == nil || next.status.CompletionTime != nil || next.status.Phase == kruise.EphemeralJobPaused || next.status.Phase == kruise.EphemeralJobError ||
		s.now.Before(next.status.StartTime.Add(time.Duration(*seconds)*time.Second)) {
		return
	}
	next.status.Phase = kruise.EphemeralJobFailed
	next.status.CompletionTime = &next.now
	next.setCondition(kruise.EphemeralJobConditionFailed, kruise.EphemeralJobDeadlineExceededReason,
		fmt.Sprintf("the job was active for longer than its deadline of %d seconds", *seconds))
}

func (s *state) timeToExpiry() time.Duration {
	return max(finishedTTL(s.job), requeue.Soon)
}

func finishedTTL(job *kruise.EphemeralJob) time.Duration {
	return time.Duration(ptr.Deref(job.Spec.TTLSecondsAfterFinished, kruise.DefaultEphemeralJobTTLSecondsAfterFinished)) * time.Second
}

// deleteExpired is EJ-05: it deletes a job that ended ttlSecondsAfterFinished ago.
func (r *Reconciler) deleteExpired(ctx context.Context, job *kruise.EphemeralJob) (time.Duration, error) {
	if left := job.Status.CompletionTime.Add(finishedTTL(job)).Sub(r.Now()); left > 0 {
		return left, nil
	}
	err := r.Client.Delete(ctx, job, client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil {
		return 0, fmt.Errorf("deleting EphemeralJob %s after its time: %w", client.ObjectKeyFromObject(job), err)
	}
	return 0, nil
}
