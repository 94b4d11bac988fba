// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	policyv1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/policy/shipped"
)

// revisionForm is the form of revisions, which stand in commands to copy.
var revisionForm = regexp.MustCompile("^[0-9a-f]{6,64}$")

// bundleRow is a bundle of policies.
type bundleRow struct {
	Type       string                          `json:"type"`
	Kind       string                          `json:"kind"`
	Namespace  string                          `json:"namespace,omitempty"`
	Name       string                          `json:"name"`
	Mode       policyv1alpha1.PolicyMode       `json:"mode"`
	Namespaces []string                        `json:"namespaces,omitempty"`
	Ready      bool                            `json:"ready"`
	Reason     string                          `json:"reason,omitempty"`
	Message    string                          `json:"message,omitempty"`
	Stages     []metav1.Condition              `json:"stages,omitempty"`
	Errors     []string                        `json:"errors,omitempty"`
	Active     *policyv1alpha1.PolicyArtifact  `json:"active,omitempty"`
	Candidate  *policyv1alpha1.PolicyArtifact  `json:"candidate,omitempty"`
	Withheld   *policyv1alpha1.PolicyArtifact  `json:"withheld,omitempty"`
	History    []policyv1alpha1.PolicyArtifact `json:"history,omitempty"`
	Replicas   []policyv1alpha1.PolicyReplica  `json:"replicas,omitempty"`
	Shadow     *policyv1alpha1.PolicyShadow    `json:"shadow,omitempty"`
	Commands   []command                       `json:"commands,omitempty"`
}

func (c *collector) openPolicies(ctx context.Context) page {
	return newGroupPage(c.startGroup(ctx, &c.policies, func(feed *changeFeed) []*watcher {
		return c.openWatchers(feed,
			watchedResource{policyv1alpha1.GroupVersion.WithResource("clusterpolicybundles"), true},
			watchedResource{policyv1alpha1.GroupVersion.WithResource("policybundles"), false})
	}), collectBundles)
}

func collectBundles(g *watchGroup) []row {
	var objects []*unstructured.Unstructured
	for _, w := range g.watchers {
		objects = append(objects, listObjects[*unstructured.Unstructured](w)...)
	}
	return g.cache.rowsOf(objects, func(o *unstructured.Unstructured) row {
		id := strings.Join([]string{"bundle", o.GetNamespace(), o.GetName()}, "/")
		bundle, err := readBundle(o)
		if err != nil {
			return newProblemRow(id, err)
		}
		return row{id, newBundleRow(bundle)}
	})
}

func readBundle(object *unstructured.Unstructured) (policyv1alpha1.AnyPolicyBundle, error) {
	var bundle policyv1alpha1.AnyPolicyBundle = &policyv1alpha1.ClusterPolicyBundle{}
	if object.GetNamespace() != "" {
		bundle = &policyv1alpha1.PolicyBundle{}
	}
	return bundle, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, bundle)
}

func newBundleRow(b policyv1alpha1.AnyPolicyBundle) bundleRow {
	spec, st := b.DesiredSpec(), b.GetStatus()
	ready := shipped.FindCondition(b, policyv1alpha1.PolicyBundleReady)
	out := bundleRow{
		Type: "bundle", Kind: policyv1alpha1.KindOf(b).Kind, Namespace: b.GetNamespace(), Name: b.GetName(),
		Mode: spec.Mode, Namespaces: spec.Namespaces, Ready: shipped.IsReady(b), Reason: ready.Reason, Message: ready.Message,
		Errors: st.Errors, Active: st.Active, Candidate: st.Candidate, Withheld: st.Withheld, History: st.History,
		Replicas: st.Replicas, Shadow: shipped.SumShadow(st),
	}
	for _, stage := range policyv1alpha1.PolicyBundleStages() {
		out.Stages = append(out.Stages, shipped.FindCondition(b, stage))
	}
	in := ""
	if out.Namespace != "" {
		in = " -n " + out.Namespace
	}
	if spec.Mode != policyv1alpha1.PolicyModeEnforce || spec.RollbackTo != "" {
		out.Commands = append(out.Commands, command{"promote", "regatta policy promote " + out.Name + in, shipped.PromotionBlockers(b)})
	}
	if len(st.History) > 0 && spec.RollbackTo == "" && revisionForm.MatchString(st.History[0].Revision) {
		out.Commands = append(out.Commands, command{Purpose: "rollback", Line: "regatta policy rollback " + out.Name + in + " --to " + st.History[0].Revision})
	}
	out.Commands = append(out.Commands, command{Purpose: "stages", Line: "regatta policy status " + out.Name + in})
	return out
}
