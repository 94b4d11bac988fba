// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api"
	"github.com/regatta-sh/regatta/controllers/kubeversion"
)

// ReleaseName and ReleaseNamespace are the annotations in which Helm records the release that owns an object.
const (
	ReleaseName      = "meta.helm.sh/release-name"
	ReleaseNamespace = "meta.helm.sh/release-namespace"
)

// look reads a cluster and gathers the differences.
type look struct {
	client.Reader
	namespace string // of the manager
	version   *version.Info
	manager   appsv1.Deployment
	release   release
	rows      []Row
}

// NewScheme knows the kinds of Kubernetes, CRDs and the kinds of Regatta.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, api.AddToScheme} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return s, nil
}

func (l *look) addRow(r Row) { l.rows = append(l.rows, r) }

// buildReport runs all checks, and sorts the rows, the worst first.
func (l *look) buildReport(ctx context.Context) (Report, error) {
	err := l.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: "kruise-controller-manager"}, &l.manager)
	if apierrors.IsNotFound(err) {
		return l.withoutManager(ctx)
	}
	if err != nil {
		return Report{}, fmt.Errorf("reading the Deployment of the manager: %w", err)
	}
	l.checkKubernetes()
	for _, step := range []func(context.Context) error{l.checkRelease, l.checkCRDs, l.compareWebhooks, l.compareFlags, l.checkObjects} {
		if err := step(ctx); err != nil {
			return Report{}, err
		}
	}
	order := []Effect{Blocks, Differs, Note}
	slices.SortStableFunc(l.rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Effect), slices.Index(order, b.Effect)), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field))
	})
	return Report{Command: l.release.formatUpgradeCommand(), Try: l.release.formatTrialCommand(), Rows: l.rows}, nil
}

// checkKubernetes reports whether the API server is one that Regatta runs on.
func (l *look) checkKubernetes() {
	if kubeversion.CheckSupported(l.version) != nil {
		l.addRow(Row{Effect: Blocks, Object: "Kubernetes", Field: "version", There: l.version.GitVersion, Here: fmt.Sprintf("1.%d or newer", kubeversion.OldestMinor), Do: "upgrade Kubernetes first"})
	}
}

// checkCRDs reports which release owns the CRDs, and in which versions their objects are stored.
func (l *look) checkCRDs(ctx context.Context) error {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := l.List(ctx, list); err != nil {
		return fmt.Errorf("listing CRDs: %w", err)
	}
	known := ServedVersions()
	for i := range list.Items {
		crd := &list.Items[i]
		if crd.Spec.Group != "apps.kruise.io" && crd.Spec.Group != "policy.kruise.io" {
			continue
		}
		object := "CRD " + crd.Name
		versions, ours := known[crd.Spec.Group+"/"+crd.Spec.Names.Kind]
		if !ours {
			l.addRow(Row{Effect: Differs, Object: object, Field: "kind", There: crd.Spec.Names.Kind, Here: "not served", Do: "nothing acts on its objects; keep what does"})
			if l.release.ownsObject(crd) {
				l.addRow(Row{Effect: Blocks, Object: object, Field: "metadata.annotations", There: "of release " + l.release.name, Here: "deleted with its objects, as the chart does not have it",
					Do: "kubectl annotate crd " + crd.Name + " helm.sh/resource-policy=keep, and upgrade OpenKruise's release once with it"})
			}
			continue
		}
		l.checkCRDOwner(crd)
		for _, v := range crd.Status.StoredVersions {
			if !slices.Contains(versions, v) {
				l.addRow(Row{Effect: Blocks, Object: object, Field: "status.storedVersions", There: v, Here: strings.Join(versions, ", "), Do: "migrate the stored objects, and take the version out of the status"})
			}
		}
		if newest := versions[len(versions)-1]; !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == newest }) {
			l.addRow(Row{Effect: Differs, Object: object, Field: "spec.versions", There: "without " + newest, Here: "stored as " + newest, Do: "to go back, migrate the stored objects first: the API server refuses a CRD without a stored version"})
		}
	}
	return nil
}

// checkCRDOwner reports whether Helm adopts a CRD.
func (l *look) checkCRDOwner(crd *apiextensionsv1.CustomResourceDefinition) {
	owner, object := crd.Annotations[ReleaseName], "CRD "+crd.Name
	switch {
	case l.release.name == "" || l.release.ownsObject(crd):
	case owner == "":
		l.addRow(Row{Effect: Blocks, Object: object, Field: "metadata.annotations", There: "of no release", Here: "of release " + l.release.name,
			Do: "add --take-ownership, with Helm 3.17 or newer, or --set crds.managed=false and apply the chart's CRDs yourself"})
	default:
		l.addRow(Row{Effect: Blocks, Object: object, Field: "metadata.annotations", There: "of release " + crd.Annotations[ReleaseNamespace] + "/" + owner, Here: "of release " + l.release.name,
			Do: "let that release go of it with --set crds.managed=false and helm.sh/resource-policy=keep, then add --take-ownership"})
	}
}

// installedHook is a webhook of the cluster, of either kind.
type installedHook struct {
	configuration, name string
	config              admissionv1.WebhookClientConfig
	policy              *admissionv1.FailurePolicyType
	timeout             *int32
	rules               []admissionv1.RuleWithOperations
}

// listWebhooks returns all webhooks of the cluster.
func (l *look) listWebhooks(ctx context.Context) (hooks []installedHook, err error) {
	var mutating admissionv1.MutatingWebhookConfigurationList
	var validating admissionv1.ValidatingWebhookConfigurationList
	for _, list := range []client.ObjectList{&mutating, &validating} {
		if err := l.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing webhook configurations: %w", err)
		}
	}
	for i := range mutating.Items {
		for _, w := range mutating.Items[i].Webhooks {
			hooks = append(hooks, installedHook{"MutatingWebhookConfiguration " + mutating.Items[i].Name, w.Name, w.ClientConfig, w.FailurePolicy, w.TimeoutSeconds, w.Rules})
		}
	}
	for i := range validating.Items {
		for _, w := range validating.Items[i].Webhooks {
			hooks = append(hooks, installedHook{"ValidatingWebhookConfiguration " + validating.Items[i].Name, w.Name, w.ClientConfig, w.FailurePolicy, w.TimeoutSeconds, w.Rules})
		}
	}
	return hooks, nil
}

// compareWebhooks reports how the rules, failure policies and timeouts of the webhooks differ.
func (l *look) compareWebhooks(ctx context.Context) error {
	hooks, err := l.listWebhooks(ctx)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, h := range hooks {
		service := h.config.Service
		if service == nil || service.Namespace != l.namespace || service.Name != "kruise-webhook-service" {
			continue
		}
		object, _, _ := strings.Cut(h.configuration, " kruise-")
		if !strings.HasSuffix(h.configuration, "-webhook-configuration") || object == h.configuration {
			l.addRow(Row{Effect: Differs, Object: h.configuration, Field: h.name, There: "calls kruise-webhook-service", Here: "is not of the chart: its path may not be served", Do: "look what it is for, and delete it"})
			continue
		}
		// OpenKruise has no webhook of policy bundles, and the chart's has a timeout of its own.
		if t := h.timeout; t != nil && !seen["timeout"] && !strings.HasSuffix(h.name, "policybundle.kb.io") {
			if want := l.release.numberValue("webhookConfiguration.timeoutSeconds", 3); int64(*t) != want {
				seen["timeout"] = true
				l.addRow(Row{Effect: Differs, Object: h.configuration, Field: "timeoutSeconds", There: fmt.Sprint(*t), Here: fmt.Sprint(want), Do: fmt.Sprintf("--set webhookConfiguration.timeoutSeconds=%d", *t)})
			}
		}
		pods := slices.ContainsFunc(h.rules, func(r admissionv1.RuleWithOperations) bool {
			return slices.ContainsFunc(r.Resources, func(s string) bool { return s == "pods" || s == "pods/eviction" })
		})
		want := l.release.textValue("webhookConfiguration.failurePolicy.pods", "Ignore")
		if pods && h.policy != nil && string(*h.policy) != want {
			l.addRow(Row{Effect: Differs, Object: h.configuration, Field: h.name + " failurePolicy", There: string(*h.policy), Here: want, Do: "--set webhookConfiguration.failurePolicy.pods=" + string(*h.policy)})
		}
	}
	return nil
}
