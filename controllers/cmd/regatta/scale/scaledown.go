// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// canChoosePods is true for kinds whose users can choose the pods that are deleted when it is scaled down.
func canChoosePods(k edit.Kind) bool { return k.PodsToDelete != nil || k.ReserveOrdinals != nil }

// scaleDown has the flags of the command.
type scaleDown struct {
	*edit.Options
	pods []string
}

// NewScaleDownCommand makes the command that scales a workload down by given pods.
func NewScaleDownCommand() *cobra.Command {
	s := &scaleDown{Options: edit.NewOptions(edit.SelectKinds(canChoosePods))}
	cmd := &cobra.Command{
		Use:   "scaledown " + edit.UsageArguments(s.Allowed) + " --pods POD,...",
		Short: "Scale a workload down by given pods",
		Long: `Scaledown deletes given pods of a workload and lowers spec.replicas by their number, in one write,
so that they are not replaced. It writes the names of the pods to spec.scaleStrategy.podsToDelete of
a CloneSet, or their ordinals to spec.reserveOrdinals of an Advanced StatefulSet.

Pods that are being deleted already do not lower spec.replicas again, and the command names them.
It writes nothing if one of the pods does not exist or is not of the workload.`,
		Example: `  regatta scaledown clone/web --pods web-4xkz2,web-9qlmn
  regatta scaledown asts/db --pods db-1 --dry-run=server`,
		RunE: s.runScaleDown,
	}
	s.AddFlags(cmd)
	edit.AddCompletion(cmd, s.Cluster, s.Allowed, false)
	cmd.Flags().StringSliceVar(&s.pods, "pods", nil, "the pods to delete")
	_ = cmd.MarkFlagRequired("pods") // the flag exists
	for _, name := range []string{"all", "selector"} {
		_ = cmd.Flags().MarkHidden(name) // of no use here, since the pods are those of one object
	}
	return cmd
}

func (s *scaleDown) runScaleDown(cmd *cobra.Command, args []string) error {
	references, err := s.parseReference(args)
	if err != nil {
		return err
	}
	if s.pods, err = parsePods(s.pods); err != nil {
		return err
	}
	if err := s.ValidateFlags(); err != nil {
		return err
	}
	objects, err := s.OpenClient()
	if err != nil {
		return err
	}
	return s.ForEach(cmd.Context(), references, func(object *edit.Object) error {
		if err := object.RefuseControlled(); err != nil {
			return err
		}
		pods := objects.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(object.Live.GetNamespace())
		return s.scaleDownObject(cmd, object, &podReader{pods})
	})
}

// parseReference reads the name of the object.
func (s *scaleDown) parseReference(args []string) ([]edit.Reference, error) {
	references, err := s.ParseReferences(args)
	if err != nil {
		all := *s.Options
		all.Allowed = edit.SelectKinds(func(edit.Kind) bool { return true })
		if others, errOthers := all.ParseReferences(args); errOthers == nil {
			described := strings.TrimSpace(others[0].Kind.Describe(others[0].Name))
			return nil, exit.UsageErrorf("%s cannot be scaled down by given pods, since a pod of it that is deleted is replaced; want %s",
				described, edit.JoinArguments(s.Allowed, ", ", " or "))
		}
		return nil, exit.UsageError(err)
	}
	if len(references) > 1 || references[0].Name == "" {
		return nil, exit.UsageErrorf("--pods are those of one object; name one object")
	}
	return references, nil
}

// parsePods checks the names of --pods, and leaves each in once.
func parsePods(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
			return nil, exit.UsageErrorf("--pods has %q, which is not the name of a pod: %s", name, wrong[0])
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return nil, exit.UsageErrorf("--pods is empty; name the pods to delete")
	}
	return out, nil
}

// chosenPods are the pods of --pods, in their order.
type chosenPods struct {
	// counted are those that lower the replicas.
	counted []string
	// remarks are about the others.
	remarks []string
}

func (c *chosenPods) addRemark(format string, args ...any) {
	c.remarks = append(c.remarks, fmt.Sprintf(format, args...))
}

// scaleDownObject scales an object down and prints what was done.
func (s *scaleDown) scaleDownObject(cmd *cobra.Command, object *edit.Object, reader *podReader) error {
	var chosen chosenPods
	changed, err := s.ApplyChange(cmd.Context(), object, func(u *unstructured.Unstructured) (err error) {
		chosen, err = s.changeObject(cmd.Context(), object.Kind, u, reader)
		return err
	})
	if err != nil && !errors.Is(err, edit.ErrUnchanged) {
		return err
	}
	for _, remark := range chosen.remarks {
		fmt.Fprintln(cmd.ErrOrStderr(), remark)
	}
	if err != nil {
		return s.PrintObject(cmd.OutOrStdout(), object.Live, "unchanged")
	}
	are := "are"
	if len(chosen.counted) == 1 {
		are = "is"
	}
	done := fmt.Sprintf("scaled down by %d: %s %s deleted", len(chosen.counted), strings.Join(chosen.counted, ", "), are)
	return s.PrintObject(cmd.OutOrStdout(), changed, done)
}

// changeObject writes which pods go, and lowers the replicas.
func (s *scaleDown) changeObject(
	ctx context.Context, kind edit.Kind, object *unstructured.Unstructured, reader *podReader,
) (chosen chosenPods, err error) {
	if kind.PodsToDelete != nil {
		chosen, err = s.addPodsToDelete(ctx, kind, object, reader)
	} else {
		chosen, err = s.addReservedOrdinals(kind, object)
	}
	if err != nil {
		return chosenPods{}, err
	}
	if len(chosen.counted) == 0 {
		return chosen, edit.ErrUnchanged
	}
	replicas, _, err := readReplicas(kind, object)
	if err != nil {
		return chosenPods{}, err
	}
	left := replicas - int64(len(chosen.counted))
	if left < 0 {
		return chosenPods{}, exit.RefusalErrorf("spec.replicas is %d and cannot be lowered by %d pods", replicas, len(chosen.counted))
	}
	if err := unstructured.SetNestedField(object.Object, left, "spec", "replicas"); err != nil {
		return chosenPods{}, fmt.Errorf("writing spec.replicas: %w", err)
	}
	return chosen, nil
}
