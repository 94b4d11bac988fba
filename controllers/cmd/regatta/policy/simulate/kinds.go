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

// kind adds to the table of kinds how a kind of workloads is read and admitted, and what the flags
// change.
type kind struct {
	kinds.Workload
	// older makes an empty object of v1alpha1.
	older    func() conversion.Convertible
	webhooks webhooks.Webhooks
	fields   func(client.Object) fields
}

// fields are the fields of an object that flags change, and that hold its state in a fleet.
type fields struct {
	replicas **int32
	template *corev1.PodTemplateSpec
	// strategy and status point to the whole of both.
	strategy, status any
	// current is the current revision in the status; nil if it names none.
	current *string
	// rolling makes a rolling update where there is none yet; nil if the strategy is OnDelete.
	rolling func() rolling
	paused  *bool
}

// rolling points to the fields that limit a rolling update; a field that a kind does not have is nil.
type rolling struct {
	maxUnavailable, maxSurge, partition **intstr.IntOrString
	policy                              func(string)
}

// kindOf finds a kind; false if it cannot be simulated.
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

// workload is an object with its kind.
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

// copyPointee copies the value that one pointer points to into that of another.
func copyPointee(to, from any) { reflect.ValueOf(to).Elem().Set(reflect.ValueOf(from).Elem()) }
