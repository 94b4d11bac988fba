// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/workload/budget"
)

// undoOptions are the flags of undo and abort.
type undoOptions struct {
	*edit.Options
	toRevision string
}

func undoCommand(preview edit.Preview) *cobra.Command {
	o := &undoOptions{Options: edit.NewOptions(ListKinds())}
	cmd := &cobra.Command{
		Use:   "undo " + edit.UsageArguments(o.Allowed) + " [--to-revision N]",
		Short: "Go back to an earlier revision",
		Long: `Undo writes the template of an earlier revision into a workload: of the newest one that
differs from the template now, or of --to-revision. For a SidecarSet it writes the fields
that the revision has. The controller then updates the pods as for any other change.
regatta rollout history lists the revisions.

Replicas, the strategy and volume claim templates stay as they are. If a partition or a
pause keeps pods from changing, undo says so and names the command that lets them.`,
		Example: `  regatta rollout undo clone/web
  regatta rollout undo clone/web --to-revision 3 --dry-run=server -o yaml
  regatta rollout undo sidecarset/log-agent`,
		Args: func(_ *cobra.Command, args []string) error {
			_, err := o.ParseReferences(args)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.rollBackEach(cmd, args, o.chooseUndo, func(*recordedRevision) string { return "rolled back" })
		},
	}
	o.addFlags(cmd, preview)
	cmd.Flags().StringVar(&o.toRevision, "to-revision", "0", "number or name of the revision to go back to; 0 is the one before")
	return cmd
}

func abortCommand(preview edit.Preview) *cobra.Command {
	o := &undoOptions{Options: edit.NewOptions(ListKinds())}
	cmd := &cobra.Command{
		Use:   "abort " + edit.UsageArguments(o.Allowed),
		Short: "Go back to the revision before a rollout that is not complete",
		Long: `Abort writes the template of the last revision that all pods had (status.currentRevision)
into a workload whose rollout is not complete, as regatta rollout undo does. For a
Deployment, a SidecarSet and a DaemonSet of Kubernetes, whose status has no such revision,
it goes back to the revision before the newest. Their rollout counts as complete when no pod
has an older revision than the template, whether the pods are available or not.

If there is nothing to abort, or a rollout back is under way already, it changes nothing and
ends with 1.`,
		Example: `  regatta rollout abort clone/web
  regatta rollout status clone/web --timeout 10m || regatta rollout abort clone/web`,
		Args: func(_ *cobra.Command, args []string) error {
			_, err := o.ParseReferences(args)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.rollBackEach(cmd, args, chooseAbort, func(r *recordedRevision) string {
				return fmt.Sprintf("rolled back to revision %d", r.number)
			})
		},
	}
	o.addFlags(cmd, preview)
	return cmd
}

func (o *undoOptions) addFlags(cmd *cobra.Command, preview edit.Preview) {
	o.AddFlags(cmd)
	if preview != nil {
		o.AddPreviewFlag(cmd, preview)
	}
	o.AddManagerNamespaceFlag(cmd)
	edit.AddCompletion(cmd, o.Cluster, o.Allowed, true)
}

// chooser chooses the revision that a workload goes back to.
type chooser func(*workloadHistory) (*recordedRevision, error)

// rollBackEach rolls the objects of the command line back, each to the revision that a function chooses.
func (o *undoOptions) rollBackEach(cmd *cobra.Command, args []string, choose chooser, done func(*recordedRevision) string) error {
	references, err := o.ParseReferences(args)
	if err != nil {
		return exit.UsageError(err)
	}
	objects, err := o.OpenClient()
	if err != nil {
		return err
	}
	return o.ForEach(cmd.Context(), references, func(object *edit.Object) error {
		if err := object.RefuseControlled(); err != nil {
			return err
		}
		h, err := readHistory(cmd.Context(), objects, object.Kind, object.Live, o.ManagerNamespace())
		if err != nil {
			return err
		}
		r, err := choose(h)
		if err != nil {
			return err
		}
		return o.rollBack(cmd, object, r, done(r))
	})
}

// chooseUndo chooses the revision of --to-revision, or the one before the template of now.
func (o *undoOptions) chooseUndo(h *workloadHistory) (*recordedRevision, error) {
	if o.toRevision != "" && o.toRevision != "0" {
		return h.findRevision(o.toRevision)
	}
	return h.chooseBefore()
}

// chooseBefore chooses the revision before the template of now.
func (h *workloadHistory) chooseBefore() (*recordedRevision, error) {
	if r := h.findBefore(); r != nil {
		return r, nil
	}
	return nil, exit.RefusalError(fmt.Errorf("%s has no revision to go back to; its revisions are %s",
		h.kind.Describe(h.object.GetName()), joinRevisions(h.all)))
}

// chooseAbort chooses the last revision that all pods had.
func chooseAbort(h *workloadHistory) (*recordedRevision, error) {
	name := h.kind.Describe(h.object.GetName())
	current, _ := statusRevisions(h.kind, h.object)
	if current == "" {
		return h.chooseBeforeNewest()
	}
	isSet := h.kind.GroupKind() == advancedSet || h.kind.GroupKind() == nativeSet
	if field := (workload{kind: h.kind}).onDelete(h.object); field != nil && isSet {
		return nil, exit.RefusalError(fmt.Errorf("%s of %s is OnDelete, and its controller does not keep status.currentRevision then; "+
			"name a revision with regatta rollout undo --to-revision", field, name))
	}
	r := h.findByName(current)
	switch {
	case r == nil:
		return nil, exit.RefusalError(fmt.Errorf("%s has no revision %s, which status.currentRevision names; its revisions are %s",
			name, edit.EscapeText(current), joinRevisions(h.all)))
	case h.markPresent()[r]:
		return nil, exit.RefusalError(fmt.Errorf("there is nothing to abort: %s has the template of revision %s, "+
			"the last one that all pods had; regatta rollout undo goes back to the one before", name, r))
	}
	return r, nil
}

// chooseBeforeNewest chooses the revision before the newest one, for a workload whose status does not name the last one
// that all pods had. It refuses while that may be the wrong way.
func (h *workloadHistory) chooseBeforeNewest() (*recordedRevision, error) {
	name := h.kind.Describe(h.object.GetName())
	v, err := readView(h.kind, h.object)
	if err != nil {
		return nil, err
	}
	if v.Observed && v.Pods <= v.Updated {
		return nil, exit.RefusalError(fmt.Errorf("there is nothing to abort: no pod of %s has an older revision than its template; "+
			"regatta rollout undo goes back to the revision before", name))
	}
	if err := h.refuseRolloutBack(); err != nil {
		return nil, err
	}
	if !v.Observed {
		return nil, exit.RefusalError(fmt.Errorf("the controller has not seen the newest change of %s yet, "+
			"so whether its rollout is complete is not known; try again", name))
	}
	return h.chooseBefore()
}

// refuseRolloutBack returns an error unless the template is that of the newest revision: a rollout back is under way
// then, and the revision before leads to what was aborted. The times of creation tell the newest revision. The numbers
// do not: controllers give an earlier revision a new number when a workload goes back to it.
func (h *workloadHistory) refuseRolloutBack() error {
	var present, other *recordedRevision
	name, isPresent := h.kind.Describe(h.object.GetName()), h.markPresent()
	for _, r := range h.all {
		last := &other
		if isPresent[r] {
			last = &present
		}
		if *last == nil || r.created.After((*last).created) {
			*last = r
		}
	}
	const advice = "to go to another revision, name it with regatta rollout undo --to-revision"
	switch {
	case present == nil:
		return exit.RefusalError(fmt.Errorf("no revision has the template of %s: its controller has not recorded it yet; try again; %s",
			name, advice))
	case other == nil || other.created.Before(present.created):
		return nil
	case other.created.Equal(present.created):
		return exit.RefusalError(fmt.Errorf("revisions %s and %s of %s were created at the same time, "+
			"so which of them to abort is not known; %s", present, other, name, advice))
	}
	return exit.RefusalError(fmt.Errorf("a rollout back is under way already: %s has the template of revision %s, "+
		"which is older than revision %s; %s", name, present, other, advice))
}

// rollBack writes the fields of a revision into an object, and says what keeps pods from following.
func (o *undoOptions) rollBack(cmd *cobra.Command, object *edit.Object, r *recordedRevision, done string) error {
	if r.isIn(object.Kind, object.Live) {
		done = fmt.Sprintf("skipped rollback (current template already matches revision %d)", r.number)
		return o.PrintObject(cmd.OutOrStdout(), object.Live, done)
	}
	read, changed := readLiveFields(object.Live, r), object.Live
	err := o.Write(cmd.Context(), cmd.OutOrStdout(), object, done, func(live *unstructured.Unstructured) error {
		if !equality.Semantic.DeepEqual(read, readLiveFields(live, r)) {
			return exit.RefusalError(errors.New("another client has changed the template meanwhile; " +
				"look at regatta rollout history and try again"))
		}
		if object.Kind.GroupKind() == deployment {
			copyChangeCause(r.object, live)
		}
		changed = live
		return r.setFields(object.Kind, live)
	})
	if err == nil {
		printWarnings(cmd.ErrOrStderr(), object, append(whyPodsStay(object, changed), whyClaimsStay(r, changed)...))
	}
	return err
}

// readLiveFields reads the fields of a workload that a revision has.
func readLiveFields(live *unstructured.Unstructured, r *recordedRevision) []any {
	var out []any
	for _, f := range r.fields {
		value, _, _ := unstructured.NestedFieldNoCopy(live.Object, f.path...)
		out = append(out, runtime.DeepCopyJSONValue(value))
	}
	return out
}

// copyChangeCause gives a Deployment the annotation of a ReplicaSet: the controller writes that of the Deployment into
// the ReplicaSet of its template.
func copyChangeCause(from, to *unstructured.Unstructured) {
	annotations := to.GetAnnotations()
	if cause, ok := from.GetAnnotations()[changeCauseKey]; ok {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[changeCauseKey] = cause
	} else {
		delete(annotations, changeCauseKey)
	}
	to.SetAnnotations(annotations)
}

// printWarnings prints what a user should know beside the output. The change is made, whether a warning can be printed or
// not.
func printWarnings(out io.Writer, object *edit.Object, warnings []string) {
	for _, w := range warnings {
		fmt.Fprintf(out, "warning: %s: %s\n", object, edit.EscapeText(w))
	}
}

// whyClaimsStay tells that a revision has other volume claim templates than the workload.
func whyClaimsStay(r *recordedRevision, live *unstructured.Unstructured) []string {
	recorded, ok := readClaimTemplates(r)
	if !ok {
		return nil
	}
	var spec struct {
		Claims []corev1.PersistentVolumeClaim `json:"claims"`
	}
	claims, _, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "volumeClaimTemplates")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"claims": claims}, &spec); err != nil {
		return nil
	}
	same := len(recorded) == len(spec.Claims)
	for i := 0; same && i < len(recorded); i++ {
		same = recorded[i].Name == spec.Claims[i].Name && equality.Semantic.DeepEqual(recorded[i].Spec, spec.Claims[i].Spec)
	}
	if same {
		return nil
	}
	return []string{fmt.Sprintf("spec.volumeClaimTemplates differs from that of revision %d and is not changed", r.number)}
}

// whyPodsStay tells which fields keep pods from following the template, and how to let them.
func whyPodsStay(object *edit.Object, live *unstructured.Unstructured) []string {
	w, err := findWorkload(object.Kind, live)
	if err != nil {
		return nil
	}
	var out []string
	if paused, err := w.isPaused(live); err == nil && paused {
		if len(w.at) > 0 {
			out = append(out, fmt.Sprintf("%s is true: pods change once it is false", w.fieldPath(w.kind.Paused...)))
		} else {
			out = append(out, fmt.Sprintf("it is paused: pods change after `regatta rollout resume %s`", describeReference(object)))
		}
	}
	if field := w.onDelete(live); field != nil {
		out = append(out, fmt.Sprintf("%s is OnDelete: a pod changes when a client deletes it", field))
	}
	return append(out, whyPartitionKeeps(object, live)...)
}

// whyPartitionKeeps tells how many pods the partition keeps.
func whyPartitionKeeps(object *edit.Object, live *unstructured.Unstructured) []string {
	view, err := readView(object.Kind, live)
	if err != nil {
		return nil
	}
	kept := view.Wanted - view.Target
	if object.Kind.GroupKind() == cloneSet { // the target is in the status, which may be of an older spec
		kept = keptOfCloneSet(object.Kind, live, view.Wanted)
	}
	if kept <= 0 {
		return nil
	}
	which := fmt.Sprintf("up to %d of %d pods", kept, view.Wanted)
	if object.Kind.Partition == nil {
		return []string{fmt.Sprintf("spec.updateStrategy.manualUpdate.partitions lets %s keep their revision; "+
			"`regatta partition %s%s` lets them follow", which, describeReference(object), subsetFlags(live))}
	}
	if isOrdered(object.Kind, live) {
		which = fmt.Sprintf("the %d pods with the lowest ordinals of %d", kept, view.Wanted)
	}
	value, _, _ := unstructured.NestedFieldNoCopy(live.Object, object.Kind.Partition...)
	return []string{fmt.Sprintf("%s is %v: %s keep their revision; `regatta partition %s 0` lets them follow",
		object.Kind.Partition, value, which, describeReference(object))}
}

// subsetFlags are the flags of regatta partition that lift the partitions of the subsets.
func subsetFlags(live *unstructured.Unstructured) string {
	partitions, _, _ := unstructured.NestedMap(live.Object, "spec", "updateStrategy", "manualUpdate", "partitions")
	out := ""
	for _, subset := range slices.Sorted(maps.Keys(partitions)) {
		if fmt.Sprint(partitions[subset]) != "0" {
			out += fmt.Sprintf(" --subset %s=0", subset)
		}
	}
	return out
}

func keptOfCloneSet(kind edit.Kind, live *unstructured.Unstructured, replicas int) int {
	value, _, _ := unstructured.NestedFieldNoCopy(live.Object, kind.Partition...)
	partition := intstr.Parse(fmt.Sprint(value))
	kept, err := budget.ResolvePartition(&partition, replicas)
	if value == nil || err != nil {
		return 0
	}
	return kept
}

// isOrdered is true if pods are updated by their ordinals.
func isOrdered(kind edit.Kind, live *unstructured.Unstructured) bool {
	_, unordered, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "updateStrategy", "rollingUpdate", "unorderedUpdate")
	return kind.GroupKind() == nativeSet || kind.GroupKind() == advancedSet && !unordered
}
