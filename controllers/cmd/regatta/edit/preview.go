// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// Preview simulates the rollout of a workload as it would be after a change. manager is the namespace of the manager. It
// writes how the rollout goes to out, and what a reader has to know about it to notes.
type Preview func(ctx context.Context, config *rest.Config, manager string, changed *unstructured.Unstructured, out, notes io.Writer) error

// previewTime bounds how long a preview may take. A rollout of 10,000 pods takes seconds.
const previewTime = 5 * time.Minute

// AddPreviewFlag adds the flag --preview to a command. Without a preview the command does not have the flag.
func (o *Options) AddPreviewFlag(cmd *cobra.Command, preview Preview) {
	if o.preview = preview; preview == nil {
		return
	}
	cmd.Flags().BoolVar(&o.previews, "preview", false, "change nothing, and simulate the rollout with the objects and policies of the cluster (CloneSets); a rollout that would wait ends with 0 too")
	o.AddManagerNamespaceFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("preview", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("preview", "output")
}

// AddManagerNamespaceFlag adds the flag for the namespace of the manager to a command that does not have it yet.
func (o *Options) AddManagerNamespaceFlag(cmd *cobra.Command) {
	if cmd.Flags().Lookup("manager-namespace") == nil {
		cmd.Flags().StringVar(&o.managerNamespace, "manager-namespace", "kruise-system", "namespace of the manager, where the bundles of the platform and the revisions of SidecarSets are kept")
	}
}

// ManagerNamespace is the value of the flag for the namespace of the manager.
func (o *Options) ManagerNamespace() string { return o.managerNamespace }

// writePreview has the API server check a change, and simulates the rollout that it begins.
func (o *Options) writePreview(ctx context.Context, w io.Writer, object *Object, change Change) error {
	if object.Kind.Kind != "CloneSet" {
		return exit.UsageError(fmt.Errorf("--preview simulates CloneSets, and %s is none", object))
	}
	checked := *o
	checked.dryRun = dryRunServer
	changed, err := checked.ApplyChange(ctx, object, change)
	switch {
	case errors.Is(err, ErrUnchanged):
		return o.PrintObject(w, object.Live, "unchanged")
	case err != nil:
		return err
	}
	config, err := o.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeoutCause(ctx, previewTime, fmt.Errorf("it took more than %s", previewTime))
	defer stop()
	if err := o.preview(ctx, config, o.managerNamespace, changed, w, o.warnings()); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("preview of %s: %w", object, err)
	}
	return nil
}
