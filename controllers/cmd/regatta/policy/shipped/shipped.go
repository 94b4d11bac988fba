// SPDX-License-Identifier: Apache-2.0

// Package shipped has the commands about bundles in a cluster: to print their state, to compare two
// revisions, and to promote a revision or roll it back.
package shipped

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/regatta-sh/regatta/controllers/api/policy/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
	"github.com/regatta-sh/regatta/controllers/policybundle/bundlerevision"
	"github.com/regatta-sh/regatta/engine/bundle"
)

// Load reads the bundle at a path of this machine.
type Load func(path string) (*bundle.Bundle, error)

// NewCommands returns the commands status, diff, promote and rollback.
func NewCommands(load Load) []*cobra.Command {
	return []*cobra.Command{newStatusCommand(), newDiffCommand(load), newPromoteCommand(), newRollbackCommand()}
}

// where has the flags of all commands: the cluster, and which bundles are meant.
type where struct {
	cluster *target.Cluster
	manager string
}

func (w *where) addFlags(cmd *cobra.Command) {
	w.cluster = target.NewCluster()
	w.cluster.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&w.manager, "manager-namespace", "kruise-system", "namespace of the manager, where bundles of the platform are kept")
}

// connectCluster connects to the cluster. If a namespace is named, the bundles are PolicyBundles.
func (w *where) connectCluster(cmd *cobra.Command) (*Bundles, error) {
	config, err := w.cluster.RESTConfig()
	if err != nil {
		return nil, err
	}
	b, err := NewBundles(config, w.manager)
	if err != nil {
		return nil, err
	}
	if f := cmd.Flags().Lookup("namespace"); f != nil && f.Changed {
		return b.OfNamespace(f.Value.String()), nil
	}
	return b, nil
}

// findBundle finds one bundle.
func (w *where) findBundle(cmd *cobra.Command, name string) (*Bundles, v1alpha1.AnyPolicyBundle, error) {
	b, err := w.connectCluster(cmd)
	if err != nil {
		return nil, nil, err
	}
	of, err := b.getBundle(cmd.Context(), name)
	return b, of, err
}

// Bundles are those of a cluster.
type Bundles struct {
	objects   dynamic.Interface
	core      kubernetes.Interface
	manager   string
	namespace string // of tenants' bundles; empty for those of the platform
}

// NewBundles finds the bundles of the platform; their archives are in the namespace
// of the manager.
func NewBundles(config *rest.Config, manager string) (*Bundles, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &Bundles{objects: objects, core: core, manager: manager}, nil
}

func (b *Bundles) bundleResource() dynamic.ResourceInterface {
	if b.namespace != "" {
		return b.objects.Resource(v1alpha1.GroupVersion.WithResource("policybundles")).Namespace(b.namespace)
	}
	return b.objects.Resource(v1alpha1.GroupVersion.WithResource("clusterpolicybundles"))
}

func (b *Bundles) kindPrefix() string {
	if b.namespace != "" {
		return "PolicyBundle " + b.namespace + "/"
	}
	return "ClusterPolicyBundle "
}

// noBundlesMessage says that there are no bundles of the kind that was asked for.
func (b *Bundles) noBundlesMessage() string {
	if b.namespace != "" {
		return "There are no PolicyBundles in namespace " + b.namespace + "."
	}
	return "There are no ClusterPolicyBundles; -n NAMESPACE is for the PolicyBundles of a namespace."
}

func (b *Bundles) decodeBundle(u *unstructured.Unstructured) (v1alpha1.AnyPolicyBundle, error) {
	var out v1alpha1.AnyPolicyBundle = &v1alpha1.ClusterPolicyBundle{}
	if b.namespace != "" {
		out = &v1alpha1.PolicyBundle{}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("reading %s%s: %w", b.kindPrefix(), u.GetName(), err)
	}
	return out, nil
}

func (b *Bundles) getBundle(ctx context.Context, name string) (v1alpha1.AnyPolicyBundle, error) {
	u, err := b.bundleResource().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no %s%s", b.kindPrefix(), name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s%s: %w", b.kindPrefix(), name, err)
	}
	return b.decodeBundle(u)
}

func (b *Bundles) listBundles(ctx context.Context) ([]v1alpha1.AnyPolicyBundle, error) {
	list, err := b.bundleResource().List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) && b.namespace == "" {
		return nil, fmt.Errorf("listing policy bundles: %w\nThese are the bundles of the platform; -n NAMESPACE is for those of a namespace", err)
	}
	if err != nil {
		return nil, fmt.Errorf("listing policy bundles: %w", err)
	}
	out := make([]v1alpha1.AnyPolicyBundle, len(list.Items))
	for i := range list.Items {
		if out[i], err = b.decodeBundle(&list.Items[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// loadRevision reads a stored revision.
func (b *Bundles) loadRevision(ctx context.Context, of v1alpha1.AnyPolicyBundle, a *v1alpha1.PolicyArtifact, opts ...bundle.Option) (*bundle.Bundle, error) {
	namespace := b.manager
	if ns := of.GetNamespace(); ns != "" {
		namespace = ns
		opts = append(opts, bundle.AsTenant(ns))
	}
	rev, err := b.core.AppsV1().ControllerRevisions(namespace).Get(ctx, a.KeptIn, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading revision %s: %w", a.Revision, err)
	}
	c, err := bundlerevision.Read(rev.Data.Raw, a.Digest)
	if err != nil {
		return nil, fmt.Errorf("reading revision %s: ControllerRevision %s/%s %w", a.Revision, namespace, a.KeptIn, err)
	}
	return bundle.FromArchive(of.GetName(), bytes.NewReader(c.Archive), nil, opts...)
}

// OfNamespace returns the PolicyBundles of a namespace.
func (b *Bundles) OfNamespace(namespace string) *Bundles {
	own := *b
	own.namespace = namespace
	return &own
}

// DecidingBundles are the bundles that the managers run: those that are enforced, canaries in their namespaces, and
// those that are withheld, whose decisions are refused or held.
func (b *Bundles) DecidingBundles(ctx context.Context) (bundle.Set, error) {
	all, err := b.listBundles(ctx)
	if err != nil {
		return nil, err
	}
	var out bundle.Set
	add := func(of v1alpha1.AnyPolicyBundle, a *v1alpha1.PolicyArtifact, opts ...bundle.Option) error {
		if a == nil {
			return nil
		}
		if a.Mode == v1alpha1.PolicyModeCanary {
			opts = append(opts, bundle.AsCanary(a.Namespaces...))
		}
		found, err := b.loadRevision(ctx, of, a, opts...)
		if err != nil {
			return err
		}
		out = append(out, found)
		return nil
	}
	for _, of := range all {
		status := of.GetStatus()
		candidate := status.Candidate
		if candidate != nil && candidate.Mode != v1alpha1.PolicyModeCanary { // a shadow decides nothing
			candidate = nil
		}
		if err := errors.Join(add(of, status.Active), add(of, candidate), add(of, status.Withheld, bundle.AsWithheld())); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// EnforcedBundles are the bundles of the platform that decide everywhere, by name.
func (b *Bundles) EnforcedBundles(ctx context.Context) (bundle.Set, error) {
	all, err := b.listBundles(ctx)
	if err != nil {
		return nil, err
	}
	var out bundle.Set
	for _, of := range all {
		if a := of.GetStatus().Active; a != nil {
			found, err := b.loadRevision(ctx, of, a)
			if err != nil {
				return nil, err
			}
			out = append(out, found)
		}
	}
	return out, nil
}

// KeptBundles are all revisions that the cluster keeps of all bundles, of the platform and of all namespaces. A revision that cannot be
// read is left out, and is among the warnings.
func (b *Bundles) KeptBundles(ctx context.Context) (kept bundle.Set, warnings []error, err error) {
	all, err := b.listBundles(ctx)
	if err != nil {
		return nil, nil, err
	}
	list, err := b.objects.Resource(v1alpha1.GroupVersion.WithResource("policybundles")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("listing the policy bundles of all namespaces: %w", err)
	}
	for i := range list.Items {
		of, err := b.OfNamespace(list.Items[i].GetNamespace()).decodeBundle(&list.Items[i])
		if err != nil {
			return nil, nil, err
		}
		all = append(all, of)
	}
	for _, of := range all {
		for _, a := range of.GetStatus().AllArtifacts() {
			found, err := b.loadRevision(ctx, of, a)
			if err != nil {
				warnings = append(warnings, fmt.Errorf("%s: %w", describeBundle(of), err))
				continue
			}
			kept = append(kept, found)
		}
	}
	return kept, warnings, nil
}

// describeBundle names a bundle with its kind.
func describeBundle(of v1alpha1.AnyPolicyBundle) string {
	name := of.GetName()
	if ns := of.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return v1alpha1.KindOf(of).Kind + " " + name
}

// patchSpec changes the spec, and no field that another client has changed meanwhile.
func (b *Bundles) patchSpec(ctx context.Context, name, patch string) error {
	_, err := b.bundleResource().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "regatta", FieldValidation: metav1.FieldValidationStrict})
	if apierrors.IsInvalid(err) {
		return exit.UsageError(err)
	}
	if err != nil {
		return fmt.Errorf("changing %s%s: %w", b.kindPrefix(), name, err)
	}
	return nil
}

// waitUntilConverged waits until the leader has observed the spec and every replica runs it.
func (b *Bundles) waitUntilConverged(ctx context.Context, name string, patience time.Duration) (v1alpha1.AnyPolicyBundle, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		of, err := b.getBundle(ctx, name)
		if err == nil && isStatusCurrent(of) && outdatedReplicas(of.GetStatus()) == 0 {
			return of, nil
		}
		select {
		case <-ctx.Done():
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				return nil, err
			}
			return of, fmt.Errorf("not all replicas of the manager ran it after %s; see regatta policy status %s", patience, name)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// isStatusCurrent reports whether the status is of the spec.
func isStatusCurrent(of v1alpha1.AnyPolicyBundle) bool {
	return of.GetStatus().ObservedGeneration == of.GetGeneration()
}

// outdatedReplicas is how many replicas do not run the active revision of the status.
func outdatedReplicas(st *v1alpha1.PolicyBundleStatus) (n int) {
	enforced, tried := "", ""
	if st.Active != nil {
		enforced = st.Active.Revision
	}
	if st.Candidate != nil {
		tried = st.Candidate.Revision
	}
	for _, r := range st.Replicas {
		if r.Revision != enforced || r.Candidate != tried {
			n++
		}
	}
	return n
}
