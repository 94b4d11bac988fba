// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
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
	"github.com/regatta-sh/regatta/controllers/webhook/daemonset"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/statefulset"
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

// rolling has what sets the limits of a rolling update; what a kind does not have is nil.
type rolling struct {
	maxUnavailable, maxSurge, partition setter
	policy                              func(string)
}

// setter sets a limit of a rolling update, and returns an error if its field cannot have the value.
type setter func(intstr.IntOrString) error

// setterOf sets a field that is a number or a percentage.
func setterOf(field **intstr.IntOrString) setter {
	return func(v intstr.IntOrString) error {
		*field = &v
		return nil
	}
}

// numberSetter sets a field that is a number.
func numberSetter(field **int32) setter {
	return func(v intstr.IntOrString) error {
		if v.Type != intstr.Int {
			return fmt.Errorf("it is %q, want a number of pods", v.StrVal)
		}
		*field = &v.IntVal
		return nil
	}
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
	case kruise.Kind("StatefulSet"): // storage classes are read for updates only
		return kind{
			Workload: w, webhooks: statefulset.New(nil, podtemplate.Settings{}, false, statefulset.Gates{}),
			older:  func() conversion.Convertible { return &v1alpha1.StatefulSet{} },
			fields: func(o client.Object) fields { return fieldsOfStatefulSet(o.(*kruise.StatefulSet)) },
		}, true
	case kruise.Kind("DaemonSet"):
		return kind{
			Workload: w, webhooks: daemonset.New(podtemplate.Settings{}),
			older:  func() conversion.Convertible { return &v1alpha1.DaemonSet{} },
			fields: func(o client.Object) fields { return fieldsOfDaemonSet(o.(*kruise.DaemonSet)) },
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
			maxUnavailable: setterOf(&r.MaxUnavailable), maxSurge: setterOf(&r.MaxSurge), partition: setterOf(&r.Partition),
			policy: func(p string) { r.PodUpdatePolicy = kruise.PodUpdatePolicyType(p) },
		}
	}
	return f
}

func fieldsOfStatefulSet(set *kruise.StatefulSet) fields {
	u := &set.Spec.UpdateStrategy
	f := fields{
		replicas: &set.Spec.Replicas, template: &set.Spec.Template, strategy: u, status: &set.Status, current: &set.Status.CurrentRevision,
	}
	if u.RollingUpdate != nil {
		f.paused = &u.RollingUpdate.Paused
	}
	if u.Type == appsv1.OnDeleteStatefulSetStrategyType {
		return f
	}
	f.rolling = func() rolling {
		if u.RollingUpdate == nil {
			u.RollingUpdate = &kruise.RollingUpdateStatefulSetStrategy{}
		}
		r := u.RollingUpdate
		return rolling{
			maxUnavailable: setterOf(&r.MaxUnavailable), partition: numberSetter(&r.Partition),
			policy: func(p string) { r.PodUpdatePolicy = kruise.PodUpdatePolicyType(p) },
		}
	}
	return f
}

func fieldsOfDaemonSet(set *kruise.DaemonSet) fields {
	u := &set.Spec.UpdateStrategy
	f := fields{template: &set.Spec.Template, strategy: u, status: &set.Status, current: &set.Status.CurrentRevision}
	if u.RollingUpdate != nil {
		f.paused = u.RollingUpdate.Paused
	}
	if u.Type == appsv1.OnDeleteDaemonSetStrategyType {
		return f
	}
	f.rolling = func() rolling {
		if u.RollingUpdate == nil {
			u.RollingUpdate = &kruise.RollingUpdateDaemonSet{}
		}
		r := u.RollingUpdate
		return rolling{maxUnavailable: setterOf(&r.MaxUnavailable), maxSurge: setterOf(&r.MaxSurge), partition: setterOf(&r.Partition)}
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
