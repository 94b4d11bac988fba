// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
)

type historyOptions struct {
	*edit.Options
	revision string
	form     *output.Form
}

func historyCommand() *cobra.Command {
	o := &historyOptions{Options: edit.NewOptions(ListKinds()), form: output.New(output.Text, output.YAML, output.JSON)}
	cmd := &cobra.Command{
		Use:   "history " + edit.UsageArguments(o.Allowed),
		Short: "List the revisions of a workload, or print one",
		Long: `History lists the revisions of a workload, the newest last. Revision "update" is the one
that the rollout goes to, "current" the last one that all pods had. CHANGE-CAUSE is the
annotation ` + changeCauseKey + ` of the revision. A line below the list tells which
field manager wrote the template last.

With --revision it prints the template of that revision; for a SidecarSet, whose revisions
are in the namespace of the manager, the fields that the revision has. Without it, -o yaml
and -o json print the ControllerRevisions, or the ReplicaSets of a Deployment.`,
		Example: `  regatta rollout history clone/web
  regatta rollout history clone/web --revision 3
  regatta rollout history sidecarset/log-agent -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			_, err := parseOne(o.Options, args)
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.runHistory(cmd, args) },
	}
	o.Cluster.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.revision, "revision", "", "number or name of the revision to print")
	o.AddManagerNamespaceFlag(cmd)
	o.form.AddTo(cmd)
	edit.AddCompletion(cmd, o.Cluster, o.Allowed, false)
	return cmd
}

func (o *historyOptions) runHistory(cmd *cobra.Command, args []string) error {
	objects, object, err := readOne(cmd.Context(), o.Options, args)
	if err != nil {
		return err
	}
	h, err := readHistory(cmd.Context(), objects, object.Kind, object.Live, o.ManagerNamespace())
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if o.revision != "" && o.revision != "0" {
		r, err := h.findRevision(o.revision)
		if err != nil {
			return err
		}
		fields, err := r.describeFields(h.kind)
		if err != nil {
			return err
		}
		return printValue(out, fields, o.form.String())
	}
	if o.form.String() != output.Text {
		return printValue(out, h.listObjects(), o.form.String())
	}
	if _, err := io.WriteString(out, h.describeTable(time.Now())); err != nil {
		return fmt.Errorf("printing the history: %w", err)
	}
	return nil
}

// printValue prints a value as JSON, or else as YAML.
func printValue(out io.Writer, value any, form string) error {
	text, err := yaml.Marshal(value)
	if form == output.JSON {
		if text, err = json.MarshalIndent(value, "", "    "); err == nil {
			text = append(text, '\n')
		}
	}
	if err != nil {
		return fmt.Errorf("encoding the revision: %w", err)
	}
	if _, err := out.Write(text); err != nil {
		return fmt.Errorf("printing the revision: %w", err)
	}
	return nil
}

// listObjects is a list of the revisions as the cluster has them, without what the API server records of writes.
func (h *workloadHistory) listObjects() any {
	items := []any{}
	for _, r := range h.all {
		item := r.object.DeepCopy()
		item.SetManagedFields(nil)
		items = append(items, item.Object)
	}
	return map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{}, "items": items}
}

// describeTable is the list for people.
func (h *workloadHistory) describeTable(now time.Time) string {
	name := h.kind.Describe(h.object.GetName())
	if len(h.all) == 0 {
		return fmt.Sprintf("%s has no revisions\n", name)
	}
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "REVISION\tNAME\tAGE\tSTATUS\tCHANGE-CAUSE") // writing to memory does not fail
	update, current := h.findInUse()
	for _, r := range h.all {
		var states []string
		if r == current {
			states = append(states, "current")
		}
		if r == update {
			states = append(states, "update")
		}
		cause := joinLines(r.cause)
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", r.number, edit.EscapeText(r.name), duration.HumanDuration(max(now.Sub(r.created), 0)),
			cmp.Or(strings.Join(states, ","), "<none>"), cmp.Or(cause, "<none>"))
	}
	_ = table.Flush()
	if !isObserved(h.object) {
		fmt.Fprintf(&out, "The controller has not seen the newest change of %s yet.\n", name)
	}
	if field, manager := findLastWriter(h.object, h.findNewest().fields); manager != nil {
		fmt.Fprintf(&out, "%s was last written by %s", field, joinLines(manager.Manager))
		if manager.Time != nil {
			fmt.Fprintf(&out, " at %s", manager.Time.UTC().Format(time.RFC3339))
		}
		out.WriteString(".\n")
	}
	return out.String()
}

// findInUse finds the revision that the rollout goes to, and the last one that all pods had.
func (h *workloadHistory) findInUse() (update, current *recordedRevision) {
	currentName, updateName := statusRevisions(h.kind, h.object)
	if updateName == "" { // a Deployment, or a DaemonSet of Kubernetes
		return h.findPresent(), h.findByName(currentName)
	}
	return h.findByName(updateName), h.findByName(currentName)
}

// findLastWriter finds which manager wrote one of the fields last, and which field that is.
func findLastWriter(object *unstructured.Unstructured, fields []recordedField) (edit.Path, *metav1.ManagedFieldsEntry) {
	var field edit.Path
	var last *metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var owned map[string]any
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &owned); err != nil {
			continue
		}
		for _, f := range fields {
			var keys []string
			for _, name := range f.path {
				keys = append(keys, "f:"+name)
			}
			_, owns, err := unstructured.NestedFieldNoCopy(owned, keys...)
			if err == nil && owns && (last == nil || last.Time == nil || entry.Time != nil && last.Time.Before(entry.Time)) {
				field, last = f.path, &entry
			}
		}
	}
	return field, last
}
