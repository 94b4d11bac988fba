// SPDX-License-Identifier: Apache-2.0

package broadcastjob

import (
	"math"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/defaulting"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
)

type defaulter struct {
	templates     podtemplate.Settings
	keepTemplates bool
}

// applyDefaults sets defaults in the template only when it is created or changed, so that a new release changes no job. A
// template without a restartPolicy is refused, so it gets no default for that.
func (d defaulter) applyDefaults(job, old *v1beta1.BroadcastJob) {
	spec := &job.Spec
	defaulting.SetIfNil(&spec.Parallelism, intstr.FromInt32(math.MaxInt32))
	defaulting.SetIfEmpty(&spec.CompletionPolicy.Type, v1beta1.AlwaysCompletionPolicyType)
	defaulting.SetIfEmpty(&spec.FailurePolicy.Type, v1beta1.FailurePolicyTypeFailFast)
	if d.keepTemplates || old != nil && equality.Semantic.DeepEqual(spec.Template, old.Spec.Template) {
		return
	}
	policy := spec.Template.Spec.RestartPolicy
	d.templates.ApplyDefaults(&spec.Template)
	spec.Template.Spec.RestartPolicy = policy
}
