// SPDX-License-Identifier: Apache-2.0

// Package create has the commands that create objects from flags, as kubectl create does for kinds of Kubernetes.
package create

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// NewCommand makes the command with its subcommands.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create an object from flags",
		Long: `Create makes one object from flags and creates it in the cluster.

With --dry-run=client -o yaml it prints the manifest and creates nothing, so that you
can edit the manifest and apply it. Fields that no flag sets are left out: the cluster
gives them their defaults.`,
		Example: `  regatta create crr --pod web-0
  regatta create broadcastjob clean --image busybox:1.37 -- rm -rf /tmp/cache
  regatta create sidecarset proxy --selector app=web --image envoy:1.31 --dry-run=client -o yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRecreateRequestCommand(), newBroadcastJobCommand(), newCronJobCommand(),
		newImagePullJobCommand(), newSidecarSetCommand())
	return cmd
}

// creation is a subcommand.
type creation struct {
	options *edit.Options
	kind    edit.Kind
	// flags are those that describe the object.
	flags        *pflag.FlagSet
	validateName validation.ValidateNameFunc
	// takesNoName is true if NAME may be left out, takesCommand if -- COMMAND may follow it.
	takesNoName, takesCommand bool
	// build makes the object. Its error is printed as the error of a command that was mistyped, unless it
	// has an exit code.
	build func(ctx context.Context, meta metav1.ObjectMeta, command []string) (*unstructured.Unstructured, error)
}

func newCreation(resource, kind string, validateName validation.ValidateNameFunc) *creation {
	return &creation{
		options:      edit.NewOptions(nil),
		kind:         edit.Kind{GroupVersionResource: kruise.GroupVersion.WithResource(resource), Kind: kind},
		flags:        pflag.NewFlagSet(resource, pflag.ContinueOnError),
		validateName: validateName,
	}
}

// completeCommand adds to a command with its texts what all subcommands share.
func (c *creation) completeCommand(cmd *cobra.Command) *cobra.Command {
	cmd.DisableFlagsInUseLine = true
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		_, _, err := c.splitArguments(cmd, args)
		return err
	}
	cmd.RunE = c.createObject
	cmd.Flags().AddFlagSet(c.flags)
	c.options.AddCreateFlags(cmd)
	edit.AddCompletion(cmd, c.options.Cluster, nil, false) // no files: NAME is new
	return cmd
}

// splitArguments splits NAME -- COMMAND.
func (c *creation) splitArguments(cmd *cobra.Command, args []string) (names, command []string, err error) {
	names = args
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		names, command = args[:dash], args[dash:]
	}
	switch {
	case len(names) == 0 && !c.takesNoName:
		return nil, nil, errors.New("NAME is missing")
	case len(names) > 1 && c.takesCommand:
		return nil, nil, fmt.Errorf("want one NAME, got %d arguments; write a command after --", len(names))
	case len(names) > 1:
		return nil, nil, fmt.Errorf("want one NAME, got %d arguments", len(names))
	case len(command) > 0 && !c.takesCommand:
		return nil, nil, fmt.Errorf("objects of kind %s have no command", c.kind.Kind)
	}
	return names, command, nil
}

func (c *creation) createObject(cmd *cobra.Command, args []string) error {
	if err := c.options.ValidateFlags(); err != nil {
		return err
	}
	names, command, err := c.splitArguments(cmd, args)
	if err != nil {
		return exit.UsageError(err)
	}
	metadata, err := c.buildMetadata(cmd, names)
	if err != nil {
		return exit.UsageError(err)
	}
	object, err := c.build(cmd.Context(), metadata, command)
	if err != nil {
		return withUsageCode(err)
	}
	return c.options.CreateObject(cmd.Context(), cmd.OutOrStdout(), c.kind, object, "created")
}

// withUsageCode keeps the exit code of an error that has one.
func withUsageCode(err error) error {
	var coded exit.Error
	if errors.As(err, &coded) {
		return err
	}
	return exit.UsageError(err)
}

// withFailureCode marks an error that has nothing to do with what the user typed.
func withFailureCode(err error) error {
	if err == nil {
		return nil
	}
	return exit.Error{Code: exit.Failed, Err: err}
}

// buildMetadata is the metadata that the arguments say. It has a namespace only if the user named one, so that a
// printed manifest can be applied to any namespace.
func (c *creation) buildMetadata(cmd *cobra.Command, names []string) (metav1.ObjectMeta, error) {
	var out metav1.ObjectMeta
	for _, name := range names {
		if wrong := c.validateName(name, false); len(wrong) > 0 {
			return out, fmt.Errorf("NAME is %q: %s", name, strings.Join(wrong, "; "))
		}
		out.Name = name
	}
	if flag := cmd.Flags().Lookup("namespace"); flag != nil && flag.Changed && flag.Value.String() != "" {
		out.Namespace = flag.Value.String()
		if wrong := validation.ValidateNamespaceName(out.Namespace, false); len(wrong) > 0 {
			return out, fmt.Errorf("--namespace is %q: %s", out.Namespace, strings.Join(wrong, "; "))
		}
	}
	return out, nil
}

// typeMeta is the version and the kind of the object.
func (c *creation) typeMeta() metav1.TypeMeta {
	version, kind := c.kind.GroupVersion().WithKind(c.kind.Kind).ToAPIVersionAndKind()
	return metav1.TypeMeta{APIVersion: version, Kind: kind}
}

// encodeObject leaves out the status, and fields that are empty because no flag set them.
func encodeObject(object runtime.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, withFailureCode(fmt.Errorf("encoding the object: %w", err))
	}
	delete(fields, "status")
	removeEmpty(fields)
	return &unstructured.Unstructured{Object: fields}, nil
}

// removeEmpty removes empty objects and nulls, which Go structs leave behind in JSON.
func removeEmpty(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			removeEmpty(field)
			if inner, ok := field.(map[string]any); field == nil || ok && len(inner) == 0 {
				delete(value, key)
			}
		}
	case []any:
		for _, item := range value {
			removeEmpty(item)
		}
	}
}
