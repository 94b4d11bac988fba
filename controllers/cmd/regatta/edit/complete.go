// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

// The shell waits for a completion, so the cluster is asked for a limited number of names, and not for long.
const (
	completionLimit   = 500
	completionTimeout = 2 * time.Second
)

// AddCompletion makes the shell complete the objects that a command takes and its flag --namespace. A command
// that takes one object gets no completion after it.
func AddCompletion(cmd *cobra.Command, cluster *target.Cluster, allowed []Kind, severalObjects bool) {
	cmd.ValidArgsFunction = completeObjects(cluster, allowed, severalObjects)
	if cmd.Flags().Lookup("namespace") != nil {
		_ = cmd.RegisterFlagCompletionFunc("namespace", completeNamespaces(cluster)) // fails without the flag only
	}
}

// completeObjects completes kinds, such as clone/, and then the names of objects of the cluster. After a kind
// without a slash it completes names.
func completeObjects(cluster *target.Cluster, allowed []Kind, severalObjects bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		word, _, slash := strings.Cut(toComplete, "/")
		prefix := word + "/"
		switch {
		case len(args) > 0 && !strings.Contains(args[0], "/"):
			if slash || len(args) > 1 && !severalObjects {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			word, prefix = args[0], ""
		case len(args) > 0 && !severalObjects:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case !slash:
			return completeKinds(allowed, word), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		kind, err := findKind(word, allowed)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := completeNames(cmd, cluster, kind.GroupVersionResource, kind.ClusterScoped, prefix, toComplete)
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeKinds returns the first name of each kind that begins with what was typed.
func completeKinds(allowed []Kind, typed string) []cobra.Completion {
	var out []cobra.Completion
	for _, k := range allowed {
		for _, name := range k.Names {
			if strings.HasPrefix(name, strings.ToLower(typed)) {
				out = append(out, cobra.CompletionWithDesc(name+"/", DescribeKind(k)))
				break
			}
		}
	}
	return out
}

// completeNamespaces completes the names of namespaces.
func completeNamespaces(cluster *target.Cluster) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, toComplete string) ([]cobra.Completion, cobra.ShellCompDirective) {
		namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
		return completeNames(cmd, cluster, namespaces, true, "", toComplete), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNames returns the names of objects, after a prefix, that begin with what was typed. There are none if
// the cluster does not answer in time.
func completeNames(
	cmd *cobra.Command, cluster *target.Cluster, resource schema.GroupVersionResource, clusterScoped bool, prefix, typed string,
) []cobra.Completion {
	config, err := cluster.RESTConfig()
	if err != nil {
		return nil
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	var client metadata.ResourceInterface = objects.Resource(resource)
	if !clusterScoped {
		about, err := cluster.ResolveNamespace(target.Target{})
		if err != nil {
			return nil
		}
		client = objects.Resource(resource).Namespace(about.Namespace)
	}
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, completionTimeout)
	defer cancel()
	list, err := client.List(ctx, metav1.ListOptions{Limit: completionLimit})
	if err != nil {
		return nil
	}
	var out []cobra.Completion
	for i := range list.Items {
		if name := prefix + list.Items[i].Name; strings.HasPrefix(name, typed) {
			out = append(out, name)
		}
	}
	return out
}
