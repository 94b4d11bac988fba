// SPDX-License-Identifier: Apache-2.0

package shipped

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/output"
)

func newStatusCommand() *cobra.Command {
	var w where
	form := output.New(output.Text, output.JSON)
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Tell what stands in a cluster, stage by stage, and what a shadow would change",
		Long: `Status lists the ClusterPolicyBundles or, with a namespace, its PolicyBundles. Of
one it tells each stage of the gate, which replicas run which revision, what a
revision in shadow would decide differently, and to which revisions it can go back.

It ends with 1 if a bundle is not what its spec says.`,
		Example: `  regatta policy status
  regatta policy status change-freeze -o json
  regatta policy status team-rules -n shop`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := w.connectCluster(cmd)
			if err != nil {
				return err
			}
			var found []v1alpha1.AnyPolicyBundle
			if len(args) == 0 {
				found, err = b.listBundles(cmd.Context())
			} else {
				var one v1alpha1.AnyPolicyBundle
				if one, err = b.getBundle(cmd.Context(), args[0]); err == nil {
					found = append(found, one)
				}
			}
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			switch {
			case form.String() == output.JSON:
				err = output.PrintJSON(out, found)
			case len(args) > 0:
				printBundle(out, found[0], time.Now())
			case len(found) == 0:
				fmt.Fprintln(out, b.noBundlesMessage())
			default:
				err = printTable(out, found)
			}
			if err == nil && slices.ContainsFunc(found, func(of v1alpha1.AnyPolicyBundle) bool { return !IsReady(of) }) {
				return exit.RefusalError(fmt.Errorf("not every bundle is what its spec says"))
			}
			return err
		},
	}
	w.addFlags(cmd)
	form.AddTo(cmd)
	return cmd
}

// FindCondition returns a condition of a bundle, Unknown if its status does not have it yet.
func FindCondition(of v1alpha1.AnyPolicyBundle, name string) metav1.Condition {
	for _, c := range of.GetStatus().Conditions {
		if c.Type == name {
			return c
		}
	}
	return metav1.Condition{Type: name, Status: metav1.ConditionUnknown, Reason: "NotYet"}
}

// IsReady is true if the condition Ready of a bundle is True and of its newest spec.
func IsReady(of v1alpha1.AnyPolicyBundle) bool {
	return isStatusCurrent(of) && FindCondition(of, v1alpha1.PolicyBundleReady).Status == metav1.ConditionTrue
}

func printTable(out io.Writer, all []v1alpha1.AnyPolicyBundle) error {
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAME\tMODE\tREADY\tENFORCED\tTRIED\tREPLICAS\tREASON")
	for _, of := range all {
		st := of.GetStatus()
		tried := "-"
		if st.Candidate != nil {
			tried = st.Candidate.Revision
		}
		c := FindCondition(of, v1alpha1.PolicyBundleReady)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d/%d\t%s\n", of.GetName(), of.DesiredSpec().Mode, c.Status, cmp.Or(st.ActiveRevision, "-"), tried,
			len(st.Replicas)-outdatedReplicas(st), len(st.Replicas), c.Reason)
	}
	return t.Flush()
}

// printBundle prints the whole state of one bundle.
func printBundle(out io.Writer, of v1alpha1.AnyPolicyBundle, now time.Time) {
	st, w := of.GetStatus(), of.DesiredSpec()
	name := of.GetName()
	if ns := of.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	fmt.Fprintf(out, "%s is in mode %s", name, w.Mode)
	if len(w.Namespaces) > 0 {
		fmt.Fprintf(out, " in %s", strings.Join(w.Namespaces, ", "))
	}
	fmt.Fprintf(out, ". %s\n", FindCondition(of, v1alpha1.PolicyBundleReady).Message)
	if st.Fetched != nil {
		fmt.Fprintf(out, "  source    %s, %s ago\n", st.Fetched.Reference, formatAge(now, st.Fetched.Time))
	}
	for _, stage := range v1alpha1.PolicyBundleStages() {
		c := FindCondition(of, stage)
		fmt.Fprintf(out, "  %-12s %-8s %s\n", stage, c.Status, c.Reason)
	}
	for _, e := range st.Errors {
		fmt.Fprintf(out, "    %s\n", e)
	}
	fmt.Fprintf(out, "  replicas  %d of %d run what the status says\n", len(st.Replicas)-outdatedReplicas(st), len(st.Replicas))
	for _, r := range st.Replicas {
		fmt.Fprintf(out, "    %-48s enforces %s", r.Name, cmp.Or(r.Revision, "nothing"))
		if r.Candidate != "" {
			fmt.Fprintf(out, ", tries %s", r.Candidate)
		}
		if r.Problem != "" {
			fmt.Fprintf(out, "; %s", r.Problem)
		}
		if r.Shadow != nil && r.Shadow.Stopped != "" {
			fmt.Fprintf(out, "; compares no more: %s", r.Shadow.Stopped)
		}
		fmt.Fprintln(out)
	}
	if s := SumShadow(st); s != nil {
		fmt.Fprintf(out, "  shadow    %s in %s\n", formatShadowCounts(s), formatAge(now, s.Since))
		for _, d := range s.Differences {
			fmt.Fprintf(out, "    %6d %-8s %s: %s -> %s\n", d.Count, d.Kind, d.Point, cmp.Or(d.Reason, "-"), cmp.Or(d.Candidate, "-"))
		}
	}
	for _, a := range st.History {
		fmt.Fprintf(out, "  before    %s from %s, let in %s ago\n", a.Revision, a.Reference, formatAge(now, a.Time))
	}
}

func formatAge(now time.Time, t metav1.Time) string {
	return now.Sub(t.Time).Round(time.Second).String()
}

func formatShadowCounts(s *v1alpha1.PolicyShadow) string {
	return fmt.Sprintf("%d decisions compared: %d stricter, %d looser, %d changed, %d errors, %d skipped", s.Compared, s.Stricter, s.Looser, s.Changed, s.Errors, s.Skipped)
}

// SumShadow sums up the counts of the replicas of a bundle; nil if no revision is in shadow.
func SumShadow(st *v1alpha1.PolicyBundleStatus) *v1alpha1.PolicyShadow {
	var out *v1alpha1.PolicyShadow
	groups := map[v1alpha1.PolicyDifference]int64{}
	for _, r := range st.Replicas {
		if r.Shadow == nil {
			continue
		}
		if out == nil {
			out = &v1alpha1.PolicyShadow{Since: r.Shadow.Since}
		}
		if r.Shadow.Since.Before(&out.Since) {
			out.Since = r.Shadow.Since
		}
		out.Compared += r.Shadow.Compared
		out.Stricter += r.Shadow.Stricter
		out.Looser += r.Shadow.Looser
		out.Changed += r.Shadow.Changed
		out.Errors += r.Shadow.Errors
		out.Skipped += r.Shadow.Skipped
		for _, d := range r.Shadow.Differences {
			n := d.Count
			d.Count = 0
			groups[d] += n
		}
	}
	for d, n := range groups {
		d.Count = n
		out.Differences = append(out.Differences, d)
	}
	if out != nil {
		slices.SortFunc(out.Differences, func(a, b v1alpha1.PolicyDifference) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Point+a.Kind+a.Reason+a.Candidate, b.Point+b.Kind+b.Reason+b.Candidate))
		})
	}
	return out
}
