// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/annotation"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// SetState sets the state of a pod that is about to be written.
func SetState(pod *corev1.Pod, s kruise.LifecycleStateType, now time.Time) {
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Labels[kruise.LifecycleStateKey] = string(s)
	pod.Annotations[kruise.LifecycleTimestampKey] = now.UTC().Format(time.RFC3339)
}

// Writer writes states.
type Writer struct {
	Client client.Client
	Now    func() time.Time
}

// MoveToState writes a new state of a pod. If the hook requires it, the pod is made not
// ready first, or is made ready again when it leaves an update. It returns the pod as it
// was last written, nil if it was not, also if it fails half-way.
//
// OpenKruise removes the key of an update from KruisePodReady only when the pod becomes Updated. So
// a pod whose hook is complete already stays out of its services indefinitely.
// Here the key is removed in every state after an update.
func (w Writer) MoveToState(ctx context.Context, pod *corev1.Pod, s kruise.LifecycleStateType, l *kruise.Lifecycle, rehook bool) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	keyed, err := w.updateReadinessKey(ctx, pod, s, l)
	if err != nil {
		return nil, err
	}
	if PodState(pod) == s {
		return keyed, nil
	}
	before := pod.DeepCopy()
	SetState(pod, s, w.Now())
	if rehook && l != nil && l.InPlaceUpdate != nil {
		for k, v := range l.InPlaceUpdate.LabelsHandler {
			pod.Labels[k] = v
		}
		for _, f := range l.InPlaceUpdate.FinalizersHandler {
			if !slices.Contains(pod.Finalizers, f) {
				pod.Finalizers = append(pod.Finalizers, f)
			}
		}
	}
	if err := w.Client.Patch(ctx, pod, client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return keyed, fmt.Errorf("moving pod %s to %s: %w", pod.Name, s, err)
	}
	return pod, nil
}

// updateReadinessKey changes the condition KruisePodReady as a state requires. It changes pod
// and returns a copy of it as written, nil if nothing was written.
func (w Writer) updateReadinessKey(ctx context.Context, pod *corev1.Pod, s kruise.LifecycleStateType, l *kruise.Lifecycle) (*corev1.Pod, error) {
	name, hold := "", false
	switch {
	case s == kruise.LifecycleStatePreparingUpdate && l != nil && l.InPlaceUpdate != nil && l.InPlaceUpdate.MarkPodNotReady:
		name, hold = kruise.PreUpdateHookKey, true
	case s == kruise.LifecycleStatePreparingDelete && l != nil && l.PreDelete != nil && l.PreDelete.MarkPodNotReady:
		name, hold = kruise.PreDeleteHookKey, true
	case s == kruise.LifecycleStateUpdated || s == kruise.LifecycleStateNormal:
		name = kruise.PreUpdateHookKey
	default:
		return nil, nil
	}
	wrote, err := w.setKey(ctx, pod, name, hold)
	if err != nil || !wrote {
		return nil, err
	}
	return pod.DeepCopy(), nil
}

// HasStaleHookKey reports whether a pod is out of its services for an update or a deletion whose preparation
// never began: the pod was made not ready, and then the write of its state failed.
func HasStaleHookKey(pod *corev1.Pod) bool {
	if s := PodState(pod); s != "" && s != kruise.LifecycleStateNormal {
		return false
	}
	return HasHookKey(pod)
}

// HasHookKey reports whether a key of a lifecycle hook keeps a pod out of its services.
func HasHookKey(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == kruise.KruisePodReady && c.Status != corev1.ConditionTrue {
			return strings.Contains(c.Message, `"`+kruise.LifecycleUserAgent+`"`)
		}
	}
	return false
}

// ReleaseHookKeys returns a pod with a stale hook key to its services. It returns the pod as it was
// last written, nil if it was not.
func (w Writer) ReleaseHookKeys(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	pod = pod.DeepCopy()
	var written *corev1.Pod
	for _, key := range []string{kruise.PreUpdateHookKey, kruise.PreDeleteHookKey} {
		wrote, err := w.setKey(ctx, pod, key, false)
		if err != nil {
			return written, err
		}
		if wrote {
			written = pod.DeepCopy()
		}
	}
	return written, nil
}

// setKey adds or removes a key of the lifecycle hooks.
func (w Writer) setKey(ctx context.Context, pod *corev1.Pod, key string, hold bool) (wrote bool, err error) {
	return w.SetKey(ctx, pod, kruise.PodReadinessMessage{UserAgent: kruise.LifecycleUserAgent, Key: key}, hold)
}

// SetKey adds or removes one key of the condition KruisePodReady (PA-03), in the
// API and in pod. It does not change a pod without that gate.
func (w Writer) SetKey(ctx context.Context, pod *corev1.Pod, mine kruise.PodReadinessMessage, hold bool) (wrote bool, err error) {
	if !slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == kruise.KruisePodReady }) {
		return false, nil
	}
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kruise.KruisePodReady })
	var keys []kruise.PodReadinessMessage
	if i >= 0 && pod.Status.Conditions[i].Message != "" {
		var err error
		if keys, err = annotation.Decode[[]kruise.PodReadinessMessage](string(kruise.KruisePodReady), pod.Status.Conditions[i].Message); err != nil {
			if !hold { // another client wrote the message, so it does not have this key
				return false, nil
			}
			return false, fmt.Errorf("reading condition %s of pod %s: %w", kruise.KruisePodReady, pod.Name, err)
		}
	}
	at := slices.Index(keys, mine)
	if (at >= 0) == hold {
		return false, nil
	}
	if hold {
		keys = append(keys, mine)
	} else {
		keys = slices.Delete(keys, at, at+1)
	}
	slices.SortFunc(keys, func(a, b kruise.PodReadinessMessage) int {
		return strings.Compare(a.UserAgent+"/"+a.Key, b.UserAgent+"/"+b.Key)
	})
	c := corev1.PodCondition{Type: kruise.KruisePodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.Now())}
	if len(keys) > 0 {
		raw, err := json.Marshal(keys)
		if err != nil {
			return false, fmt.Errorf("encoding condition %s: %w", kruise.KruisePodReady, err)
		}
		c.Status, c.Message = corev1.ConditionFalse, string(raw)
	}
	before := pod.DeepCopy()
	if i < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, c)
	} else {
		if old := pod.Status.Conditions[i]; old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		pod.Status.Conditions[i] = c
	}
	p := client.StrategicMergeFrom(before, client.MergeFromWithOptimisticLock{})
	if err := w.Client.Status().Patch(ctx, pod, p); err != nil {
		return false, fmt.Errorf("setting %s on pod %s: %w", kruise.KruisePodReady, pod.Name, err)
	}
	return true, nil
}
