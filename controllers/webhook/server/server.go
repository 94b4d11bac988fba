// SPDX-License-Identifier: Apache-2.0

// Package server registers Regatta's webhooks with the server of a manager.
package server

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	"github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	workloads "github.com/regatta-sh/regatta/controllers/kinds"
	"github.com/regatta-sh/regatta/controllers/webhook/convert"
	"github.com/regatta-sh/regatta/controllers/webhook/podtemplate"
	"github.com/regatta-sh/regatta/controllers/webhook/policybundle"
	"github.com/regatta-sh/regatta/controllers/webhook/rules"
	"github.com/regatta-sh/regatta/controllers/webhook/statefulset"
)

// Paths that the webhook configurations and CRDs of the chart name (PL-11).
const (
	ConvertPath = "/convert"
	HealthPath  = "/healthz"
)

// Manager has the methods of a controller-runtime manager that are used here.
type Manager interface {
	GetWebhookServer() webhook.Server
	GetScheme() *runtime.Scheme
	GetClient() client.Client
}

// Options are the settings from gates and flags.
type Options struct {
	// KeepTemplates is gate TemplateNoDefaults.
	KeepTemplates bool
	// HostNetworkHostPorts is gate DefaultHostNetworkHostPortsInPodTemplates.
	HostNetworkHostPorts bool
	// NoPrivileged refuses templates with privileged containers (--allow-privileged=false).
	NoPrivileged bool
	// StatefulSets are the gates that decide about the claims of StatefulSets.
	StatefulSets statefulset.Gates
	// PatchAnyMetadata is gate SidecarSetPatchPodMetadataDefaultsAllowed.
	PatchAnyMetadata bool
	// Gates says which feature gates are on. Objects of kinds whose gates are off are refused; nil accepts all kinds.
	Gates func(featuregate.Feature) bool
	// NoBudgets is true if gates PodUnavailableBudgetDeleteGate and PodUnavailableBudgetUpdateGate are both off.
	NoBudgets bool
	// NoSpreads is true if gate WorkloadSpread is off.
	NoSpreads bool
	// Namespace is the namespace of the manager, of its configuration and of the revisions of SidecarSets; kruise-system
	// if empty.
	Namespace string
	// AwaitSidecarSet is called before a SidecarSet is written whose selected pods change; may be nil.
	AwaitSidecarSet func(ctx context.Context, set *v1beta1.SidecarSet) error
	// AwaitObject is called before a WorkloadSpread or a PersistentPodState is created; may be nil.
	AwaitObject rules.Await
	// Bundles checks the inline files of policy bundles; nil admits all files.
	Bundles policybundle.Judge
}

// RegisterWebhooks registers all webhooks with the manager's server. The manager's scheme must have both
// versions of the kinds.
func RegisterWebhooks(manager Manager, options Options) error {
	handlers, err := HandlersByPath(manager.GetScheme(), manager.GetClient(), options)
	if err != nil {
		return err
	}
	for path, handler := range handlers {
		manager.GetWebhookServer().Register(path, handler)
	}
	return nil
}

// HandlersByPath returns all webhooks by path. Pods are read from the client's cache: a pod that the cache does not have yet
// is refused, and accepted a moment later.
func HandlersByPath(scheme *runtime.Scheme, pods client.Client, options Options) (map[string]http.Handler, error) {
	for _, version := range []schema.GroupVersion{v1alpha1.GroupVersion, v1beta1.GroupVersion} {
		for _, w := range workloads.PodOwners() {
			if kind := version.WithKind(w.Kind); !scheme.Recognizes(kind) {
				return nil, fmt.Errorf("registering webhooks: the scheme does not know %s", kind)
			}
		}
	}
	if options.Namespace == "" {
		options.Namespace = "kruise-system"
	}
	templates := podtemplate.Settings{HostNetworkHostPorts: options.HostNetworkHostPorts, NoPrivileged: options.NoPrivileged}
	handlers := map[string]http.Handler{
		ConvertPath: &convert.Handler{Scheme: scheme, Opaque: map[schema.GroupKind][]string{
			v1beta1.Kind("CloneSet"):                 {"template", "volumeClaimTemplates"},
			v1beta1.Kind("ContainerRecreateRequest"): {"containers"},
			v1beta1.Kind("StatefulSet"):              {"template", "volumeClaimTemplates"},
			v1beta1.Kind("DaemonSet"):                {"template"},
			v1beta1.Kind("AdvancedCronJob"):          {"template.jobTemplate", "template.broadcastJobTemplate"},
			v1beta1.Kind("SidecarSet"):               {"containers", "initContainers", "volumes"},
			v1beta1.Kind("UnitedDeployment"):         {"template", "topology"},
			v1beta1.Kind("ResourceDistribution"):     {"resource"},
		}},
		HealthPath: healthz.CheckHandler{Checker: healthz.Ping},
	}
	for name, webhooks := range kindWebhooks(pods, templates, options) {
		addWebhooks(handlers, name, webhooks, options.Gates)
	}
	return handlers, nil
}
