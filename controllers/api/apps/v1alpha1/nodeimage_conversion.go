// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/api/conversiondata"
)

// nodeImageKept is what only the hub has fields for.
type nodeImageKept struct {
	// PullSecrets of those images that have a secret with a mode, all of them: a secret may be there twice.
	PullSecrets map[string][]v1beta1.ReferenceObject `json:"pullSecrets,omitempty"`
}

// ConvertTo fills the hub.
func (in *NodeImage) ConvertTo(hub conversion.Hub) error {
	out, ok := hub.(*v1beta1.NodeImage)
	if !ok {
		return fmt.Errorf("converting to %T: a NodeImage is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := in.DeepCopy()
	out.ObjectMeta, out.Spec, out.Status = src.ObjectMeta, v1beta1.NodeImageSpec{}, src.Status
	var kept nodeImageKept
	conversiondata.RestoreFields(&out.Annotations, conversiondata.NewerKey, &kept)
	if src.Spec.Images == nil {
		return nil
	}
	out.Spec.Images = make(map[string]v1beta1.ImageSpec, len(src.Spec.Images))
	for name, image := range src.Spec.Images {
		out.Spec.Images[name] = v1beta1.ImageSpec{
			Tags: image.Tags, SandboxConfig: image.SandboxConfig,
			PullSecrets: pullSecretsToHub(image.PullSecrets, kept.PullSecrets[name]),
		}
	}
	return nil
}

// ConvertFrom reads the hub.
func (in *NodeImage) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*v1beta1.NodeImage)
	if !ok {
		return fmt.Errorf("converting from %T: a NodeImage is stored as %s", hub, v1beta1.GroupVersion)
	}
	src := from.DeepCopy()
	in.ObjectMeta, in.Spec, in.Status = src.ObjectMeta, NodeImageSpec{}, src.Status
	kept := nodeImageKept{PullSecrets: map[string][]v1beta1.ReferenceObject{}}
	if src.Spec.Images != nil {
		in.Spec.Images = make(map[string]ImageSpec, len(src.Spec.Images))
	}
	for name, image := range src.Spec.Images {
		if slices.ContainsFunc(image.PullSecrets, func(secret v1beta1.ReferenceObject) bool { return secret.Mode != "" }) {
			kept.PullSecrets[name] = image.PullSecrets
		}
		in.Spec.Images[name] = ImageSpec{
			Tags: image.Tags, SandboxConfig: image.SandboxConfig, PullSecrets: pullSecretsFromHub(image.PullSecrets),
		}
	}
	return conversiondata.StoreFields(&in.Annotations, conversiondata.NewerKey, kept)
}

// pullSecretsToHub gives every secret the mode of the first one kept by its name that no other secret took.
func pullSecretsToHub(secrets []ReferenceObject, kept []v1beta1.ReferenceObject) []v1beta1.ReferenceObject {
	if secrets == nil {
		return nil
	}
	out := make([]v1beta1.ReferenceObject, 0, len(secrets))
	for _, secret := range secrets {
		reference := v1beta1.ReferenceObject{Namespace: secret.Namespace, Name: secret.Name}
		i := slices.IndexFunc(kept, func(k v1beta1.ReferenceObject) bool {
			return k.Namespace == secret.Namespace && k.Name == secret.Name
		})
		if i >= 0 {
			reference.Mode = kept[i].Mode
			kept = slices.Delete(kept, i, i+1)
		}
		out = append(out, reference)
	}
	return out
}

func pullSecretsFromHub(secrets []v1beta1.ReferenceObject) []ReferenceObject {
	if secrets == nil {
		return nil
	}
	out := make([]ReferenceObject, 0, len(secrets))
	for _, secret := range secrets {
		out = append(out, ReferenceObject{Namespace: secret.Namespace, Name: secret.Name})
	}
	return out
}
