// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// Preview simulates the rollout of a workload as it would be after a change. It writes how it goes to out, and what a
// reader has to know about it to notes.
type Preview func(ctx context.Context, config *rest.Config, changed *unstructured.Unstructured, out, notes io.Writer) error

// AddPreviewFlag adds the flag --preview to a command. Without a preview the command does not have the flag.
func (o *Options) AddPreviewFlag(cmd *cobra.Command, preview Preview) {
	if o.preview = preview; preview == nil {
		return
	}
	cmd.Flags().BoolVar(&o.previews, "preview", false, "change nothing, and simulate the rollout with the objects and policies of the cluster (CloneSets)")
	cmd.MarkFlagsMutuallyExclusive("preview", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("preview", "output")
	o.notes = cmd.ErrOrStderr
}

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
	if err := o.preview(ctx, config, changed, w, o.notes()); err != nil {
		return fmt.Errorf("preview of %s: %w", object, err)
	}
	return nil
}
