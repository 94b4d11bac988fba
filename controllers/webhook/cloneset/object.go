package cloneset

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// object is a CloneSet as the user typed it, and as all rules see it.
type object struct {
	raw   []byte
	alpha *v1alpha1.CloneSet // nil unless the user typed v1alpha1
	hub   *v1beta1.CloneSet
}

func decode(raw []byte, version string) (*object, error) {
	o := &object{raw: raw, hub: &v1beta1.CloneSet{}}
	var typed client.Object = o.hub
	switch version {
	case v1beta1.GroupVersion.Version:
	case v1alpha1.GroupVersion.Version:
		o.alpha = &v1alpha1.CloneSet{}
		typed = o.alpha
	default:
		return nil, fmt.Errorf("reading a CloneSet of version %q: there are %s and %s", version, v1alpha1.GroupVersion.Version, v1beta1.GroupVersion.Version)
	}
	if err := json.Unmarshal(raw, typed); err != nil {
		return nil, fmt.Errorf("reading a CloneSet: %w", err)
	}
	if o.alpha != nil {
		if err := o.alpha.ConvertTo(o.hub); err != nil {
			return nil, fmt.Errorf("reading a CloneSet: %w", err)
		}
	}
	return o, nil
}

// sameSpec compares what the users typed. In v1alpha1 annotations are fields too, but ones that no rule is about.
func (o *object) sameSpec(old *object) bool {
	if o.alpha != nil && old.alpha != nil {
		return equality.Semantic.DeepEqual(o.alpha.Spec, old.alpha.Spec)
	}
	return equality.Semantic.DeepEqual(o.hub.Spec, old.hub.Spec)
}

// paths says where the fields stand whose place differs between the versions.
type paths struct {
	kind    *field.Path // who starts the update of a pod
	policy  *field.Path // how a pod is brought to a new template
	rolling *field.Path // the rest of the rolling update
}

func (o *object) paths() paths {
	strategy := field.NewPath("spec", "updateStrategy")
	if o.alpha != nil {
		return paths{kind: strategy.Child("type"), policy: strategy.Child("type"), rolling: strategy}
	}
	rolling := strategy.Child("rollingUpdate")
	return paths{kind: strategy.Child("type"), policy: rolling.Child("podUpdatePolicy"), rolling: rolling}
}
