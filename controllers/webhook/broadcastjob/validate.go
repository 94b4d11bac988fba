// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// ValidateSpec finds errors in the spec of a job, or of the template of a job. The template of the pods is checked if it has
// changed.
func ValidateSpec(spec, old *v1beta1.BroadcastJobSpec, templates podtemplate.Settings, path *field.Path, found *rules.Findings) {
	if spec.Parallelism != nil {
		found.ResolveAmount(spec.Parallelism, 100, path.Child("parallelism"))
	}
	if old != nil && equality.Semantic.DeepEqual(spec.Template, old.Template) {
		return
	}
	found.PodsOfJob(&spec.Template, templates, path.Child("template"))
	for _, key := range []string{v1beta1.BroadcastJobNameKey, v1beta1.BroadcastJobControllerUIDKey} {
		if value, ok := spec.Template.Labels[key]; ok {
			found.AddErrors(field.Invalid(path.Child("template", "metadata", "labels").Key(key), value, "is set by the controller, and must be left out"))
		}
	}
}
