// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/manifest"
	"github.com/regatta-sh/regatta/controllers/features"
	"github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/kinds/adapters"
	"github.com/regatta-sh/regatta/controllers/simulation"
)

// Source says where a fleet comes from, and what changes in it.
type Source struct {
	Workload string   // a file with a workload as it is applied
	Fleet    []string // files with the objects of a cluster
	// Applied is a workload as the API server has admitted it, in place of the file of Workload. Objects are the
	// objects of a cluster, in place of the files of Fleet.
	Applied *unstructured.Unstructured
	Objects []*unstructured.Unstructured
	// Name and Namespace are those of a generated workload. They select the workload too if a fleet has
	// several.
	Name, Namespace string
	// Only is the workload of a fleet that is simulated; nil if Name says which.
	Only *Selected
	// What is generated if there is no fleet.
	Zones  []string // ZONE=PODS
	Labels []string // KEY=VALUE:PODS
	// What is changed of the workload; nothing if empty.
	Replicas                            int // below 0: as it is
	MaxUnavailable, MaxSurge, Partition string
	Policy                              string
	Update                              []string // CONTAINER=IMAGE
	Seed                                int64
	// Budget describes a PodUnavailableBudget to generate: 25%, max=2 or min=3.
	Budget string
	// Gates are the feature gates that a fleet is generated with.
	Gates features.Gates
	// Progress reports on a generated fleet.
	Progress *Progress
}

// Misuse is an error of a flag.
type Misuse struct{ error }

// Unwrap gives the cause.
func (m Misuse) Unwrap() error { return m.error }

// NoPodsError says that a fleet has no pods of a workload.
type NoPodsError struct{ Kind, Namespace, Name string }

func (e NoPodsError) Error() string {
	return fmt.Sprintf("the fleet has no pods of %s %s/%s", e.Kind, e.Namespace, e.Name)
}

func newMisuse(format string, args ...any) error { return Misuse{fmt.Errorf(format, args...)} }

// LoadFleet reads or generates the fleet as it is when a rollout begins at a time. It returns notes
// that a reader of the outcome needs.
func (s Source) LoadFleet(ctx context.Context, builtin fs.FS, at time.Time) (simulation.ClusterState, []string, error) {
	none := simulation.ClusterState{}
	d, err := s.readDump()
	if err != nil {
		return none, nil, err
	}
	w, err := s.findWorkload(&d)
	if err != nil {
		return none, nil, err
	}
	if err := s.applyFlags(w); err != nil {
		return none, nil, err
	}
	budgets, err := s.collectBudgets(ctx, w, &d)
	if err != nil {
		return none, nil, err
	}
	if s.hasFleet() {
		f, notes, err := s.fleetFromDump(w, d)
		f.Budgets, f.Namespace = budgets, d.namespaceOf(w)
		return f, append(notes, addOtherPods(&f, w, &d)...), err
	}
	f, err := s.generateFleet(ctx, builtin, w, at)
	f.Budgets, f.Namespace = budgets, d.namespaceOf(w)
	return f, nil, err
}

// hasFleet is true if the fleet is read and not generated.
func (s Source) hasFleet() bool { return len(s.Fleet)+len(s.Objects) > 0 }

// findWorkload returns the workload to simulate.
func (s Source) findWorkload(d *dump) (workload, error) {
	if s.Applied != nil {
		applied := dump{decode: decodeWorkload}
		if err := applied.addObject(s.Applied); err != nil {
			return workload{}, err
		}
		if len(applied.simulated) != 1 {
			return workload{}, newMisuse("a %s is not simulated; want a %s", s.Applied.GetKind(), kinds.List("or"))
		}
		return applied.simulated[0], nil
	}
	if s.Workload == "" && !s.hasFleet() {
		return s.newSampleCloneSet()
	}
	if s.Workload == "" {
		found := slices.DeleteFunc(slices.Clone(d.simulated), func(w workload) bool { return !s.isSelected(w) })
		if len(found) != 1 {
			return workload{}, newMisuse("--fleet has %d %s: name one with --workload or --name", len(found), kinds.JoinPlurals("and"))
		}
		return found[0], nil
	}
	applied := dump{decode: admitWorkload}
	if err := applied.readObjects(s.Workload); err != nil {
		return workload{}, err
	}
	if len(applied.simulated) != 1 {
		return workload{}, newMisuse("--workload %s has %d %s, want one", s.Workload, len(applied.simulated), kinds.JoinPlurals("and"))
	}
	w := applied.simulated[0]
	d.applied, d.namespaces = applied.budgets, append(applied.namespaces, d.namespaces...)
	for _, there := range d.simulated { // the workload as it is in the cluster
		if there.isSameObject(w) {
			w.SetUID(there.GetUID())
			w.SetGeneration(there.GetGeneration() + 1)
			copyPointee(w.editableFields().status, there.editableFields().status)
		}
	}
	return w, nil
}

// isSelected reports whether a workload of a fleet is the one that Name and Only name, if they name one.
func (s Source) isSelected(w workload) bool {
	if s.Only != nil {
		return s.Only.GroupKind == w.GroupKind() && s.Only.Namespace == w.GetNamespace() && s.Only.Name == w.GetName()
	}
	return s.Name == "" || w.GetName() == s.Name
}

// Selected is one workload of a fleet.
type Selected struct {
	schema.GroupKind
	Namespace, Name string
}

// ReadObjects returns the objects of the files of Fleet, and those of Objects.
func (s Source) ReadObjects() ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, path := range s.Fleet {
		err := manifest.ForEachObject(path, func(o *unstructured.Unstructured) error {
			out = append(out, o)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return append(out, s.Objects...), nil
}

// ListWorkloads returns the workloads of the fleet that can be simulated, in its order.
func (s Source) ListWorkloads() ([]Selected, error) {
	d, err := s.readDump()
	if err != nil {
		return nil, err
	}
	var out []Selected
	for _, w := range d.simulated {
		if s.isSelected(w) {
			out = append(out, Selected{w.GroupKind(), w.GetNamespace(), w.GetName()})
		}
	}
	return out, nil
}

// readDump reads the objects of the fleet.
func (s Source) readDump() (dump, error) {
	d := dump{decode: decodeWorkload}
	for _, path := range s.Fleet {
		if err := d.readObjects(path); err != nil {
			return d, err
		}
	}
	for _, o := range s.Objects {
		if err := d.addObject(o); err != nil {
			return d, err
		}
	}
	return d, nil
}

// applyFlags changes the workload as the flags say.
func (s Source) applyFlags(w workload) error {
	zones, err := parseCounts("--zones", s.Zones, "=")
	if err != nil {
		return err
	}
	f := w.editableFields()
	switch {
	case f.replicas == nil:
		if s.Replicas >= 0 {
			return newMisuse("--replicas says nothing of a %s", w.Kind)
		}
	case s.Replicas >= 0:
		*f.replicas = ptr.To(int32(s.Replicas))
	case len(zones) > 0:
		*f.replicas = ptr.To(int32(0))
		for _, z := range zones {
			**f.replicas += int32(z.pods)
		}
	}
	if s.MaxUnavailable+s.MaxSurge+s.Partition+s.Policy == "" {
		return nil
	}
	if f.rolling == nil {
		return newMisuse("the strategy of %s is OnDelete: --max-unavailable, --max-surge, --partition and --pod-update-policy say nothing of it", w.GetName())
	}
	r := f.rolling()
	for _, a := range []struct {
		flag, value string
		set         setter
	}{{"--max-unavailable", s.MaxUnavailable, r.maxUnavailable}, {"--max-surge", s.MaxSurge, r.maxSurge}, {"--partition", s.Partition, r.partition}} {
		if a.value == "" {
			continue
		}
		if a.set == nil {
			return newMisuse("%s says nothing of a %s", a.flag, w.Kind)
		}
		if err := a.set(intstr.Parse(a.value)); err != nil {
			return newMisuse("%s of a %s: %w", a.flag, w.Kind, err)
		}
	}
	if s.Policy != "" {
		if r.policy == nil {
			return newMisuse("--pod-update-policy says nothing of a %s", w.Kind)
		}
		r.policy(s.Policy)
	}
	if err := w.validateWorkload(); err != nil {
		return Misuse{err}
	}
	return nil
}

// updateImages changes the images that --update names.
func (s Source) updateImages(w workload) error {
	containers := w.editableFields().template.Spec.Containers
	for _, u := range s.Update {
		name, image, ok := strings.Cut(u, "=")
		i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
		if !ok || image == "" || i < 0 {
			return newMisuse("--update has %q, want CONTAINER=IMAGE of a container of %s", u, w.GetName())
		}
		containers[i].Image = image
	}
	return nil
}

// fleetFromDump takes the objects of the workload from a dump.
func (s Source) fleetFromDump(w workload, d dump) (simulation.ClusterState, []string, error) {
	f := simulation.ClusterState{Workload: w.Object, Kind: adapters.NewFactory(w.Object), Nodes: d.nodes}
	if len(s.Zones)+len(s.Labels) > 0 {
		return f, nil, newMisuse("--zones and --label make up a fleet, and --fleet has one")
	}
	hash := map[string]int{}
	for _, p := range d.pods {
		ref := metav1.GetControllerOf(p)
		if ref == nil || ref.Name != w.GetName() || p.Namespace != w.GetNamespace() {
			continue
		}
		if owner, ok := kinds.FindByOwner(*ref); !ok || owner.GroupKind() != w.GroupKind() {
			continue
		}
		if w.GetUID() == "" {
			w.SetUID(ref.UID)
		}
		if ref.UID == w.GetUID() {
			f.Pods = append(f.Pods, p)
			hash[p.Labels[appsv1.ControllerRevisionHashLabelKey]]++
		}
	}
	if len(f.Pods) == 0 {
		return f, nil, NoPodsError{w.Kind, w.GetNamespace(), w.GetName()}
	}
	for _, r := range d.revisions {
		if metav1.IsControlledBy(r, w) {
			f.Revisions = append(f.Revisions, r)
		}
	}
	for _, c := range d.claims {
		if metav1.IsControlledBy(c, w) {
			f.Claims = append(f.Claims, c)
		}
	}
	if current := w.editableFields().current; current != nil && *current == "" { // as most pods are
		names := slices.Sorted(maps.Keys(hash))
		*current = slices.MaxFunc(names, func(a, b string) int { return hash[a] - hash[b] })
	}
	var notes []string
	if len(f.Revisions) == 0 {
		notes = append(notes, "the fleet has no ControllerRevisions of "+w.GetName()+", so nothing is known of what its pods were made from, and none can be updated in place: dump pods,nodes,controllerrevisions")
	}
	if absent := f.AbsentNodes(); len(f.Nodes) == 0 {
		notes = append(notes, "the fleet has no nodes, so no pod is in any zone, and each node counts as ready and as new: dump pods,nodes,controllerrevisions")
	} else if len(absent) > 0 {
		notes = append(notes, fmt.Sprintf("the fleet does not have %d nodes that its pods are on, such as %s, so these count as ready and as new: dump pods,nodes,controllerrevisions", len(absent), absent[0]))
	}
	return f, notes, s.updateImages(w)
}
