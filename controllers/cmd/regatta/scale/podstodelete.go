// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"

	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
)

// podReader reads the pods of a namespace.
type podReader struct{ pods dynamic.ResourceInterface }

// readPod returns a pod, nil if there is none.
func (r *podReader) readPod(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	if len(validation.IsDNS1123Subdomain(name)) > 0 { // podsToDelete may have any text
		return nil, nil
	}
	pod, err := r.pods.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", name, err)
	}
	return pod, nil
}

// addPodsToDelete adds names to podsToDelete and removes those whose pods are gone, as the controller does.
func (s *scaleDown) addPodsToDelete(
	ctx context.Context, kind edit.Kind, object *unstructured.Unstructured, reader *podReader,
) (chosenPods, error) {
	before, _, err := unstructured.NestedStringSlice(object.Object, kind.PodsToDelete...)
	if err != nil {
		return chosenPods{}, fmt.Errorf("reading %s: %w", kind.PodsToDelete, err)
	}
	chosen, err := s.choosePods(ctx, kind, object, before, reader)
	if err != nil {
		return chosenPods{}, err
	}
	var names []string
	for _, name := range before {
		pod, err := reader.readPod(ctx, name)
		if err != nil {
			return chosenPods{}, err
		}
		if pod != nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	names = append(names, chosen.counted...)
	if err := unstructured.SetNestedStringSlice(object.Object, names, kind.PodsToDelete...); err != nil {
		return chosenPods{}, fmt.Errorf("writing %s: %w", kind.PodsToDelete, err)
	}
	return chosen, nil
}

// choosePods reads the pods of --pods. It refuses all of them if one is not a pod of the object.
func (s *scaleDown) choosePods(
	ctx context.Context, kind edit.Kind, object *unstructured.Unstructured, before []string, reader *podReader,
) (chosenPods, error) {
	var chosen chosenPods
	var wrong []string
	for _, name := range s.pods {
		pod, err := reader.readPod(ctx, name)
		if err != nil {
			return chosenPods{}, err
		}
		switch {
		case pod == nil:
			wrong = append(wrong, fmt.Sprintf("there is no pod %s in namespace %s", name, object.GetNamespace()))
		case !metav1.IsControlledBy(pod, object):
			wrong = append(wrong, fmt.Sprintf("pod %s is not of %s", name, kind.Describe(object.GetName())))
		case slices.Contains(before, name):
			chosen.addRemark("pod %s does not count: %s has it already", name, kind.PodsToDelete)
		default:
			if why := deletionReason(pod); why != "" {
				chosen.addRemark("pod %s does not count: %s", name, why)
				continue
			}
			chosen.counted = append(chosen.counted, name)
		}
	}
	if len(wrong) > 0 {
		return chosenPods{}, exit.RefusalErrorf("%s; no pod is deleted", strings.Join(wrong, ", "))
	}
	return chosen, nil
}

// deletionReason tells why a pod is not one of the replicas any more, empty if it is.
func deletionReason(pod *unstructured.Unstructured) string {
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase") // the API server checks its type
	_, asked := pod.GetLabels()[kruise.SpecifiedDeleteKey]
	state := kruise.LifecycleStateType(pod.GetLabels()[kruise.LifecycleStateKey])
	switch {
	case pod.GetDeletionTimestamp() != nil:
		return "it terminates already"
	case phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed):
		return "it has ended, so it is none of the replicas"
	case state == kruise.LifecycleStatePreparingDelete:
		return "its label " + kruise.LifecycleStateKey + " is " + string(state) + ", so it is being deleted already"
	case asked:
		return "it has the label " + kruise.SpecifiedDeleteKey + ", so it is deleted and replaced"
	}
	return ""
}
