// SPDX-License-Identifier: Apache-2.0

package containerrecreaterequest

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

func (c *cluster) validateSpec(ctx context.Context, request, old *v1beta1.ContainerRecreateRequest, found *rules.Findings) {
	if !found.SomeSpec(request.Spec) {
		return
	}
	if old != nil {
		validateUpdate(request, old, found)
		return
	}
	containers := field.NewPath("spec", "containers")
	names := make([]string, len(request.Spec.Containers))
	for i := range names {
		names[i] = request.Spec.Containers[i].Name
	}
	for i, again := range rules.FindDuplicates(names) {
		if again {
			found.AddErrors(field.Invalid(containers.Index(i).Child("name"), names[i], "can not recreate "+names[i]+" multi times"))
		}
	}
	pod, node, err := c.findPodAndNode(ctx, request)
	if err != nil {
		found.AddErrors(err)
		return
	}
	for i := range request.Spec.Containers {
		container, path := &request.Spec.Containers[i], containers.Index(i)
		filled, why := containerOf(pod, container.Name)
		switch {
		case why != "":
			found.AddErrors(field.Invalid(path.Child("name"), container.Name, why))
		case isName(container):
			found.AddErrors(field.InternalError(path, errNotFilled()))
		case !equality.Semantic.DeepEqual(filled, container):
			found.AddErrors(field.Forbidden(path, "preStop, ports, statusContext in container are ready-only fields"))
		}
	}
	for key, value := range labelsOf(pod, node) {
		if request.Labels[key] != value {
			found.AddErrors(field.InternalError(labelPath(key), errNotFilled()))
		}
	}
}

// errNotFilled reports that the pod has changed since the mutating webhook read it, a moment ago.
func errNotFilled() error {
	return errors.New("the pod has changed since the request was filled in; create the request again")
}

// validateUpdate refuses changes of the spec. The schema cannot, since it distinguishes a field that is false from a
// missing one, and clients and conversions turn one into the other.
func validateUpdate(request, old *v1beta1.ContainerRecreateRequest, found *rules.Findings) {
	if !equality.Semantic.DeepEqual(request.Spec, old.Spec) {
		found.AddErrors(field.Forbidden(field.NewPath("spec"), "a ContainerRecreateRequest cannot be changed; make another one"))
	}
	for _, key := range changedLabels(request, old) {
		found.AddErrors(field.Forbidden(labelPath(key), "the label cannot be changed"))
	}
	if at := unreadySince(old); at != nil && !at.Equal(unreadySince(request)) {
		path := field.NewPath("metadata", "annotations").Key(v1beta1.ContainerRecreateRequestUnreadyAcquiredKey)
		found.AddErrors(field.Forbidden(path, "the annotation cannot be changed once it is set"))
	}
}

func changedLabels(a, b *v1beta1.ContainerRecreateRequest) []string {
	var out []string
	for _, key := range []string{v1beta1.ContainerRecreateRequestPodUIDKey, v1beta1.ContainerRecreateRequestNodeNameKey} {
		if a.Labels[key] != b.Labels[key] {
			out = append(out, key)
		}
	}
	return out
}

// unreadySince is since when the pod is kept not ready. In v1alpha1 it is an annotation, which a user can write.
func unreadySince(request *v1beta1.ContainerRecreateRequest) *metav1.Time {
	for i := range request.Status.Conditions {
		condition := &request.Status.Conditions[i]
		if condition.Type == v1beta1.ContainerRecreateRequestPreRecreateGrace && condition.Status == metav1.ConditionTrue {
			return &condition.LastTransitionTime
		}
	}
	return nil
}

func labelPath(key string) *field.Path { return field.NewPath("metadata", "labels").Key(key) }
