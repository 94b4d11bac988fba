// SPDX-License-Identifier: Apache-2.0

package containermeta

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/failure"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
	"github.com/regatta-sh/regatta/nodeagent/cri"
)

// lookAgain is how soon a container runtime that did not answer is asked again, and how soon a stop that waits for others
// is tried again.
const lookAgain = 3 * time.Second

// Reconcile records what the containers of one pod run, and restarts those that must run with another
// env.
func (a *Agent) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pod := &corev1.Pod{}
	if err := a.client.Get(ctx, req.NamespacedName, pod); err != nil {
		if apierrors.IsNotFound(err) {
			a.forgetPod(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading pod %s: %w", req.NamespacedName, err)
	}
	if pod.DeletionTimestamp != nil || !runtimemeta.IsTracked(pod) {
		return reconcile.Result{}, nil
	}
	told, err := a.recordRuns(ctx, pod)
	if err == nil && a.restarts {
		return a.restartOutdated(ctx, pod, told)
	}
	if cri.IsUnavailable(err) {
		ctrl.LoggerFrom(ctx).Error(err, "what containers run is not known while no container runtime answers")
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	return reconcile.Result{}, err
}

// recordRuns writes the runs of a pod's containers to the pod, if they are not recorded yet (PL-07).
func (a *Agent) recordRuns(ctx context.Context, pod *corev1.Pod) (kruise.RuntimeContainerMetaSet, error) {
	before, err := runtimemeta.DecodeAnnotation(pod)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "it is written anew")
	}
	if err == nil && isUpToDate(pod, before) {
		return before, nil
	}
	runtime, runs, err := a.findRuns(ctx, pod)
	if err != nil || runtime == nil {
		return before, err
	}
	next := kruise.RuntimeContainerMetaSet{}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		last, ok := findEntry(before, c.Name)
		run, found := runs[c.Name]
		if found && (run.Running || run.Exited) {
			if last, err = a.entryOf(ctx, c, last, runtime, run); err != nil {
				return before, err
			}
			ok = true
		}
		if ok {
			next.Containers = append(next.Containers, last)
		}
	}
	if equality.Semantic.DeepEqual(before, next) {
		return before, nil
	}
	return next, a.writeAnnotation(ctx, pod, next)
}

// isUpToDate reports whether all runs in the container statuses are recorded already: then the runtime
// need not be asked.
func isUpToDate(pod *corev1.Pod, set kruise.RuntimeContainerMetaSet) bool {
	for i := range pod.Status.ContainerStatuses {
		st := &pod.Status.ContainerStatuses[i]
		if st.ContainerID == "" {
			continue
		}
		if e, ok := findEntry(set, st.Name); !ok || e.ContainerID != st.ContainerID || e.Hashes.ExtractedEnvFromMetadataHash == 0 {
			return false
		}
	}
	return true
}

func findEntry(set kruise.RuntimeContainerMetaSet, name string) (kruise.RuntimeContainerMeta, bool) {
	for _, e := range set.Containers {
		if e.Name == name {
			return e, true
		}
	}
	return kruise.RuntimeContainerMeta{}, false
}

// findRuns asks the runtime of a pod for the runs of its containers; without a runtime if no
// container was started yet.
func (a *Agent) findRuns(ctx context.Context, pod *corev1.Pod) (*cri.Runtime, map[string]cri.Container, error) {
	for i := range pod.Status.ContainerStatuses {
		id := pod.Status.ContainerStatuses[i].ContainerID
		if id == "" {
			continue
		}
		runtime, err := a.node.ContainerRuntime(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		runs, err := runtime.PodContainers(ctx, string(pod.UID))
		return runtime, runs, err
	}
	return nil, nil, nil
}

// entryOf returns the entry of a run. An existing entry of the run stays as it is, since a run keeps
// the env that it was started with. If the runtime does not return the env, its hash is 0, and the env
// is asked for again at the next change of the pod.
func (a *Agent) entryOf(ctx context.Context, c *corev1.Container, last kruise.RuntimeContainerMeta, runtime *cri.Runtime, run cri.Container) (kruise.RuntimeContainerMeta, error) {
	if last.ContainerID == run.ID && last.Hashes.PlainHash == run.PlainHash && last.Hashes.ExtractedEnvFromMetadataHash != 0 {
		return last, nil
	}
	next := kruise.RuntimeContainerMeta{Name: c.Name, ContainerID: run.ID, RestartCount: int32(run.Restarts)} //nolint:gosec // the kubelet counts in int32
	next.Hashes.PlainHash = run.PlainHash
	env := map[string]string{}
	if runtimemeta.ReadsMetadata(c) {
		var err error
		env, err = runtime.ContainerEnv(ctx, run)
		switch {
		case cri.IsUnavailable(err) || ctx.Err() != nil:
			return last, err
		case err != nil:
			ctrl.LoggerFrom(ctx).Error(err, "the env of a container is not known", "container", c.Name)
			return next, nil
		}
	}
	next.Hashes.ExtractedEnvFromMetadataHash = runtimemeta.ActualEnvHash(c, env)
	return next, nil
}

// writeAnnotation sets the annotation, without a check for other writes: no other client writes it.
func (a *Agent) writeAnnotation(ctx context.Context, pod *corev1.Pod, set kruise.RuntimeContainerMetaSet) error {
	text, err := json.Marshal(set)
	if err != nil {
		return fmt.Errorf("encoding what the containers of pod %s run: %w", client.ObjectKeyFromObject(pod), err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "annotations": map[string]string{kruise.RuntimeContainerMetaKey: string(text)},
	}})
	if err != nil {
		return fmt.Errorf("encoding a patch of pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	err = a.client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if err != nil && !isRecreated(ctx, a.live, pod) {
		err = fmt.Errorf("writing what the containers of pod %s run: %w", client.ObjectKeyFromObject(pod), err)
		failure.RecordFailure(a.events, pod, err)
		return err
	}
	return nil
}
