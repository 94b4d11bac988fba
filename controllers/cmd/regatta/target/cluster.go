// SPDX-License-Identifier: Apache-2.0

package target

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Cluster finds the cluster as kubectl does.
type Cluster struct {
	flags    *genericclioptions.ConfigFlags
	watching bool
}

// NewCluster makes a Cluster from the environment.
func NewCluster() *Cluster {
	f := genericclioptions.NewConfigFlags(true)
	f.CacheDir = nil // discovery is hardly used
	// The command must not send a password to a manager. A manager that is asked directly does not support
	// impersonation, which a kubeconfig may set. The command replay has another flag named --as.
	f.Username, f.Password = nil, nil
	f.Impersonate, f.ImpersonateUID, f.ImpersonateGroup, f.ImpersonateUserExtra = nil, nil, nil, nil
	f.Insecure = nil // the kubeconfig has it, and managers.Flags has a flag of that name
	return &Cluster{flags: f}
}

// WithoutNamespace leaves out the flag for a namespace, for commands about the cluster as a whole.
func (c *Cluster) WithoutNamespace() *Cluster {
	c.flags.Namespace = nil
	return c
}

// WithoutTimeout removes the timeout of the clients that OpenClients makes, for commands that watch: a
// watch lasts longer than a request may take.
func (c *Cluster) WithoutTimeout() *Cluster {
	c.watching = true
	return c
}

// AddFlags adds the flags of kubectl.
func (c *Cluster) AddFlags(fs *pflag.FlagSet) { c.flags.AddFlags(fs) }

// RESTConfig is the configuration of clients of the cluster.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	if raw, err := c.flags.ToRawKubeConfigLoader().RawConfig(); err == nil && clientcmdapi.IsConfigEmpty(&raw) && *c.flags.APIServer == "" && config.BearerTokenFile == "" {
		// Without this error client-go would use its default, which is for developers of Kubernetes.
		return nil, errors.New("finding the cluster: there is no kubeconfig; name one with --kubeconfig or in KUBECONFIG")
	}
	config.UserAgent = "regatta"
	config.QPS, config.Burst = 50, 100 // the defaults are for long-running programs
	config.WarningHandler = rest.NoWarnings{}
	return config, nil
}

// ResolveNamespace sets the namespace of a target to the one that the user asked for.
func (c *Cluster) ResolveNamespace(t Target) (Target, error) {
	namespace, _, err := c.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return Target{}, fmt.Errorf("finding the namespace: %w", err)
	}
	t.Namespace = namespace
	return t, nil
}

// FindTarget reads KIND/NAME or KIND NAME of an object of any kind that the cluster has. A namespaced
// object is in the namespace that the user asked for.
func (c *Cluster) FindTarget(args []string) (Target, error) {
	t, err := ParseArgs(args, KnownKinds()...)
	var other *UnknownKindError
	if err == nil {
		return c.ResolveNamespace(t)
	}
	if !errors.As(err, &other) {
		return Target{}, err
	}
	mapper, err := c.flags.ToRESTMapper()
	if err != nil {
		return Target{}, fmt.Errorf("asking what the cluster has: %w", err)
	}
	resource, found := schema.ParseResourceArg(other.Word)
	if resource == nil {
		resource = &schema.GroupVersionResource{Group: found.Group, Resource: found.Resource}
	}
	kind, err := mapper.KindFor(*resource)
	if meta.IsNoMatchError(err) {
		return Target{}, fmt.Errorf("the cluster has no kind %q; kubectl api-resources lists those it has", other.Word)
	}
	if err != nil {
		return Target{}, fmt.Errorf("finding what %q is: %w", other.Word, err)
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return Target{}, fmt.Errorf("finding what %q is: %w", other.Word, err)
	}
	t = Target{Resource: mapping.Resource.GroupResource().String(), Name: other.Name}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.ResolveNamespace(t)
	}
	return t, nil
}
