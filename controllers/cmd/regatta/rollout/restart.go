// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/kinds"
)

func restartCommand() *cobra.Command {
	cluster, inPlace := target.NewCluster(), false
	cmd := &cobra.Command{
		Use:   "restart (" + strings.Join(target.ArgumentForms(target.WorkloadKinds()...), " | ") + ") --in-place",
		Short: "Restart all containers of a workload in place",
		Long: `Restart restarts the containers of each pod of a ` + kinds.List("or") + ` and leaves the pods
where they are, with their names, addresses and volumes. The manager makes a
ContainerRecreateRequest for each pod: as many at once as maxUnavailable of the workload
allows, in the order in which it would update them, and none that a policy holds. It needs
node agents.

The request is the annotation ` + kruise.RestartInPlaceKey + ` of the
workload. The manager takes it off when all pods have restarted; removing it by hand stops
the restart after the pods that are under way.`,
		Example: `  regatta rollout restart clone/web --in-place
  kubectl annotate clone web ` + kruise.RestartInPlaceKey + `-   # stop`,
		Args: func(_ *cobra.Command, args []string) error {
			_, err := target.ParseArgs(args, target.WorkloadKinds()...)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !inPlace {
				return errors.New("add --in-place: containers restart and pods stay; for new pods change the template of the workload")
			}
			about, err := target.ParseArgs(args, target.WorkloadKinds()...)
			if err != nil {
				return err
			}
			if about, err = cluster.ResolveNamespace(about); err != nil {
				return err
			}
			config, err := cluster.RESTConfig()
			if err != nil {
				return err
			}
			objects, err := dynamic.NewForConfig(config)
			if err != nil {
				return fmt.Errorf("making a client: %w", err)
			}
			if err := requestRestart(cmd.Context(), objects, about, time.Now()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s restarts in place; follow it by: kubectl get crr -n %s -w\n", about, about.Namespace)
			return nil
		},
	}
	cluster.AddFlags(cmd.Flags())
	cmd.Flags().BoolVar(&inPlace, "in-place", false, "restart the containers and leave the pods as they are")
	return cmd
}

// requestRestart asks for a restart of a workload in place.
func requestRestart(ctx context.Context, objects dynamic.Interface, about target.Target, now time.Time) error {
	kind, ok := kinds.FindByGroupKind(about.GroupKind())
	if !ok {
		return fmt.Errorf("a %s cannot be restarted in place; want a %s", about.Kind, kinds.List("or"))
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{
		kruise.RestartInPlaceKey: now.UTC().Format(time.RFC3339),
	}}})
	if err != nil {
		return fmt.Errorf("encoding a patch: %w", err)
	}
	_, err = objects.Resource(kind.GroupVersionResource()).Namespace(about.Namespace).Patch(ctx, about.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no %s %s in namespace %s", kind.Kind, about.Name, about.Namespace)
	}
	if err != nil {
		return fmt.Errorf("annotating %s: %w", about, err)
	}
	return nil
}
