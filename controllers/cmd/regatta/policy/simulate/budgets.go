// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	policy "github.com/regatta-sh/regatta/controllers/api/policy/v1beta1"
	"github.com/regatta-sh/regatta/controllers/simulation"
	"github.com/regatta-sh/regatta/controllers/webhook/podunavailablebudget"
	"github.com/regatta-sh/regatta/controllers/workload/availability"
)

// readBudget reads a budget of either version, and refuses one that the schema refuses.
func readBudget(raw []byte, version string) (*policy.PodUnavailableBudget, error) {
	b := &policy.PodUnavailableBudget{}
	if version == policyv1alpha1.GroupVersion.Version {
		old := &policyv1alpha1.PodUnavailableBudget{}
		if err := json.Unmarshal(raw, old); err != nil {
			return nil, err
		}
		if err := old.ConvertTo(b); err != nil {
			return nil, err
		}
	} else if err := json.Unmarshal(raw, b); err != nil {
		return nil, err
	}
	if b.Namespace == "" {
		b.Namespace = metav1.NamespaceDefault
	}
	s := b.Spec
	switch {
	case b.Name == "":
		return nil, errors.New("metadata.name is missing")
	case (s.Selector == nil) == (s.TargetReference == nil):
		return nil, errors.New("it needs one of spec.selector and spec.targetRef")
	case (s.MaxUnavailable == nil) == (s.MinAvailable == nil):
		return nil, errors.New("it needs one of spec.maxUnavailable and spec.minAvailable")
	}
	for field, v := range map[string]*intstr.IntOrString{"spec.maxUnavailable": s.MaxUnavailable, "spec.minAvailable": s.MinAvailable} {
		if v != nil && !isAmount(*v) {
			return nil, fmt.Errorf("%s is %q, want a number from 0 on or a percentage from 0%% to 100%%", field, v.String())
		}
	}
	return b, nil
}

var percentage = regexp.MustCompile(`^0*(100|[0-9]{1,2})%$`)

func isAmount(v intstr.IntOrString) bool {
	return v.Type == intstr.Int && v.IntVal >= 0 || v.Type == intstr.String && percentage.MatchString(v.StrVal)
}

// admitBudget does what a cluster does with a budget that is applied beside others.
func admitBudget(ctx context.Context, b *policy.PodUnavailableBudget, others []*policy.PodUnavailableBudget) error {
	raw, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("encoding PodUnavailableBudget %s: %w", b.Name, err)
	}
	scheme := runtime.NewScheme()
	if err := policy.AddToScheme(scheme); err != nil {
		return fmt.Errorf("making a scheme: %w", err)
	}
	server := fake.NewClientBuilder().WithScheme(scheme)
	for _, o := range others {
		o = o.DeepCopy()
		o.ResourceVersion = ""
		server.WithObjects(o)
	}
	answer := podunavailablebudget.New(server.Build(), false).ValidatingHandler().Handle(ctx, admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Name: b.Name, Namespace: b.Namespace, Object: runtime.RawExtension{Raw: raw},
		Kind: metav1.GroupVersionKind{Group: policy.GroupVersion.Group, Version: policy.GroupVersion.Version, Kind: "PodUnavailableBudget"},
	}})
	if answer.Allowed {
		return nil
	}
	return errors.New(answer.Result.Message)
}

// collectBudgets returns the budgets of the workload's namespace: those of the dump, those that are
// applied with the workload, and the one that --budget describes.
func (s Source) collectBudgets(ctx context.Context, w workload, d *dump) ([]*policy.PodUnavailableBudget, error) {
	elsewhere := func(b *policy.PodUnavailableBudget) bool { return b.Namespace != w.GetNamespace() }
	out := slices.DeleteFunc(slices.Clone(d.budgets), elsewhere)
	for _, b := range slices.DeleteFunc(slices.Clone(d.applied), elsewhere) {
		i := slices.IndexFunc(out, func(o *policy.PodUnavailableBudget) bool { return o.Name == b.Name })
		if i >= 0 {
			b.UID, b.Status, b.Generation = out[i].UID, out[i].Status, out[i].Generation+1
			out = slices.Delete(out, i, i+1)
		}
		if err := admitBudget(ctx, b, out); err != nil {
			return nil, fmt.Errorf("reading %s: PodUnavailableBudget %s: %w", s.Workload, b.Name, err)
		}
		out = append(out, b)
	}
	if s.Budget == "" {
		return out, nil
	}
	if len(out) > 0 {
		return nil, newMisuse("--budget makes up a PodUnavailableBudget, and the files have %s", out[0].Name)
	}
	b, err := s.parseBudgetFlag(w)
	return []*policy.PodUnavailableBudget{b}, err
}

// parseBudgetFlag returns the budget that --budget describes, for the pods of a workload.
func (s Source) parseBudgetFlag(w workload) (*policy.PodUnavailableBudget, error) {
	kind, text, named := strings.Cut(s.Budget, "=")
	if !named {
		kind, text = "max", s.Budget
	}
	amount := ptr.To(intstr.Parse(text))
	if !isAmount(*amount) || kind != "max" && kind != "min" {
		return nil, newMisuse("--budget has %q, want how many pods may be unavailable, such as 25%% or max=2, or how many must be available, such as min=3", s.Budget)
	}
	b := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Name: w.GetName(), Namespace: w.GetNamespace(), Generation: 1}}
	b.Spec.TargetReference = &policy.TargetReference{APIVersion: w.GroupVersion().String(), Kind: w.Kind, Name: w.GetName()}
	if b.Spec.MaxUnavailable = amount; kind == "min" {
		b.Spec.MaxUnavailable, b.Spec.MinAvailable = nil, amount
	}
	return b, nil
}

// addOtherPods adds to a fleet the other pods that its budgets select, and notes which are missing.
func addOtherPods(f *simulation.ClusterState, w workload, d *dump) (notes []string) {
	type named struct {
		schema.GroupKind
		name string
	}
	owners := map[named]bool{}
	var workloads []client.Object
	for _, o := range d.others {
		if o.GetNamespace() == w.GetNamespace() {
			workloads = append(workloads, o)
			owners[named{o.GetObjectKind().GroupVersionKind().GroupKind(), o.GetName()}] = true
		}
	}
	for _, o := range d.simulated {
		if o.GetNamespace() == w.GetNamespace() && !o.isSameObject(w) {
			workloads = append(workloads, o.Object)
			owners[named{o.GroupKind(), o.GetName()}] = true
		}
	}
	for _, p := range d.pods {
		if p.Namespace != w.GetNamespace() || slices.Contains(f.Pods, p) || p.DeletionTimestamp != nil {
			continue
		}
		i := slices.IndexFunc(f.Budgets, func(b *policy.PodUnavailableBudget) bool { return simulation.BudgetCovers(b, p) })
		if i < 0 {
			continue
		}
		f.Others = append(f.Others, p)
		ref := metav1.GetControllerOf(p)
		if ref == nil {
			continue
		}
		owner := named{schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Name}
		if !owners[owner] {
			owners[owner] = true
			notes = append(notes, fmt.Sprintf("PodUnavailableBudget %s has pods of %s %s, whose number of replicas is unknown: dump deployments,replicasets,statefulsets too", f.Budgets[i].Name, ref.Kind, ref.Name))
		}
	}
	if len(f.Others) > 0 {
		f.Others = append(f.Others, workloads...)
	}
	return append(notes, noteMissingBudgets(f)...)
}

// noteMissingBudgets notes budgets that pods name and that are missing in the dump.
func noteMissingBudgets(f *simulation.ClusterState) (notes []string) {
	names := map[string]bool{"": true}
	for _, b := range f.Budgets {
		names[b.Name] = true
	}
	for _, p := range f.Pods {
		if name := availability.BudgetName(p); !names[name] {
			names[name] = true
			notes = append(notes, fmt.Sprintf("pods of %s belong to PodUnavailableBudget %s, which the fleet does not have, so it holds nothing back: dump podunavailablebudgets too", f.Workload.GetName(), name))
		}
	}
	return notes
}

// namespaceOf is the namespace of a workload, if the dump has it.
func (d *dump) namespaceOf(w workload) *corev1.Namespace {
	for _, ns := range d.namespaces {
		if ns.Name == w.GetNamespace() {
			return ns
		}
	}
	return nil
}
