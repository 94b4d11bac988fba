// SPDX-License-Identifier: Apache-2.0

package set

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubectl/pkg/cmd/set/env"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// envOptions are the flags of the command.
type envOptions struct {
	*edit.Options
	containers pattern
	pairs      []string // of --env
	from       string
	keys       []string
	prefix     string
	list       bool
	overwrite  bool
}

func envCommand(preview edit.Preview) *cobra.Command {
	o := &envOptions{Options: edit.NewOptions(kindsWithPodSpec())}
	cmd := &cobra.Command{
		Use:   "env KIND/NAME... KEY=VALUE... KEY-...",
		Short: "Change the environment variables of containers",
		Long: `Env sets and removes environment variables of containers and init containers. KEY=VALUE sets a
variable and KEY- removes it. --from makes variables that read the keys of a ConfigMap or a
Secret. Their names are the keys in upper case, with _ in place of characters that a name may
not have. The pods of a SidecarSet need a ConfigMap or Secret of that name in their own namespace.

With --list, the command prints the variables as they would be and writes nothing.

` + templateText + `

` + edit.DescribeKinds(o.Allowed),
		Example: `  regatta set env clone/web LOG_LEVEL=debug TRACE-
  regatta set env ads/agent --containers 'agent*' --from secret/agent --prefix AGENT_
  regatta set env asts/db --list`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.runEnv(cmd, args) },
	}
	o.AddFlags(cmd)
	o.AddPreviewFlag(cmd, preview)
	edit.AddCompletion(cmd, o.Cluster, o.Allowed, true)
	f := cmd.Flags()
	o.containers.addTo(f)
	f.StringArrayVarP(&o.pairs, "env", "e", nil, "a variable to set, as KEY=VALUE, or to remove, as KEY-")
	f.StringVar(&o.from, "from", "", "configmap/NAME or secret/NAME, whose keys become variables")
	f.StringSliceVar(&o.keys, "keys", nil, "the keys of --from that become variables; all of them if unset")
	f.StringVar(&o.prefix, "prefix", "", "what the names of the variables to set begin with")
	f.BoolVar(&o.list, "list", false, "print the variables, with the changes, and write nothing")
	f.BoolVar(&o.overwrite, "overwrite", true, "replace the values of variables; if false, another value is an error")
	return cmd
}

func (o *envOptions) runEnv(cmd *cobra.Command, args []string) error {
	references, pairs, ok := env.SplitEnvironmentFromResources(args)
	if !ok {
		return exit.UsageErrorf("name the objects first, and then KEY=VALUE or KEY-")
	}
	change, err := parseVariables(append(o.pairs, pairs...))
	if err != nil {
		return err
	}
	change.containers, change.overwrite = o.containers, o.overwrite
	if err := o.validateFlags(cmd, change); err != nil {
		return err
	}
	if _, err := o.ParseReferences(references); err != nil { // before the source is read
		return exit.UsageError(err)
	}
	if o.from != "" {
		if err := o.addFromSource(cmd.Context(), cmd.ErrOrStderr(), change); err != nil {
			return err
		}
	}
	if err := change.prefixNames(o.prefix); err != nil {
		return err
	}
	if o.list {
		return o.listVariables(cmd, references, change)
	}
	return changePodSpecs(cmd, o.Options, references, "env updated", change.applyTo)
}

// validateFlags checks the flags before the cluster is asked.
func (o *envOptions) validateFlags(cmd *cobra.Command, change *envChange) error {
	output, err := cmd.Flags().GetString("output")
	switch {
	case err != nil:
		return fmt.Errorf("reading --output: %w", err)
	case o.list && output != "":
		return exit.UsageErrorf("--list and --output exclude each other")
	case len(o.keys) > 0 && o.from == "":
		return exit.UsageErrorf("--keys are those of a ConfigMap or Secret; name it with --from")
	case !o.list && o.from == "" && len(change.set)+len(change.remove) == 0:
		return exit.UsageErrorf("there is no variable to change; want KEY=VALUE, KEY-, --from or --list")
	}
	if err := o.ValidateFlags(); err != nil {
		return err
	}
	return o.containers.validateFlag()
}

// variable is an entry of env.
type variable struct {
	name   string
	fields map[string]any
}

// newVariable makes an entry of env without its name.
func newVariable(name string, fields map[string]any) variable {
	fields["name"] = name
	return variable{name, fields}
}

// envChange is a change of the variables of containers.
type envChange struct {
	set        []variable
	remove     []string
	containers pattern
	overwrite  bool
}

// parseVariables reads KEY=VALUE and KEY-.
func parseVariables(pairs []string) (*envChange, error) {
	for _, pair := range pairs {
		if pair == "-" {
			return nil, exit.UsageErrorf("- names no variable; want KEY=VALUE, or KEY- to remove one")
		}
	}
	set, remove, _, err := env.ParseEnv(pairs, strings.NewReader(""))
	if err != nil {
		return nil, exit.UsageError(err)
	}
	change := &envChange{remove: remove}
	for _, v := range set {
		fields := map[string]any{}
		if v.Value != "" {
			fields["value"] = v.Value
		}
		change.set = append(change.set, newVariable(v.Name, fields))
	}
	return change, nil
}

// prefixNames puts the prefix in front of the names and checks them.
func (e *envChange) prefixNames(prefix string) error {
	seen := map[string]bool{}
	for _, name := range e.remove {
		seen[name] = true
	}
	for i := range e.set {
		v := newVariable(prefix+e.set[i].name, e.set[i].fields)
		if wrong := validation.IsEnvVarName(v.name); len(wrong) > 0 {
			return exit.UsageErrorf("%q is not the name of a variable: %s", v.name, wrong[0])
		}
		if seen[v.name] {
			return exit.UsageErrorf("variable %s is set twice, or set and removed; name it once", v.name)
		}
		seen[v.name] = true
		e.set[i] = v
	}
	return nil
}

// applyTo changes the variables of the selected containers.
func (e *envChange) applyTo(object *unstructured.Unstructured, podSpec edit.Path) error {
	all, err := readContainers(object, podSpec)
	if err != nil {
		return err
	}
	selected, err := e.containers.selectContainers(all)
	if err != nil {
		return err
	}
	for _, c := range selected {
		if err := e.applyToContainer(c); err != nil {
			return err
		}
	}
	return nil
}

// applyToContainer changes the variables of a container. A new value takes the place of the old one, since
// variables may refer to those before them.
func (e *envChange) applyToContainer(c container) error {
	entries, err := readNamedEntries(c.fields["env"], c.path+".env")
	if err != nil {
		return err
	}
	done, changed := map[string]bool{}, false
	for _, name := range e.remove {
		done[name] = true
	}
	out := make([]any, 0, len(entries)+len(e.set))
	for _, entry := range entries {
		want := e.findVariable(entry.name)
		switch same := want != nil && isSameVariable(entry.fields, want.fields); {
		case want != nil && !same && !e.overwrite:
			return exit.RefusalErrorf("variable %s of container %s has another value, and --overwrite is false", entry.name, c.name)
		case done[entry.name]: // removed, or given once more
			changed = true
			continue
		case want != nil && !same:
			entry.fields, changed = runtime.DeepCopyJSON(want.fields), true
		}
		done[entry.name] = want != nil
		out = append(out, entry.fields)
	}
	for _, v := range e.set {
		if !done[v.name] {
			out, changed = append(out, runtime.DeepCopyJSON(v.fields)), true
		}
	}
	switch {
	case changed && len(out) == 0:
		delete(c.fields, "env")
	case changed:
		c.fields["env"] = out
	}
	return nil
}

// findVariable returns the new variable of a name, nil if there is none.
func (e *envChange) findVariable(name string) *variable {
	for i := range e.set {
		if e.set[i].name == name {
			return &e.set[i]
		}
	}
	return nil
}

// listVariables prints the variables of the selected containers as they would be.
func (o *envOptions) listVariables(cmd *cobra.Command, references []string, change *envChange) error {
	found, err := o.ParseReferences(references)
	if err != nil {
		return exit.UsageError(err)
	}
	return o.ForEach(cmd.Context(), found, func(object *edit.Object) error {
		if err := o.printVariables(cmd.OutOrStdout(), object, change); err != nil {
			return fmt.Errorf("reading %s: %w", object, err)
		}
		return nil
	})
}

func (o *envOptions) printVariables(w io.Writer, object *edit.Object, change *envChange) error {
	shown := object.Live.DeepCopy()
	podSpec, err := object.Kind.PodSpecPath(shown)
	if err != nil {
		return err
	}
	if err := change.applyTo(shown, podSpec); err != nil {
		return err
	}
	all, err := readContainers(shown, podSpec)
	if err != nil {
		return err
	}
	selected, err := o.containers.selectContainers(all)
	if err != nil {
		return err
	}
	for _, c := range selected {
		lines, err := describeVariables(c)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "# %s %s, container %s\n%s", object.Kind.Kind, shown.GetName(), c.name, lines); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}

// describeVariables lists the variables of a container, one in a line.
func describeVariables(c container) (string, error) {
	entries, err := readNamedEntries(c.fields["env"], c.path+".env")
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for i, entry := range entries {
		at := fmt.Sprintf("%s.env[%d]", c.path, i)
		source, err := readObject(entry.fields, "valueFrom", at)
		if err != nil {
			return "", err
		}
		if source == nil {
			value, _, err := unstructured.NestedString(entry.fields, "value")
			if err != nil {
				return "", fmt.Errorf("reading %s: %w", at, err)
			}
			fmt.Fprintf(&out, "%s=%s\n", edit.EscapeText(entry.name), edit.EscapeText(value))
			continue
		}
		from := &corev1.EnvVarSource{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(source, from); err != nil {
			return "", fmt.Errorf("reading %s.valueFrom: %w", at, err)
		}
		fmt.Fprintf(&out, "# %s from %s\n", edit.EscapeText(entry.name), edit.EscapeText(env.GetEnvVarRefString(from)))
	}
	return out.String(), nil
}
