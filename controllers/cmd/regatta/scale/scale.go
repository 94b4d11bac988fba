// SPDX-License-Identifier: Apache-2.0

// Package scale has the commands that change how many pods a workload has, which of them go first, and how
// many stay at the old revision.
package scale

import (
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// noCondition is the value of --current-replicas without a condition, as in kubectl.
const noCondition = -1

// scaling has the flags of the command.
type scaling struct {
	*edit.Options
	replicas, current int64
	version           string
}

// NewCommand makes the command that sets the replicas of workloads.
func NewCommand() *cobra.Command {
	s := &scaling{Options: edit.NewOptions(edit.SelectKinds(func(k edit.Kind) bool { return k.Scalable }))}
	cmd := &cobra.Command{
		Use:   "scale KIND/NAME... --replicas N",
		Short: "Set how many pods a workload has",
		Long: `Scale sets spec.replicas through the subresource scale. With --current-replicas or
--resource-version it scales only an object that is in that state, and ends with 1 otherwise.
A subset of a UnitedDeployment is refused: scale the UnitedDeployment.

` + edit.DescribeKinds(s.Allowed),
		Example: `  regatta scale clone/web --replicas 10
  regatta scale asts/db --current-replicas 3 --replicas 5`,
		RunE: s.runScale,
	}
	s.AddFlags(cmd)
	edit.AddCompletion(cmd, s.Cluster, s.Allowed, true)
	f := cmd.Flags()
	f.Int64Var(&s.replicas, "replicas", 0, "how many pods there should be")
	f.Int64Var(&s.current, "current-replicas", noCondition, "scale only an object whose spec.replicas is this number; -1 for any")
	f.StringVar(&s.version, "resource-version", "", "scale only an object of this resource version")
	_ = cmd.MarkFlagRequired("replicas") // the flag exists
	return cmd
}

func (s *scaling) runScale(cmd *cobra.Command, args []string) error {
	switch {
	case s.replicas < 0 || s.replicas > math.MaxInt32:
		return exit.UsageErrorf("--replicas is %d; want a number from 0 to %d", s.replicas, math.MaxInt32)
	case s.current < noCondition:
		return exit.UsageErrorf("--current-replicas is %d; want 0 or more, or -1 for no condition", s.current)
	}
	references, err := s.ParseReferences(args)
	if err != nil {
		return exit.UsageError(err)
	}
	if s.version != "" && (len(references) > 1 || references[0].Name == "") {
		return exit.UsageErrorf("--resource-version is that of one object; name one object")
	}
	return s.ForEach(cmd.Context(), references, func(object *edit.Object) error {
		if err := object.RefuseControlled(); err != nil {
			return err
		}
		changed, err := s.ApplyScale(cmd.Context(), object, int32(s.replicas), func(live *unstructured.Unstructured) error {
			return s.checkConditions(object.Kind, live)
		})
		switch {
		case errors.Is(err, edit.ErrUnchanged):
			return s.PrintObject(cmd.OutOrStdout(), object.Live, "unchanged")
		case err != nil:
			return err
		}
		return s.PrintObject(cmd.OutOrStdout(), changed, "scaled")
	})
}

// checkConditions refuses an object that is not in the state that the flags ask for.
func (s *scaling) checkConditions(kind edit.Kind, live *unstructured.Unstructured) error {
	if version := live.GetResourceVersion(); s.version != "" && version != s.version {
		return exit.RefusalErrorf("metadata.resourceVersion is %s; --resource-version is %s", version, s.version)
	}
	if s.current == noCondition {
		return nil
	}
	replicas, found, err := readReplicas(kind, live)
	switch {
	case err != nil:
		return err
	case !found:
		return exit.RefusalErrorf("spec.replicas is not set; --current-replicas is %d", s.current)
	case replicas != s.current:
		return exit.RefusalErrorf("spec.replicas is %d; --current-replicas is %d", replicas, s.current)
	}
	return nil
}

// readReplicas returns spec.replicas, or its default. A UnitedDeployment has none: its subsets may set their
// own replicas.
func readReplicas(kind edit.Kind, object *unstructured.Unstructured) (int64, bool, error) {
	replicas, found, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if err != nil {
		return 0, false, fmt.Errorf("reading spec.replicas: %w", err)
	}
	if !found && !isUnitedDeployment(kind) {
		return 1, true, nil
	}
	return replicas, found, nil
}

// isUnitedDeployment is true for the kind whose objects have subsets.
func isUnitedDeployment(kind edit.Kind) bool { return kind.Kind == "UnitedDeployment" }
