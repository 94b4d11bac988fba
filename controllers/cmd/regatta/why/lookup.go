package why

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/engine/decision"
)

// lookup finds out why there is no answer: most often because there is no such
// object, or because nothing is ever decided about it.
type lookup struct {
	pods    typedv1.PodsGetter
	objects dynamic.Interface
}

// reason is what is wrong with the object, nil if nothing is known to be.
func (l lookup) reason(ctx context.Context, t target.Target) error {
	switch t.Kind {
	case "": // of other kinds only refusals are known, and most often there was none
		return nil
	case target.Pod:
		return l.pod(ctx, t)
	}
	_, err := l.cloneSet(ctx, t.Namespace, t.Name)
	switch {
	case err == nil, !apierrors.IsNotFound(err):
		return nil
	case strings.Contains(err.Error(), t.Name):
		return fmt.Errorf("there is no CloneSet %s in namespace %s", t.Name, t.Namespace)
	}
	return fmt.Errorf("this cluster knows no CloneSets; is Regatta installed?")
}

func (l lookup) pod(ctx context.Context, t target.Target) error {
	pod, err := l.pods.Pods(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no pod %s in namespace %s", t.Name, t.Namespace)
	}
	if err != nil {
		return nil //nolint:nilerr // who may not look is told why managers did not answer
	}
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return fmt.Errorf("pod %s/%s belongs to no workload, so no policy decides when it is updated, and no request about it was refused lately", t.Namespace, t.Name)
	case owner.Kind != target.CloneSet || !strings.HasPrefix(owner.APIVersion, kruise.GroupName+"/"):
		return fmt.Errorf("pod %s/%s belongs to %s %s, and policies decide only when pods of CloneSets are updated; no request about it was refused lately", t.Namespace, t.Name, owner.Kind, owner.Name)
	case pod.DeletionTimestamp != nil:
		return fmt.Errorf("pod %s/%s of CloneSet %s is being deleted until %s, so nothing is decided about it any more",
			t.Namespace, t.Name, owner.Name, pod.DeletionTimestamp.UTC().Format("2006-01-02T15:04:05Z"))
	case pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return fmt.Errorf("pod %s/%s of CloneSet %s has ended (%s), so nothing is decided about it any more", t.Namespace, t.Name, owner.Name, pod.Status.Phase)
	}
	return nil
}

func (l lookup) cloneSet(ctx context.Context, namespace, name string) (*kruise.CloneSet, error) {
	object, err := l.objects.Resource(kruise.GroupVersion.WithResource("clonesets")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	set := &kruise.CloneSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, set); err != nil {
		return nil, fmt.Errorf("reading CloneSet: %w", err)
	}
	return set, nil
}

// conditions are those of a CloneSet that say something is so, none if it
// cannot be read: they are told besides the answer.
func (l lookup) conditions(ctx context.Context, s decision.Subject) []kruise.CloneSetCondition {
	set, err := l.cloneSet(ctx, s.Namespace, s.Name)
	if err != nil {
		return nil
	}
	return set.Status.Conditions
}
