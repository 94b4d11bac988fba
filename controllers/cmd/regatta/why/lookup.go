// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/engine/decision"
)

// lookup finds out why there is no answer: usually because no such object exists, or because Regatta
// decides nothing about it.
type lookup struct {
	pods    typedv1.PodsGetter
	objects dynamic.Interface
}

// objectProblem returns why there is no answer about the object, nil if that is not known.
func (l lookup) objectProblem(ctx context.Context, t target.Target) error {
	if t.Kind == target.Pod {
		return l.podProblem(ctx, t)
	}
	w, ok := kinds.FindByGroupKind(t.GroupKind())
	if !ok { // about other kinds only refusals are remembered, and usually there was none
		return nil
	}
	_, err := l.readView(ctx, w, t.Namespace, t.Name)
	switch {
	case err == nil, !apierrors.IsNotFound(err):
		return nil
	case strings.Contains(err.Error(), t.Name):
		return fmt.Errorf("there is no %s %s in namespace %s", w.Kind, t.Name, t.Namespace)
	}
	return fmt.Errorf("this cluster knows no %ss; is Regatta installed?", w.Kind)
}

func (l lookup) podProblem(ctx context.Context, t target.Target) error {
	pod, err := l.pods.Pods(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no pod %s in namespace %s", t.Name, t.Namespace)
	}
	if err != nil {
		return nil //nolint:nilerr // a user who may not get the pod sees why the managers did not answer
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return fmt.Errorf("pod %s/%s belongs to no workload, so no policy decides when it is updated, and no request about it was refused lately", t.Namespace, t.Name)
	}
	_, ours := kinds.FindByOwner(*owner)
	switch {
	case !ours:
		return fmt.Errorf("pod %s/%s belongs to %s %s, and policies decide only when pods of %s are updated; no request about it was refused lately",
			t.Namespace, t.Name, owner.Kind, owner.Name, kinds.JoinPlurals("or"))
	case pod.DeletionTimestamp != nil:
		return fmt.Errorf("pod %s/%s of %s %s is being deleted until %s, so nothing is decided about it any more",
			t.Namespace, t.Name, owner.Kind, owner.Name, pod.DeletionTimestamp.UTC().Format("2006-01-02T15:04:05Z"))
	case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return fmt.Errorf("pod %s/%s of %s %s has ended (%s), so nothing is decided about it any more", t.Namespace, t.Name, owner.Kind, owner.Name, pod.Status.Phase)
	}
	return nil
}

// readView returns the state of the rollout in a workload.
func (l lookup) readView(ctx context.Context, w kinds.Workload, namespace, name string) (kinds.View, error) {
	u, err := l.objects.Resource(w.GroupVersionResource()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return kinds.View{}, err
	}
	object, err := w.Read(u)
	if err != nil {
		return kinds.View{}, err
	}
	return w.View(object), nil
}

// readConditions returns the conditions of a workload, none if it cannot be read. They are printed in
// addition to the answer.
func (l lookup) readConditions(ctx context.Context, s decision.Subject) []kinds.Condition {
	w, ok := kinds.FindByKind(schema.GroupKind{Group: s.Group, Kind: s.Kind})
	if !ok {
		return nil
	}
	view, err := l.readView(ctx, w, s.Namespace, s.Name)
	if err != nil {
		return nil
	}
	return view.Conditions
}
