// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/kinds"
	webhooks "github.com/regatta-sh/regatta/controllers/webhook/admit"
	"github.com/regatta-sh/regatta/controllers/webhook/cloneset"
)

// kind is what is known of a kind of workloads besides what the table of kinds has: how it
// is read and admitted, and what the flags change.
type kind struct {
	kinds.Workload
	// older makes an empty object of v1alpha1.
	older    func() conversion.Convertible
	webhooks webhooks.Webhooks
	fields   func(client.Object) fields
}

// fields are those of an object that flags change, and that represent what a fleet knows.
type fields struct {
	replicas **int32
	template *corev1.PodTemplateSpec
	// strategy and status point to the whole of both.
	strategy, status any
	// current is the revision that the status names as the one before; nil if it names none.
	current *string
	// rolling makes a rolling update where there is none yet; nil if the strategy is OnDelete.
	rolling func() rolling
	paused  *bool
}

// rolling points to what bounds a rolling update, nil for what a kind does not have.
type rolling struct {
	maxUnavailable, maxSurge, partition **intstr.IntOrString
	policy                              func(string)
}

// kindOf finds what is known of a kind; false for those that cannot be simulated.
func kindOf(of schema.GroupKind) (kind, bool) {
	w, ok := kinds.FindByGroupKind(of)
	if !ok {
		return kind{}, false
	}
	switch of {
	case kruise.Kind("CloneSet"):
		return kind{
			Workload: w, webhooks: cloneset.New(cloneset.Options{}),
			older:  func() conversion.Convertible { return &v1alpha1.CloneSet{} },
			fields: func(o client.Object) fields { return fieldsOfCloneSet(o.(*kruise.CloneSet)) },
		}, true
	}
	return kind{}, false
}

func fieldsOfCloneSet(set *kruise.CloneSet) fields {
	u := &set.Spec.UpdateStrategy
	f := fields{
		replicas: &set.Spec.Replicas, template: &set.Spec.Template, strategy: u, status: &set.Status, current: &set.Status.CurrentRevision,
	}
	if u.RollingUpdate != nil {
		f.paused = &u.RollingUpdate.Paused
	}
	if u.Type == kruise.OnDeleteCloneSetUpdateStrategyType {
		return f
	}
	f.rolling = func() rolling {
		if u.RollingUpdate == nil {
			u.RollingUpdate = &kruise.RollingUpdateCloneSetStrategy{}
		}
		r := u.RollingUpdate
		return rolling{
			maxUnavailable: &r.MaxUnavailable, maxSurge: &r.MaxSurge, partition: &r.Partition,
			policy: func(p string) { r.PodUpdatePolicy = kruise.PodUpdatePolicyType(p) },
		}
	}
	return f
}

// workload is an object with what is known of its kind.
type workload struct {
	kind
	client.Object
}

func (w workload) editableFields() fields { return w.fields(w.Object) }

func (w workload) copyWorkload() workload {
	return workload{w.kind, w.DeepCopyObject().(client.Object)}
}

// isSameObject reports whether two are the same object of a cluster.
func (w workload) isSameObject(other workload) bool {
	return w.GroupKind() == other.GroupKind() && w.GetName() == other.GetName() && w.GetNamespace() == other.GetNamespace()
}

// copyPointee copies what another one has at a pointer.
func copyPointee(to, from any) { reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem()) }
