// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// partitioning has the flags of the command.
type partitioning struct {
	*edit.Options
	subsets []string
}

// NewPartitionCommand makes the command that sets how many pods stay at the old revision. preview simulates a
// rollout for the flag --preview.
func NewPartitionCommand(preview edit.Preview) *cobra.Command {
	hasPartition := func(k edit.Kind) bool { return k.Partition != nil || isUnitedDeployment(k) }
	p := &partitioning{Options: edit.NewOptions(edit.SelectKinds(hasPartition))}
	cmd := &cobra.Command{
		Use:   "partition KIND/NAME... (VALUE | --subset NAME=VALUE...)",
		Short: "Set how many pods stay at the old revision",
		Long: `Partition sets how many pods of a rollout stay at the old revision. VALUE is a number, or a
percentage such as 30% for kinds that have one. A number greater than the number of pods lets no pod be
updated, and 0 lets all of them. For a StatefulSet of Kubernetes it is the lowest ordinal that is
updated.

A UnitedDeployment has a number for each subset, which --subset sets. An object is refused whose
strategy ignores the partition, such as OnDelete.

` + edit.DescribeKinds(p.Allowed),
		Example: `  regatta partition clone/web 80%
  regatta partition asts/db 2
  regatta partition ud/web --subset zone-a=0 --subset zone-b=5`,
		RunE: p.runPartition,
	}
	p.AddFlags(cmd)
	p.AddPreviewFlag(cmd, preview)
	edit.AddCompletion(cmd, p.Cluster, p.Allowed, true)
	cmd.Flags().StringSliceVar(&p.subsets, "subset", nil, "the partition of a subset of a UnitedDeployment, as NAME=VALUE")
	return cmd
}

func (p *partitioning) runPartition(cmd *cobra.Command, args []string) error {
	if len(p.subsets) > 0 {
		return p.runSubsets(cmd, args)
	}
	if len(args) < 2 {
		return exit.UsageErrorf("want KIND/NAME... and then the partition, or --subset for a UnitedDeployment")
	}
	last := len(args) - 1
	value, err := parsePartition(args[last])
	if err != nil {
		return err
	}
	references, err := p.ParseReferences(args[:last])
	if err != nil {
		return exit.UsageError(err)
	}
	for _, r := range references {
		_, isPercentage := value.(string)
		switch name := strings.TrimSpace(r.Kind.Describe(r.Name)); {
		case isUnitedDeployment(r.Kind):
			return exit.UsageErrorf("%s has a partition for each subset; want --subset NAME=VALUE in place of %s", name, args[last])
		case isPercentage && !r.Kind.PartitionPercent:
			return exit.UsageErrorf("%s takes no percentage as its partition; want a number in place of %s", name, args[last])
		}
	}
	set := func(kind edit.Kind, object *unstructured.Unstructured) error {
		return setPartition(kind, object, value)
	}
	return p.changeObjects(cmd, references, fmt.Sprintf("partition set to %v", value), set)
}

// runSubsets sets the partitions of subsets.
func (p *partitioning) runSubsets(cmd *cobra.Command, args []string) error {
	subsets, err := parseSubsets(p.subsets)
	if err != nil {
		return err
	}
	references, err := p.ParseReferences(args)
	if err != nil {
		return exit.UsageError(err)
	}
	for _, r := range references {
		if !isUnitedDeployment(r.Kind) {
			name := strings.TrimSpace(r.Kind.Describe(r.Name))
			return exit.UsageErrorf("%s has no subsets; want its partition in place of --subset", name)
		}
	}
	var done []string
	for _, s := range subsets {
		done = append(done, fmt.Sprintf("%s=%d", s.name, s.partition))
	}
	set := func(kind edit.Kind, object *unstructured.Unstructured) error {
		return setSubsetPartitions(kind, object, subsets)
	}
	return p.changeObjects(cmd, references, "partition set to "+strings.Join(done, ", "), set)
}

// kindChange changes an object of a kind.
type kindChange func(kind edit.Kind, object *unstructured.Unstructured) error

// changeObjects makes a change of each object and prints what was done.
func (p *partitioning) changeObjects(cmd *cobra.Command, references []edit.Reference, done string, change kindChange) error {
	return p.ForEach(cmd.Context(), references, func(object *edit.Object) error {
		if err := object.RefuseControlled(); err != nil {
			return err
		}
		return p.Write(cmd.Context(), cmd.OutOrStdout(), object, done, func(u *unstructured.Unstructured) error {
			return change(object.Kind, u)
		})
	})
}

// parsePartition reads a number of pods as an int64, or a percentage of them as a string.
func parsePartition(text string) (any, error) {
	digits, isPercentage := strings.CutSuffix(text, "%")
	limit := uint64(math.MaxInt32)
	if isPercentage {
		limit = 100
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	switch {
	case err != nil || n > limit:
		return nil, exit.UsageErrorf("the partition is %q; want a number of pods such as 3, or a percentage from 0%% to 100%%", text)
	case isPercentage:
		return fmt.Sprintf("%d%%", n), nil
	}
	return int64(n), nil
}

// subsetPartition is the partition of a subset.
type subsetPartition struct {
	name      string
	partition int64
}

// parseSubsets reads NAME=VALUE.
func parseSubsets(pairs []string) ([]subsetPartition, error) {
	var out []subsetPartition
	for _, pair := range pairs {
		name, text, _ := strings.Cut(pair, "=")
		n, err := strconv.ParseUint(text, 10, 31)
		if name == "" || err != nil {
			return nil, exit.UsageErrorf("--subset is %q; want NAME=VALUE, and a number of pods as the value", pair)
		}
		if slices.ContainsFunc(out, func(s subsetPartition) bool { return s.name == name }) {
			return nil, exit.UsageErrorf("--subset has %s twice; name each subset once", name)
		}
		out = append(out, subsetPartition{name, int64(n)})
	}
	return out, nil
}

// setPartition sets the partition of an object that has one.
func setPartition(kind edit.Kind, object *unstructured.Unstructured, value any) error {
	if err := refuseIgnored(object, kind.Partition[:len(kind.Partition)-1]); err != nil {
		return err
	}
	return setNumber(object, value, kind.Partition)
}

// setNumber sets a field whose default is 0.
func setNumber(object *unstructured.Unstructured, value any, at edit.Path) error {
	current, found, err := unstructured.NestedFieldNoCopy(object.Object, at...)
	if err != nil {
		return fmt.Errorf("reading %s: %w", at, err)
	}
	if current == value || (!found || current == nil) && value == any(int64(0)) {
		return nil
	}
	if err := unstructured.SetNestedField(object.Object, value, at...); err != nil {
		return fmt.Errorf("writing %s: %w", at, err)
	}
	return nil
}

// refuseIgnored refuses a partition that the update strategy at spec.updateStrategy ignores.
func refuseIgnored(object *unstructured.Unstructured, within edit.Path) error {
	const strategy = "updateStrategy"
	end := slices.Index(within, strategy)
	if end < 0 {
		return nil
	}
	at := append(within[:end+1:end+1], "type")
	kind, _, err := unstructured.NestedString(object.Object, at...)
	if err != nil {
		return fmt.Errorf("reading %s: %w", at, err)
	}
	switch kind {
	case string(kruise.OnDeleteCloneSetUpdateStrategyType): // the same word for all kinds
		return exit.RefusalErrorf("%s is %s, so a partition has no effect: a pod is updated when it is deleted; "+
			"set RollingUpdate first", at, kind)
	case string(kruise.NotUpdateSidecarSetStrategyType):
		policyAt := edit.Path{"spec", "injectionStrategy", "revision", "policy"}
		policy, _, err := unstructured.NestedString(object.Object, policyAt...)
		if err != nil {
			return fmt.Errorf("reading %s: %w", policyAt, err)
		}
		if policy != string(kruise.PartialSidecarSetInjectRevisionPolicy) { // which gives the partition to new pods
			return exit.RefusalErrorf("%s is %s, so a partition has no effect: running pods are not updated; "+
				"set RollingUpdate first", at, kind)
		}
	}
	return nil
}

// setSubsetPartitions sets the partitions of subsets of a UnitedDeployment.
func setSubsetPartitions(kind edit.Kind, object *unstructured.Unstructured, subsets []subsetPartition) error {
	if err := refuseIgnoredBySubsets(kind, object); err != nil {
		return err
	}
	names, err := readSubsetNames(object)
	if err != nil {
		return err
	}
	for _, s := range subsets {
		if !slices.Contains(names, s.name) {
			return exit.RefusalErrorf("spec.topology.subsets has no %s; it has %s", s.name, cmp.Or(strings.Join(names, ", "), "none"))
		}
		at := edit.Path{"spec", "updateStrategy", "manualUpdate", "partitions", s.name}
		if err := setNumber(object, s.partition, at); err != nil {
			return err
		}
	}
	return nil
}

// refuseIgnoredBySubsets refuses partitions that the workloads of the subsets do not use.
func refuseIgnoredBySubsets(kind edit.Kind, object *unstructured.Unstructured) error {
	at := edit.Path{"spec", "updateStrategy", "type"}
	update, _, err := unstructured.NestedString(object.Object, at...)
	if err != nil {
		return fmt.Errorf("reading %s: %w", at, err)
	}
	if update != "" && update != string(kruise.ManualUpdateStrategyType) {
		return exit.RefusalErrorf("%s is %s, so the partitions have no effect; set %s first", at, update, kruise.ManualUpdateStrategyType)
	}
	podSpec, err := kind.PodSpecPath(object)
	if err != nil {
		return err
	}
	template := podSpec[:3] // such as spec.template.cloneSetTemplate
	if template[2] == "deploymentTemplate" {
		return exit.RefusalErrorf("the subsets are Deployments by %s, which have no partition; use a cloneSetTemplate", template)
	}
	return refuseIgnored(object, append(template[:3:3], "spec", "updateStrategy"))
}

// readSubsetNames returns the names of the subsets of a UnitedDeployment.
func readSubsetNames(object *unstructured.Unstructured) ([]string, error) {
	const at = "spec.topology.subsets"
	value, _, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "topology", "subsets")
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", at, err)
	}
	list, ok := value.([]any)
	if !ok && value != nil {
		return nil, fmt.Errorf("%s is %s; it must be a list", at, edit.DescribeType(value))
	}
	var out []string
	for i, entry := range list {
		fields, _ := entry.(map[string]any) // nil has no name
		name, ok := fields["name"].(string)
		if !ok {
			return nil, fmt.Errorf("%s[%d].name is missing or no string", at, i)
		}
		out = append(out, name)
	}
	return out, nil
}
