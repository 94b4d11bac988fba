// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/regatta-sh/regatta/controllers/annotation"
)

// ClaimTemplatesKey is the annotation with the volume claim templates of pods of a
// revision. They are not part of its data: an edit of only these templates is no update.
const ClaimTemplatesKey = "revision.regatta.sh/volume-claim-templates"

// Limits of the record of claim templates, in bytes. A revision beyond them records no claims.
const (
	maxClaimTemplates = 64 << 10
	maxAnnotations    = 256 << 10 // the limit of the API server for all annotations
)

// claimTemplate is the recorded part of a volume claim template.
type claimTemplate struct {
	Name        string                           `json:"name"`
	Labels      map[string]string                `json:"labels,omitempty"`
	Annotations map[string]string                `json:"annotations,omitempty"`
	Spec        corev1.PersistentVolumeClaimSpec `json:"spec"`
}

// ClaimTemplates reads the volume claim templates that a revision records. It returns false for a
// revision that does not record any, such as one that OpenKruise created.
func ClaimTemplates(rev *appsv1.ControllerRevision) ([]corev1.PersistentVolumeClaim, bool) {
	text, ok := rev.Annotations[ClaimTemplatesKey]
	if !ok {
		return nil, false
	}
	recorded, err := annotation.Decode[[]claimTemplate](ClaimTemplatesKey, text)
	if err != nil || recorded == nil || !areNamed(recorded) {
		return nil, false // another client wrote it; the next change of the templates repairs it
	}
	out := make([]corev1.PersistentVolumeClaim, len(recorded))
	for i, t := range recorded {
		out[i] = corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: t.Name, Labels: t.Labels, Annotations: t.Annotations}, Spec: t.Spec,
		}
	}
	return out, true
}

// areNamed reports whether each claim template has a valid and unique name.
func areNamed(templates []claimTemplate) bool {
	seen := map[string]bool{}
	for _, t := range templates {
		if seen[t.Name] || len(validation.IsDNS1123Label(t.Name)) > 0 {
			return false
		}
		seen[t.Name] = true
	}
	return true
}

// ClaimTemplatesOf returns the claim templates for new pods of a revision before the update. own are the claim templates
// of the workload. The revision says which templates there are. If the workload has a template with the same name, that is
// used, since claims follow their templates. For a revision that records nothing, the result is own.
func ClaimTemplatesOf(rev *appsv1.ControllerRevision, own []corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaim {
	out, ok := ClaimTemplates(rev)
	if !ok {
		return own
	}
	for i := range out {
		name := out[i].Name
		if at := slices.IndexFunc(own, func(c corev1.PersistentVolumeClaim) bool { return c.Name == name }); at >= 0 {
			out[i] = own[at]
		}
	}
	return out
}

// recordClaimTemplates sets the record among the annotations of a revision.
func recordClaimTemplates(annotations map[string]string, claims []corev1.PersistentVolumeClaim) error {
	recorded := make([]claimTemplate, len(claims))
	for i := range claims {
		c := &claims[i]
		recorded[i] = claimTemplate{Name: c.Name, Labels: c.Labels, Annotations: c.Annotations, Spec: c.Spec}
	}
	raw, err := json.Marshal(recorded)
	if err != nil {
		return fmt.Errorf("encoding volume claim templates: %w", err)
	}
	setClaimTemplates(annotations, string(raw))
	return nil
}

// setClaimTemplates sets the record among annotations, or removes it if it would be too large, alone or with the others.
func setClaimTemplates(annotations map[string]string, text string) {
	delete(annotations, ClaimTemplatesKey)
	size := len(ClaimTemplatesKey) + len(text)
	for k, v := range annotations {
		size += len(k) + len(v)
	}
	if len(text) <= maxClaimTemplates && size <= maxAnnotations {
		annotations[ClaimTemplatesKey] = text
	}
}

// withClaimTemplates returns a revision with the record of another one, if its own annotations leave room for it, and whether
// that is a change.
func withClaimTemplates(rev, of *appsv1.ControllerRevision) (*appsv1.ControllerRevision, bool) {
	text, ok := of.Annotations[ClaimTemplatesKey]
	was, had := rev.Annotations[ClaimTemplatesKey]
	if had == ok && was == text {
		return rev, false
	}
	out := rev.DeepCopy()
	delete(out.Annotations, ClaimTemplatesKey)
	if ok {
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		setClaimTemplates(out.Annotations, text)
	}
	_, has := out.Annotations[ClaimTemplatesKey]
	return out, had || has
}
