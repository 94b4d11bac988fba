// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/features"
	crecovery "github.com/regatta-sh/regatta/controllers/recovery"
	"github.com/regatta-sh/regatta/nodeagent/containermeta"
	"github.com/regatta-sh/regatta/nodeagent/credentials"
	"github.com/regatta-sh/regatta/nodeagent/cri"
	"github.com/regatta-sh/regatta/nodeagent/images"
	"github.com/regatta-sh/regatta/nodeagent/probes"
	"github.com/regatta-sh/regatta/nodeagent/restarts"
)

// cacheSyncTimeout is how long the agent waits for CRDs and permissions. A restart of the agent would
// not help while they are missing.
const cacheSyncTimeout = 24 * time.Hour

// NewScheme makes a scheme with every kind that the agent reads or writes, and few others: each costs
// memory on every node.
func NewScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, kruise.AddToScheme} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	s.AddKnownTypes(v1alpha1.GroupVersion, &v1alpha1.NodePodProbe{}, &v1alpha1.NodePodProbeList{})
	metav1.AddToGroupVersion(s, v1alpha1.GroupVersion)
	return s, nil
}

// newRESTMapper makes a mapper with the scopes of the kinds that the agent reads and writes. Discovery
// in the API server would take memory for all kinds of the cluster, and would require that the CRDs
// are installed.
func newRESTMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	m.Add(kruise.GroupVersion.WithKind("ContainerRecreateRequest"), meta.RESTScopeNamespace)
	m.Add(kruise.GroupVersion.WithKind("NodeImage"), meta.RESTScopeRoot)
	m.Add(v1alpha1.GroupVersion.WithKind("NodePodProbe"), meta.RESTScopeRoot)
	return m
}

// Run runs the agent until ctx is done.
func Run(ctx context.Context, o *Options, restConfig *rest.Config) (err error) {
	ctrl.SetLogger(klog.Background())
	scheme, err := NewScheme()
	if err != nil {
		return err
	}
	restConfig = rest.CopyConfig(restConfig)
	restConfig.QPS, restConfig.Burst, restConfig.UserAgent = o.QPS, o.Burst, "kruise-daemon"
	h := &health{probes: o.Gates.Enabled(features.PodProbeMarkerGate) || o.Gates.Enabled(features.EnhancedLivenessProbe)}
	crecovery.SetUpProcess()
	mgr, err := ctrl.NewManager(restConfig, o.managerOptions(scheme, h))
	if err != nil {
		return fmt.Errorf("making the agent: %w", err)
	}
	h.cache = mgr.GetCache()
	node := cri.NewNode(cri.CandidateEndpoints(o.sockets, o.SocketFile)...)
	defer func() { err = errors.Join(err, node.Close()) }()
	if _, err := node.ListRuntimes(ctx); err != nil {
		klog.ErrorS(err, "Nothing can be done on this node until a container runtime answers")
	}
	var opts []restarts.Option
	if o.env.address != "" {
		opts = append(opts, restarts.WithAddress(o.env.address))
	}
	agent := restarts.New(mgr.GetClient(), mgr.GetAPIReader(), node, mgr.GetEventRecorderFor(kruise.ContainerRecreateRequestComponent), opts...)
	if err := agent.SetupWithManager(mgr); err != nil {
		return err
	}
	logins, err := credentials.LoadProviders(o.PluginConfig, o.PluginDirectory)
	if err != nil {
		klog.ErrorS(err, "No credential provider is asked, and images that need one are not pulled. Correct the file and restart the agent")
	}
	puller := images.New(ctx, mgr.GetClient(), mgr.GetAPIReader(), node, mgr.GetEventRecorderFor(kruise.ImagePullerComponent),
		images.WithWorkers(o.PullWorkers), images.WithCredentials(logins.ImageLogins))
	if err := puller.SetupWithManager(mgr); err != nil {
		return err
	}
	if h.probes {
		prober := probes.New(ctx, mgr.GetClient(), node, mgr.GetEventRecorderFor(probes.Component))
		if err := prober.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	if err := o.containerMeta(mgr, node); err != nil {
		return err
	}
	klog.InfoS("Starting", "node", o.env.node)
	return mgr.Start(ctx)
}

// containerMeta adds the agent that follows the pods of the node, if the gate DaemonWatchingPod is on.
func (o *Options) containerMeta(mgr ctrl.Manager, node *cri.Node) error {
	if !o.Gates.Enabled(features.DaemonWatchingPod) {
		return nil
	}
	opts := []containermeta.Option{containermeta.WithRestarts(o.Gates.Enabled(features.InPlaceUpdateEnvFromMetadata))}
	if o.env.address != "" {
		opts = append(opts, containermeta.WithAddress(o.env.address))
	}
	agent := containermeta.New(mgr.GetClient(), mgr.GetAPIReader(), node, mgr.GetEventRecorderFor(containermeta.Component), opts...)
	return agent.SetupWithManager(mgr)
}

// managerOptions limits the cache to the objects of this node.
func (o *Options) managerOptions(scheme *runtime.Scheme, h *health) ctrl.Options {
	opts := ctrl.Options{
		NewCache:               crecovery.NewCache,
		Scheme:                 scheme,
		MapperProvider:         func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return newRESTMapper(), nil },
		Metrics:                server.Options{BindAddress: o.Addr, ExtraHandlers: map[string]http.Handler{"/healthz": h}},
		HealthProbeBindAddress: "0",
		Controller:             config.Controller{CacheSyncTimeout: cacheSyncTimeout},
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&kruise.ContainerRecreateRequest{}: {Label: labels.SelectorFromSet(labels.Set{
					kruise.ContainerRecreateRequestNodeNameKey: o.env.node, kruise.ContainerRecreateRequestActiveKey: "true",
				})},
				&corev1.Pod{}:            {Field: fields.OneTermEqualSelector("spec.nodeName", o.env.node)},
				&kruise.NodeImage{}:      {Field: fields.OneTermEqualSelector("metadata.name", o.env.node)},
				&v1alpha1.NodePodProbe{}: {Field: fields.OneTermEqualSelector("metadata.name", o.env.node)},
			},
		},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	}
	if o.Pprof {
		opts.PprofBindAddress = o.PprofAddr
	}
	return opts
}
