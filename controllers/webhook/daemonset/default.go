// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/webhook/defaulting"
)

// applyDefaults sets only the defaults of the strategy, as OpenKruise does: the controller applies the defaults of other
// fields.
func applyDefaults(set, _ *v1beta1.DaemonSet) {
	strategy := &set.Spec.UpdateStrategy
	defaulting.SetIfEmpty(&strategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if strategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		return
	}
	defaulting.SetIfNil(&strategy.RollingUpdate, v1beta1.RollingUpdateDaemonSet{})
	rolling := strategy.RollingUpdate
	defaulting.SetIfEmpty(&rolling.Type, v1beta1.StandardRollingUpdateType)
	if rolling.MaxUnavailable == nil && rolling.MaxSurge == nil {
		rolling.MaxUnavailable, rolling.MaxSurge = ptr.To(intstr.FromInt32(1)), ptr.To(intstr.FromInt32(0))
	}
}
