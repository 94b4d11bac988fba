// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// autoscalerKind is the kind that autoscale creates.
var autoscalerKind = edit.Kind{
	GroupVersionResource: autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"), Kind: "HorizontalPodAutoscaler",
}

// autoscaling has the flags of autoscale.
type autoscaling struct {
	*edit.Options
	name                 string
	least, most, percent int32
	cpu, memory          string
}

// NewAutoscaleCommand makes the command that creates a HorizontalPodAutoscaler for a workload.
func NewAutoscaleCommand() *cobra.Command {
	a := &autoscaling{Options: edit.NewOptions(edit.SelectKinds(func(k edit.Kind) bool { return k.Scalable }))}
	cmd := &cobra.Command{
		Use:   "autoscale KIND/NAME [--min N] --max N [--cpu TARGET] [--memory TARGET] [flags]",
		Short: "Create an autoscaler for a workload",
		Long: `Autoscale creates a HorizontalPodAutoscaler (autoscaling/v2), which sets spec.replicas of the
workload by the load of its pods. Without a target the API server sets one: 80% of the CPU
that the pods request.

A target with % is a part of what the containers request, so that they need requests. Any
other target is the average over the pods: --cpu 500m is half a core, --memory 200Mi is
200 MiB. A whole number without a unit is millicores or mebibytes, as in kubectl.

A subset of a UnitedDeployment is refused: autoscale the UnitedDeployment.

` + edit.DescribeKinds(a.Allowed),
		Example: `  regatta autoscale clone/web --min 2 --max 10 --cpu 80%
  regatta autoscale asts/db --max 5 --cpu 500m --memory 1Gi --dry-run=client -o yaml`,
		DisableFlagsInUseLine: true,
		RunE:                  a.runAutoscale,
	}
	a.AddCreateFlags(cmd)
	edit.AddCompletion(cmd, a.Cluster, a.Allowed, true)
	f := cmd.Flags()
	f.StringVar(&a.name, "name", "", "name of the autoscaler; that of the workload if unset")
	f.Int32Var(&a.least, "min", 0, "the least pods; 1 if unset or not above 0")
	f.Int32Var(&a.most, "max", 0, "the most pods")
	f.StringVar(&a.cpu, "cpu", "", "`TARGET` of the CPU of the pods, such as 80% or 500m")
	f.StringVar(&a.memory, "memory", "", "`TARGET` of the memory of the pods, such as 60% or 200Mi")
	f.Int32Var(&a.percent, "cpu-percent", 0, "target of the CPU of the pods, in percent of what they request")
	_ = f.MarkDeprecated("cpu-percent", "use --cpu, such as --cpu 80%") // the flag exists
	_ = cmd.MarkFlagRequired("max")
	return cmd
}

func (a *autoscaling) runAutoscale(cmd *cobra.Command, args []string) error {
	metrics, err := a.parseFlags()
	if err != nil {
		return err
	}
	references, err := parseNamed(a.Options, a.name, args)
	if err != nil {
		return err
	}
	return a.ForEach(cmd.Context(), references, func(object *edit.Object) error {
		if err := refuseAutoscaler(object); err != nil {
			return err
		}
		autoscaler, err := a.buildAutoscaler(cmd, object, metrics)
		if err != nil {
			return err
		}
		return a.CreateObject(cmd.Context(), cmd.OutOrStdout(), autoscalerKind, autoscaler, "autoscaled")
	})
}

// parseFlags reads the flags before the cluster is asked.
func (a *autoscaling) parseFlags() ([]autoscalingv2.MetricSpec, error) {
	switch {
	case a.most < 1:
		return nil, exit.UsageErrorf("--max is %d; want 1 or more", a.most)
	case a.most < a.least:
		return nil, exit.UsageErrorf("--max is %d and --min is %d; want a --max that is not less", a.most, a.least)
	case a.cpu != "" && a.percent > 0:
		return nil, exit.UsageErrorf("--cpu and --cpu-percent exclude each other")
	}
	if wrong := validation.IsDNS1123Subdomain(a.name); a.name != "" && len(wrong) > 0 {
		return nil, exit.UsageErrorf("--name is %q: %s", a.name, strings.Join(wrong, "; "))
	}
	var out []autoscalingv2.MetricSpec
	cpu := a.cpu
	if a.percent > 0 {
		cpu = fmt.Sprintf("%d%%", a.percent)
	}
	for _, of := range []struct {
		resource   corev1.ResourceName
		text, unit string
	}{{corev1.ResourceCPU, cpu, "m"}, {corev1.ResourceMemory, a.memory, "Mi"}} {
		if of.text == "" {
			continue
		}
		target, err := parseTarget(of.text, of.unit)
		if err != nil {
			return nil, exit.UsageErrorf("--%s is %q; %w", of.resource, of.text, err)
		}
		out = append(out, autoscalingv2.MetricSpec{
			Type:     autoscalingv2.ResourceMetricSourceType,
			Resource: &autoscalingv2.ResourceMetricSource{Name: of.resource, Target: target},
		})
	}
	return out, nil
}

// refuseAutoscaler refuses a workload whose replicas an autoscaler could not set, or another controller would set back.
func refuseAutoscaler(object *edit.Object) error {
	if err := object.RefuseControlled(); err != nil {
		return err
	}
	_, found, err := unstructured.NestedInt64(object.Live.Object, "spec", "replicas")
	switch {
	case err != nil:
		return fmt.Errorf("reading spec.replicas: %w", err)
	case !found:
		return exit.RefusalErrorf("spec.replicas of %s is not set, and without it an autoscaler reads no scale; "+
			"set it first, such as by regatta scale", object)
	}
	return nil
}

func (a *autoscaling) buildAutoscaler(cmd *cobra.Command, object *edit.Object, metrics []autoscalingv2.MetricSpec) (*unstructured.Unstructured, error) {
	spec := autoscalingv2.HorizontalPodAutoscalerSpec{
		ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
			APIVersion: object.Kind.GroupVersion().String(), Kind: object.Kind.Kind, Name: object.Live.GetName(),
		},
		MaxReplicas: a.most, Metrics: metrics,
	}
	if a.least > 0 {
		spec.MinReplicas = ptr.To(a.least)
	}
	return newObject(cmd, autoscalerKind, cmp.Or(a.name, object.Live.GetName()), &spec)
}
