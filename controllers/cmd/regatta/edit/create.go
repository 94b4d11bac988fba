// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

// AddCreateFlags adds the flags of a command that creates one object: those of AddFlags without the ones that
// select objects.
func (o *Options) AddCreateFlags(cmd *cobra.Command) {
	o.Cluster.AddFlags(cmd.Flags())
	o.warnings = cmd.ErrOrStderr
	f := cmd.Flags()
	f.StringVar(&o.dryRun, "dry-run", dryRunNone,
		"none, client or server: print the object and do not create it; server has the API server check it")
	f.Lookup("dry-run").NoOptDefVal = "unchanged" // refused with a word, as in kubectl
	f.StringVar(&o.fieldManager, "field-manager", "regatta",
		"name of the manager that owns the fields of the object")
	o.print.AddFlags(cmd)
}

// IsClientDryRun is true if the command must work without the API server.
func (o *Options) IsClientDryRun() bool { return o.dryRun == dryRunClient }

// CreateObject creates an object and prints what was done, such as created. An object without a namespace is created in the
// namespace of the user. The API server refuses fields that it does not know, so that none is lost.
func (o *Options) CreateObject(ctx context.Context, w io.Writer, kind Kind, object *unstructured.Unstructured, done string) error {
	if o.IsClientDryRun() {
		return o.PrintObject(w, object, done)
	}
	objects, err := o.OpenClient()
	if err != nil {
		return err
	}
	client, in := dynamic.ResourceInterface(objects.Resource(kind.GroupVersionResource)), ""
	if !kind.ClusterScoped {
		about, err := o.Cluster.ResolveNamespace(target.Target{})
		if err != nil {
			return err
		}
		client = objects.Resource(kind.GroupVersionResource).Namespace(about.Namespace)
		in = " in namespace " + about.Namespace
	}
	created, err := client.Create(ctx, object, metav1.CreateOptions{
		FieldManager: o.fieldManager, DryRun: o.serverDryRun(), FieldValidation: metav1.FieldValidationStrict,
	})
	if err != nil {
		return describeCreateError(err, kind, object, in)
	}
	return o.PrintObject(w, created, done)
}

// describeCreateError says which object was not created. The API server says only that a resource or a name is not
// found, or leaves out the kind.
func describeCreateError(err error, kind Kind, object *unstructured.Unstructured, in string) error {
	described := kind.Describe(cmp.Or(object.GetName(), object.GetGenerateName()))
	switch {
	case apierrors.IsAlreadyExists(err) && object.GetName() != "":
		return fmt.Errorf("%s exists already%s", described, in)
	case apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse):
		return fmt.Errorf("creating %s: the cluster has no %s", described, kind.GroupResource())
	}
	return AsRefusal(fmt.Errorf("creating %s%s: %w", described, in, err))
}
