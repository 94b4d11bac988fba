// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/runtimemeta"
	"github.com/regatta-sh/regatta/test/faults/trap"
)

// envs are updates in place of an annotation that the env of a container reads.
type envs struct{}

func (envs) name() string     { return "a change of env" }
func (envs) inside() []string { return []string{stop} }

func (envs) prepare(ctx context.Context, w *world, node string) (try, error) {
	e := &env{world: w, name: fmt.Sprintf("env-%d", w.next()), node: node}
	return e, e.prepare(ctx)
}

// env is a CloneSet of one pod, whose container reads the annotation color. It ends at once
// when it is asked to: the kubelet then starts the next run by the pod that it has at that moment.
type env struct {
	*world
	name, node string
	pod        *corev1.Pod
}

// color is the annotation that the container reads.
const color = "faults.regatta.sh/color"

func (e *env) meta() metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: e.name} }

func (e *env) prepare(ctx context.Context) error {
	set := &kruise.CloneSet{ObjectMeta: e.meta()}
	labels := map[string]string{"app": e.name}
	set.Spec.Replicas, set.Spec.Selector = ptr.To[int32](1), &metav1.LabelSelector{MatchLabels: labels}
	set.Spec.UpdateStrategy.RollingUpdate = &kruise.RollingUpdateCloneSetStrategy{PodUpdatePolicy: kruise.InPlaceOnlyPodUpdatePolicyType}
	set.Spec.Template.Labels, set.Spec.Template.Annotations = labels, map[string]string{color: "blue"}
	set.Spec.Template.Spec = corev1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelHostname: e.node}, TerminationGracePeriodSeconds: ptr.To[int64](5),
		Containers: []corev1.Container{{
			Name: "main", Image: "busybox:1.36", Command: []string{"sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.05; done"},
			Env: []corev1.EnvVar{{Name: "COLOR", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + color + "']"}}}},
		}},
	}
	if err := e.Create(ctx, set); err != nil {
		return fmt.Errorf("making CloneSet %s: %w", e.name, err)
	}
	return until(ctx, patience, func(ctx context.Context) (bool, string, error) {
		pod, err := e.current(ctx)
		e.pod = pod
		return pod != nil && len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready, "a CloneSet without a pod that is ready", err
	})
}

// current is the pod as it is now.
func (e *env) current(ctx context.Context) (*corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := e.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": e.name}); err != nil {
		return nil, fmt.Errorf("listing the pods of CloneSet %s: %w", e.name, err)
	}
	if len(list.Items) != 1 {
		return nil, nil
	}
	return &list.Items[0], nil
}

func (e *env) begin(ctx context.Context) error {
	set := &kruise.CloneSet{ObjectMeta: e.meta()}
	patch := fmt.Sprintf(`{"spec": {"template": {"metadata": {"annotations": {%q: "red"}}}}}`, color)
	if err := e.Patch(ctx, set, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		return fmt.Errorf("updating CloneSet %s: %w", e.name, err)
	}
	return nil
}

func (e *env) end(ctx context.Context, _ *trap.Trap) (string, error) {
	err := until(ctx, patience, func(ctx context.Context) (bool, string, error) {
		set := &kruise.CloneSet{ObjectMeta: e.meta()}
		if err := e.Get(ctx, client.ObjectKeyFromObject(set), set); err != nil {
			return false, "", fmt.Errorf("reading CloneSet %s: %w", e.name, err)
		}
		s := set.Status
		return s.ObservedGeneration == set.Generation && s.UpdatedReadyReplicas == 1 && s.UpdatedAvailableReplicas == 1,
			fmt.Sprintf("a CloneSet with %d updated pods ready and %d available", s.UpdatedReadyReplicas, s.UpdatedAvailableReplicas), nil
	})
	return "updated in the same pod, 1 restart", err
}

func (e *env) still(ctx context.Context) error {
	pod, err := e.current(ctx)
	if err != nil {
		return err
	}
	if pod == nil || pod.UID != e.pod.UID || len(pod.Status.ContainerStatuses) == 0 {
		return fmt.Errorf("the pod is not the one of before")
	}
	st := pod.Status.ContainerStatuses[0]
	if st.RestartCount != 1 || !st.Ready {
		return fmt.Errorf("the container was restarted %d times, want once, and is ready: %t", st.RestartCount, st.Ready)
	}
	told, ok := runtimemeta.ContainerMeta(pod, &st)
	if !ok || told.Hashes.ExtractedEnvFromMetadataHash != runtimemeta.ExpectedEnvHash(pod, &pod.Spec.Containers[0]) {
		return fmt.Errorf("the annotation of the agent is %q", pod.Annotations[kruise.RuntimeContainerMetaKey])
	}
	return nil
}

func (e *env) remove(ctx context.Context) error {
	if err := client.IgnoreNotFound(e.Delete(ctx, &kruise.CloneSet{ObjectMeta: e.meta()})); err != nil {
		return fmt.Errorf("removing CloneSet %s: %w", e.name, err)
	}
	return nil
}
