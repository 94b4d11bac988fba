package cloneset

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/fill"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/review"
)

// Defaulter fills in what the user left out.
type Defaulter struct {
	Templates podtemplate.Defaults
	// KeepTemplates leaves pod and claim templates as they are (gate TemplateNoDefaults).
	KeepTemplates bool
}

var _ admission.Handler = &Defaulter{}

// Handle implements admission.Handler.
func (d *Defaulter) Handle(_ context.Context, request admission.Request) admission.Response {
	if !writes(&request) {
		return admission.Allowed("")
	}
	set, old, err := decodeBoth(&request)
	if err != nil {
		return admission.Allowed("") // the schema, or the validating webhook, says what is wrong
	}
	if set.alpha != nil {
		before := set.alpha.DeepCopy()
		d.defaultAlpha(set.alpha)
		d.defaultTemplates(&set.alpha.Spec.Template, set.alpha.Spec.VolumeClaimTemplates, old)
		return patched(set.raw, before, set.alpha)
	}
	before := set.hub.DeepCopy()
	d.defaultHub(set.hub)
	d.defaultTemplates(&set.hub.Spec.Template, set.hub.Spec.VolumeClaimTemplates, old)
	return patched(set.raw, before, set.hub)
}

func patched(raw []byte, before, after any) admission.Response {
	if equality.Semantic.DeepEqual(before, after) {
		return admission.Allowed("")
	}
	return review.Patched(raw, before, after)
}

// writes is false for requests that carry no spec: deletes, and those of subresources.
func writes(request *admission.Request) bool {
	return request.SubResource == "" && (request.Operation == admissionv1.Create || request.Operation == admissionv1.Update)
}

func decodeBoth(request *admission.Request) (set, old *object, err error) {
	if set, err = decode(request.Object.Raw, request.Kind.Version); err != nil || request.Operation != admissionv1.Update {
		return set, nil, err
	}
	old, err = decode(request.OldObject.Raw, request.Kind.Version)
	return set, old, err
}

func (d *Defaulter) defaultHub(set *v1beta1.CloneSet) {
	spec := &set.Spec
	defaultCounts(&spec.Replicas, &spec.RevisionHistoryLimit)
	strategy := &spec.UpdateStrategy
	fill.Empty(&strategy.Type, v1beta1.RollingUpdateCloneSetUpdateStrategyType)
	if strategy.Type != v1beta1.RollingUpdateCloneSetUpdateStrategyType {
		return
	}
	fill.Unset(&strategy.RollingUpdate, v1beta1.RollingUpdateCloneSetStrategy{})
	fill.Empty(&strategy.RollingUpdate.PodUpdatePolicy, v1beta1.RecreatePodUpdatePolicyType)
	defaultAmounts(&strategy.RollingUpdate.Partition, &strategy.RollingUpdate.MaxUnavailable, &strategy.RollingUpdate.MaxSurge)
}

func (d *Defaulter) defaultAlpha(set *v1alpha1.CloneSet) {
	spec := &set.Spec
	defaultCounts(&spec.Replicas, &spec.RevisionHistoryLimit)
	strategy := &spec.UpdateStrategy
	fill.Empty(&strategy.Type, v1alpha1.RecreateCloneSetUpdateStrategyType)
	if strategy.Type != v1alpha1.OnDeleteCloneSetUpdateStrategyType {
		defaultAmounts(&strategy.Partition, &strategy.MaxUnavailable, &strategy.MaxSurge)
	}
}

func defaultCounts(replicas, revisionHistoryLimit **int32) {
	fill.Unset(replicas, 1)
	fill.Unset(revisionHistoryLimit, 10)
}

func defaultAmounts(partition, maxUnavailable, maxSurge **intstr.IntOrString) {
	fill.Unset(partition, intstr.FromInt32(0))
	fill.Unset(maxUnavailable, intstr.FromString(v1beta1.DefaultCloneSetMaxUnavailable))
	fill.Unset(maxSurge, intstr.FromInt32(0))
}

// defaultTemplates fills in templates when they are created or changed, never otherwise: a release that knows a new
// default would make a new revision of every CloneSet, and so restart every pod.
func (d *Defaulter) defaultTemplates(template *corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim, old *object) {
	if d.KeepTemplates {
		return
	}
	if old == nil || !equality.Semantic.DeepEqual(*template, old.hub.Spec.Template) {
		d.Templates.Apply(template)
	}
	if old == nil || !equality.Semantic.DeepEqual(claims, old.hub.Spec.VolumeClaimTemplates) {
		for i := range claims {
			d.Templates.ApplyToClaim(&claims[i])
		}
	}
}
