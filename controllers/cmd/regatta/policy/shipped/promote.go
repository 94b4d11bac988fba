// SPDX-License-Identifier: Apache-2.0

package shipped

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	v1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
)

// errNotYet ends promote; the reasons were printed already.
var errNotYet = errors.New("the bundle is not promoted; use --force to promote it anyway")

func newPromoteCommand() *cobra.Command {
	var w where
	var to string
	var force bool
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "promote NAME",
		Short: "Carry out what was tried: Shadow to Canary to Enforce",
		Long: `Promote edits spec.mode of a bundle, to Canary if it is in Shadow and has namespaces
for one, else to Enforce, and waits until every replica runs it. It also takes away
spec.rollbackTo.

It ends with 1 and changes nothing while the bundle has not passed the gate, while a
replica does not run it, or if its decisions in shadow failed or were made looser,
unless --force is set.`,
		Example: `  regatta policy promote change-freeze
  regatta policy promote change-freeze --to Enforce --force`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to != "" && to != string(v1alpha1.PolicyModeCanary) && to != string(v1alpha1.PolicyModeEnforce) {
				return exit.UsageError(fmt.Errorf("--to is %q, want Canary or Enforce", to))
			}
			b, of, err := w.findBundle(cmd, args[0])
			if err != nil {
				return err
			}
			mode, err := nextMode(of, to)
			if err != nil {
				return err
			}
			if why := PromotionBlockers(of); len(why) > 0 && !force {
				for _, line := range why {
					fmt.Fprintln(cmd.OutOrStdout(), line)
				}
				return exit.RefusalError(errNotYet)
			}
			if err := b.patchSpec(cmd.Context(), args[0], fmt.Sprintf(`{"spec":{"mode":%q,"rollbackTo":null}}`, mode)); err != nil {
				return err
			}
			return b.waitForReplicas(cmd, args[0], patience)
		},
	}
	w.addFlags(cmd)
	cmd.Flags().StringVar(&to, "to", "", "Canary or Enforce, whatever the mode is now")
	cmd.Flags().BoolVar(&force, "force", false, "promote even if the bundle has not passed the gate, a replica does not run it, or its shadow failed or is looser")
	cmd.Flags().DurationVar(&patience, "timeout", time.Minute, "how long to wait until every replica runs it; 0 not to wait")
	return cmd
}

// nextMode is the mode that comes after the current one.
func nextMode(of v1alpha1.AnyPolicyBundle, to string) (v1alpha1.PolicyMode, error) {
	canary := false
	if c, ok := of.(*v1alpha1.ClusterPolicyBundle); ok {
		canary = c.Spec.Canary != nil
	}
	switch mode := v1alpha1.PolicyMode(to); mode {
	case v1alpha1.PolicyModeCanary:
		if !canary {
			return "", exit.UsageError(errors.New("--to Canary needs spec.canary.namespaces in the bundle, which says where"))
		}
		return mode, nil
	case v1alpha1.PolicyModeEnforce:
		return mode, nil
	}
	if of.DesiredSpec().Mode == v1alpha1.PolicyModeShadow && canary {
		return v1alpha1.PolicyModeCanary, nil
	}
	return v1alpha1.PolicyModeEnforce, nil
}

// PromotionBlockers returns why a bundle should not be promoted; none if it can be.
func PromotionBlockers(of v1alpha1.AnyPolicyBundle) (out []string) {
	st := of.GetStatus()
	if c := FindCondition(of, v1alpha1.PolicyBundleReady); !IsReady(of) {
		out = append(out, fmt.Sprintf("It has not passed the gate: %s %s", c.Reason, c.Message))
	}
	if n := outdatedReplicas(st); n > 0 {
		out = append(out, fmt.Sprintf("%d of %d replicas do not run it yet.", n, len(st.Replicas)))
	}
	if s := SumShadow(st); s != nil {
		if s.Errors > 0 {
			out = append(out, fmt.Sprintf("In shadow, %d decisions failed.", s.Errors))
		}
		if s.Looser > 0 {
			out = append(out, fmt.Sprintf("In shadow, %d decisions were looser than those that were carried out.", s.Looser))
		}
	}
	for _, r := range st.Replicas {
		if r.Shadow != nil && r.Shadow.Stopped != "" {
			out = append(out, fmt.Sprintf("In shadow, %s compares no more: %s", r.Name, r.Shadow.Stopped))
		}
	}
	return out
}

// waitForReplicas waits until every replica runs the bundle, and prints its state.
func (b *Bundles) waitForReplicas(cmd *cobra.Command, name string, patience time.Duration) error {
	if patience <= 0 {
		return nil
	}
	of, err := b.waitUntilConverged(cmd.Context(), name, patience)
	if err != nil {
		return err
	}
	printBundleState(cmd.OutOrStdout(), of)
	if !IsReady(of) {
		return exit.RefusalError(errors.New("the bundle is not what its spec says"))
	}
	return nil
}

func printBundleState(out io.Writer, of v1alpha1.AnyPolicyBundle) {
	st := of.GetStatus()
	fmt.Fprintf(out, "%s: %s %d of %d replicas run it.\n", of.GetName(), FindCondition(of, v1alpha1.PolicyBundleReady).Message, len(st.Replicas)-outdatedReplicas(st), len(st.Replicas))
}
