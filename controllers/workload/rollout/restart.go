// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/agents"
	"github.com/regatta-sh/regatta/controllers/workload/containerstatus"
	"github.com/regatta-sh/regatta/controllers/workload/facts"
	"github.com/regatta-sh/regatta/controllers/workload/selection"
	"github.com/regatta-sh/regatta/engine/decision"
	points "github.com/regatta-sh/regatta/engine/decision/rollout"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets;statefulsets;daemonsets,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=containerrecreaterequests,verbs=get;list;watch;create;deletecollection
// +kubebuilder:rbac:groups="",resources=pods/finalizers,verbs=update

// Reasons of events of a restart in place.
const (
	RestartedPodReason     = "RestartedPodInPlace"
	RestartedInPlaceReason = "RestartedInPlace"
	RestartHeldReason      = "RestartHeld"
)

// restartAgain is the time after which requests under way are checked again if no event of a pod comes before.
const restartAgain = 2 * time.Second

// runRestart restarts the containers of pods as a user requested, each pod by a
// ContainerRecreateRequest, as many at the same time and in the order that plan, rank and clamp allow.
// Pods that are to be moved to another revision are moved first, which restarts them too. The
// user's request is removed from the workload when all pods have restarted.
func (r *Round) runRestart(ctx context.Context, f *Facts) (Decisions, Outcome, error) {
	d := Decisions{Looked: true}
	asked, err := restartAsked(f)
	if err != nil || asked.IsZero() {
		return d, Outcome{}, err
	}
	s, err := r.restartProgress(ctx, f, asked)
	if err != nil {
		return d, Outcome{}, err
	}
	if len(s.underWay) > 0 {
		r.RequeueAfter(restartAgain)
	}
	if len(s.waiting) == 0 {
		if len(s.underWay) == 0 {
			err = r.completeRestart(ctx, f)
		}
		return d, Outcome{}, errors.Join(err, s.failed)
	}
	if f.Strategy.MaxUnavailable <= 0 { // surge makes no room, since the pod is not replaced
		return d, Outcome{}, errors.New("no pod can restart in place while the update strategy's maxUnavailable is 0: raise it for the time of the restart")
	}
	in := f.PlanInput()
	in.Update, in.Restart = len(s.waiting), true
	in.MaxUnavailable = f.Strategy.MaxUnavailable
	if f.Difference.Missing == nil {
		in.MaxUnavailable -= max(f.Replicas-len(f.Pods), 0)
	}
	plan, rec := EvaluatePoint(ctx, r, f, points.PlanPoint(), in)
	d.Plan, d.Holds = &rec, wholeFirst(plan.Holds)
	for _, h := range d.Holds {
		r.requeueForHold(h)
	}
	limits := selection.ClampPlan(in, plan)
	if slices.ContainsFunc(d.Holds, decision.Hold.IsWholeWorkload) || limits.Limit == 0 {
		d.Skipped = skipAll(s.waitingPods(f), d.Holds)
		return d, Outcome{}, s.failed
	}
	order := r.orderCandidates(ctx, f, plan, in, s.isCandidate)
	taken, skipped := selection.WalkCandidates(order.candidates, d.Holds, limits, s.countUnavailable(f))
	d.Skipped = skipped
	o, err := r.restartPods(ctx, taken, order.pods, asked)
	return d, o, errors.Join(err, s.failed)
}

// restartAsked returns when a user requested a restart, zero for never.
func restartAsked(f *Facts) (time.Time, error) {
	text, ok := f.Workload.GetAnnotations()[kruise.RestartInPlaceKey]
	if !ok {
		return time.Time{}, nil
	}
	asked, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("metadata.annotations[%s] is %q and has to be a time such as %s: set it by `regatta rollout restart`",
			kruise.RestartInPlaceKey, text, f.Now.UTC().Format(time.RFC3339))
	}
	return asked, nil
}

// restarts are the pods of a workload by the progress of their restart.
type restarts struct {
	waiting  map[types.UID]bool
	underWay map[types.UID]bool
	// failed is the error of the first pod that failed; nil if none did.
	failed error
}

// restartProgress finds the progress of the restart that was requested at a time.
func (r *Round) restartProgress(ctx context.Context, f *Facts, asked time.Time) (restarts, error) {
	s := restarts{waiting: map[types.UID]bool{}, underWay: map[types.UID]bool{}}
	list := &kruise.ContainerRecreateRequestList{}
	err := r.c.Client.List(ctx, list, client.InNamespace(f.Workload.GetNamespace()), client.MatchingLabels{kruise.RestartOfKey: f.Subject.UID})
	if err != nil {
		return s, fmt.Errorf("listing the ContainerRecreateRequests of the restart: %w", err)
	}
	requests, active := map[string]*kruise.ContainerRecreateRequest{}, map[string]bool{}
	for i := range list.Items {
		o := &list.Items[i]
		requests[o.Name] = o
		if o.Status.CompletionTime == nil { // also requests of an earlier restart
			active[o.Spec.PodName] = true
		}
	}
	for _, p := range f.Pods {
		name := restartName(r.Workload.GetUID(), p.Pod, asked)
		o := requests[name]
		_, requested := r.memory.requested[name]
		switch {
		case f.IsLeaving(p), f.isCondemned(p):
		case active[p.Name] || o == nil && requested:
			s.underWay[p.UID] = true
		case o == nil && !startedSince(p.Pod, asked):
			s.waiting[p.UID] = true
		case o != nil && o.Status.Phase == kruise.ContainerRecreateRequestFailed && s.failed == nil:
			s.failed = fmt.Errorf("restarting pod %s in place: ContainerRecreateRequest %s failed: %s", p.Name, o.Name, o.Status.Message)
		}
	}
	return s, nil
}

// startedSince reports whether all containers of a pod were started after a time, except those that have ended and are not
// started again. Both times are in whole seconds.
func startedSince(pod *corev1.Pod, asked time.Time) bool {
	if pod.CreationTimestamp.After(asked) {
		return true
	}
	started := 0
	for i := range pod.Status.ContainerStatuses {
		if running := pod.Status.ContainerStatuses[i].State.Running; running != nil && running.StartedAt.After(asked) || containerstatus.HasEnded(pod, pod.Status.ContainerStatuses[i].Name) {
			started++
		}
	}
	return started >= len(pod.Spec.Containers)
}

func (s restarts) isCandidate(p *facts.Pod) bool { return s.waiting[p.UID] }

func (s restarts) waitingPods(f *Facts) []*facts.Pod {
	return slices.DeleteFunc(slices.Clone(f.Pods), func(p *facts.Pod) bool { return !s.isCandidate(p) })
}

// countUnavailable counts the unavailable pods before the walk. A pod whose request is under way is about to become
// unavailable. A pod that has restarted and is not available yet counts as at its target.
func (s restarts) countUnavailable(f *Facts) selection.Unavailable {
	u := selection.Unavailable{}
	if f.Difference.Unavailable != nil {
		u = *f.Difference.Unavailable
		for _, p := range f.Pods {
			going := s.underWay[p.UID] && f.IsAvailable(p) && !f.IsRestarting(p) // otherwise the kind has counted it
			incrementIf(&u.Total, going)
			incrementIf(&u.AtTarget, going)
		}
		return u
	}
	if missing := f.Difference.Missing; missing != nil {
		u = *missing
	}
	for _, p := range f.Pods {
		out := !f.isCondemned(p) && (s.underWay[p.UID] || !f.IsSteady(p)) // by the same measure as the candidates
		incrementIf(&u.Total, out)
		incrementIf(&u.AtTarget, out && !s.waiting[p.UID])
	}
	return u
}

// restartInfix is between the name of a pod and the hash in the name of its request.
const restartInfix = "-restart-"

// longestNamed is how much of the name of a pod is in the name of its request.
const longestNamed = 200

// restartName is the name of the request for one restart of one pod by one workload. It contains the workload, because the requests of a deleted
// workload are not found by the labels of the workload that adopted its pods.
func restartName(workload types.UID, pod *corev1.Pod, asked time.Time) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(string(workload) + "/" + string(pod.UID) + "/" + asked.UTC().Format(time.RFC3339))) // writing to a hash never fails
	return fmt.Sprintf("%s%s%x", shortenPodName(pod.Name), restartInfix, h.Sum64())
}

// shortenPodName returns the part of the name of a pod that is in the name of its request. It does not end with a dot.
func shortenPodName(pod string) string {
	return strings.TrimRight(pod[:min(len(pod), longestNamed)], ".")
}

// restartPods creates the requests for the restarts of some pods.
func (r *Round) restartPods(ctx context.Context, taken []types.NamespacedName, pods map[types.NamespacedName]*facts.Pod, asked time.Time) (Outcome, error) {
	k := &keptPods{}
	var mu sync.Mutex
	var moved []types.NamespacedName
	acts := make([]func() error, len(taken))
	for i, pod := range taken {
		acts[i] = func() error {
			made, err := r.restartPod(ctx, pods[pod], asked, k)
			k.recordDenial(pod, err)
			mu.Lock()
			defer mu.Unlock()
			if made != "" {
				moved = append(moved, pod)
				r.memory.requested[made] = r.Now
			}
			return err
		}
	}
	err := r.RunParallel(acts)
	o := k.buildOutcome(Decisions{})
	slices.SortFunc(moved, compareNames)
	o.Moved = moved
	return o, err
}

// restartPod creates the request for the restart of all containers of a pod, and returns the name of the
// request, "" if it created none.
func (r *Round) restartPod(ctx context.Context, p *facts.Pod, asked time.Time, k *keptPods) (string, error) {
	if hold, err := r.missingAgentHold(ctx, p.Spec.NodeName); hold != nil || err != nil {
		if hold != nil {
			r.RequeueAfter(undecidedAgain)
			k.recordHold(p.Key(), *hold)
		}
		return "", err
	}
	o := &kruise.ContainerRecreateRequest{ObjectMeta: metav1.ObjectMeta{
		Namespace: p.Namespace, Name: restartName(r.Workload.GetUID(), p.Pod, asked), Labels: map[string]string{kruise.RestartOfKey: string(r.Workload.GetUID())},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(p.Pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
	}}
	o.Spec.PodName = p.Name
	for _, c := range p.Spec.Containers {
		if containerstatus.HasEnded(p.Pod, c.Name) {
			continue
		}
		o.Spec.Containers = append(o.Spec.Containers, kruise.ContainerRecreateRequestContainer{Name: c.Name})
	}
	// A container that has restarted by itself since the user's request is not restarted again.
	o.Spec.Strategy = &kruise.ContainerRecreateRequestStrategy{FailurePolicy: kruise.ContainerRecreateRequestFailurePolicyFail}
	if n := r.Spec.GracePeriodSeconds; n > 0 {
		o.Spec.Strategy.UnreadyGracePeriodSeconds = ptr.To(int64(n))
	}
	if err := r.c.Client.Create(ctx, o); err != nil {
		if apierrors.IsAlreadyExists(err) { // the answer to an earlier attempt was lost
			return o.Name, nil
		}
		return "", fmt.Errorf("restarting pod %s in place: %w", p.Name, err)
	}
	r.RequeueAfter(restartAgain)
	r.RecordNormal(RestartedPodReason, fmt.Sprintf("restart the containers of pod %s in place by ContainerRecreateRequest %s", p.Name, o.Name))
	return o.Name, nil
}

// missingAgentHold returns the hold of a pod whose node has no node agent, which is required to restart
// containers; nil if it has one.
func (r *Round) missingAgentHold(ctx context.Context, node string) (*decision.Hold, error) {
	message := "The feature gate KruiseDaemon is off, and only a node agent can restart containers in place."
	if r.c.agents != nil {
		there, left, err := r.c.agents(ctx, node)
		if err != nil || there {
			return nil, err
		}
		message = fmt.Sprintf("No node agent runs on node %s, and only one can restart containers in place.", node)
		if left > 0 {
			message = fmt.Sprintf("No node agent runs on node %s at the moment, and only one can restart containers in place; an update of the agents takes up to %s.", node, agents.Grace)
		}
	}
	return &decision.Hold{Rule: string(points.PlanPoint().Name), Reason: AgentMissingReason, Message: message}, nil
}

// completeRestart ends a restart that is complete. It deletes the requests last: without them, a pod on a
// node whose clock is slow would seem not to have restarted.
func (r *Round) completeRestart(ctx context.Context, f *Facts) error {
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": f.Subject.UID, "resourceVersion": f.Workload.GetResourceVersion(), // the user may have requested another restart
		"annotations": map[string]any{kruise.RestartInPlaceKey: nil},
	}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	o := f.Workload.DeepCopyObject().(client.Object)
	if err := r.c.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, raw)); err != nil {
		return fmt.Errorf("taking the restart off the %s: %w", r.c.typ.Kind, err)
	}
	r.memory.restarted = f.Workload.GetResourceVersion()
	r.RecordNormal(RestartedInPlaceReason, fmt.Sprintf("all %d pods have restarted in place", len(f.Pods)))
	err = r.c.Client.DeleteAllOf(ctx, &kruise.ContainerRecreateRequest{}, client.InNamespace(f.Workload.GetNamespace()), client.MatchingLabels{kruise.RestartOfKey: f.Subject.UID})
	if err != nil {
		return fmt.Errorf("deleting the ContainerRecreateRequests of the restart: %w", err)
	}
	return nil
}

// recordHold notes a pod that stays as it is because of a hold of its own.
func (k *keptPods) recordHold(pod types.NamespacedName, h decision.Hold) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.denied = append(k.denied, selection.Skip{Pod: pod, Hold: h.OfPod(pod.Namespace, pod.Name)})
}

// isRestartDue reports whether a restart in place is requested and no pod is to be moved first. With the strategy
// OnDelete the controller moves no pods, so a restart would wait for that indefinitely.
func (r *Round) isRestartDue(f *Facts) bool {
	return r.restartWanted(f) != "" && (f.Difference.Update == 0 || f.Strategy.Type == OnDelete)
}

// restartWanted returns the restart that is requested and not complete, "" if there is none.
func (r *Round) restartWanted(f *Facts) string {
	_, guest := f.kind.(KindWithSharedPods)
	asked, ok := f.Workload.GetAnnotations()[kruise.RestartInPlaceKey]
	// A late cache may still show a restart that was removed. If a user requests the same one again, the version of the workload is another.
	if !ok || f.Workload.GetResourceVersion() == r.memory.restarted || guest {
		return ""
	}
	return asked
}

// reportRestartHold reports that a restart waits for a hold of the update, by the condition UpdateHeld and by an event for each
// restart and reason. Pods that are to be updated are moved first, so a workload that is paused or frozen does not restart either.
func (r *Round) reportRestartHold(f *Facts, res *Result) {
	asked, top := r.restartWanted(f), res.TopHold()
	if asked == "" || top == nil {
		if res.Looked {
			r.memory.restartHeld = ""
		}
		return
	}
	res.restartHeld = fmt.Sprintf("The restart in place that was asked for at %.64s waits for that, too.", asked)
	if told := asked + "/" + top.Reason; r.memory.restartHeld != told {
		r.memory.restartHeld = told
		record := r.RecordWarning
		if byStrategy(*top) {
			record = r.RecordNormal
		}
		record(RestartHeldReason, fmt.Sprintf("%s: %s %s", top.Reason, top.Message, res.restartHeld))
	}
}
