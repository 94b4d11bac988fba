// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/edit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/exit"
	"github.com/regatta-sh/regatta/controllers/cmd/regatta/target"
)

// pageSize is how many pods are read in one request.
const pageSize = 500

// podWords are the words of the command line that name a pod.
var podWords = []string{"pod", "pods", "po"}

// podArgument is how a pod is named in the usage line and in messages.
const podArgument = "POD"

// finder finds pods as the commands exec and logs of kubectl do.
type finder struct {
	*edit.Options
	// patience is how long to wait for the first pod of a workload.
	patience time.Duration

	config *rest.Config
	core   corev1client.CoreV1Interface
	// streams is a client without the timeout of a request, for watches and logs.
	streams   corev1client.CoreV1Interface
	namespace string
	// notes is where the user is told what is chosen.
	notes io.Writer
}

func newFinder() *finder { return &finder{Options: edit.NewOptions(kindsWithPods())} }

func (f *finder) addFlags(cmd *cobra.Command, patience time.Duration) {
	f.Cluster.AddFlags(cmd.Flags())
	cmd.Flags().DurationVar(&f.patience, "pod-running-timeout", patience, "how long to wait until the workload has a pod")
	edit.AddCompletion(cmd, f.Cluster, f.Allowed, false)
}

// openCluster makes the clients.
func (f *finder) openCluster(cmd *cobra.Command) error {
	if f.patience <= 0 {
		return exit.UsageErrorf("--pod-running-timeout is %s; want more than 0", f.patience)
	}
	config, err := f.Cluster.RESTConfig()
	if err != nil {
		return err
	}
	about, err := f.Cluster.ResolveNamespace(target.Target{})
	if err != nil {
		return err
	}
	if f.core, err = corev1client.NewForConfig(config); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	long := rest.CopyConfig(config)
	long.Timeout = 0
	if f.streams, err = corev1client.NewForConfig(long); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	f.config, f.namespace, f.notes = config, about.Namespace, cmd.ErrOrStderr()
	return nil
}

// podName returns the name of the pod that an argument names: POD or pod/POD. It is empty for an object of another kind.
func podName(arg string) string {
	word, name, slash := strings.Cut(arg, "/")
	switch {
	case !slash:
		return arg
	case slices.Contains(podWords, strings.ToLower(word)) && !strings.Contains(name, "/"):
		return name
	}
	return ""
}

// parseArgument checks an argument that names a pod or a workload, and returns the workload.
func (f *finder) parseArgument(arg string) (*edit.Reference, error) {
	if podName(arg) != "" {
		return nil, nil
	}
	references, err := f.ParseReferences([]string{arg})
	if err != nil {
		return nil, exit.UsageErrorf("%w, or %s", err, podArgument)
	}
	return &references[0], nil
}

// findPods returns the pod that an argument names, or the pods of the workload that it names. There is one at least.
func (f *finder) findPods(ctx context.Context, arg string) ([]*corev1.Pod, error) {
	reference, err := f.parseArgument(arg)
	if err != nil {
		return nil, err
	}
	if reference == nil {
		pod, err := f.core.Pods(f.namespace).Get(ctx, podName(arg), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Errorf("there is no pod %s in namespace %s", podName(arg), f.namespace)
		case err != nil:
			return nil, fmt.Errorf("reading pod %s: %w", podName(arg), err)
		}
		return []*corev1.Pod{pod}, nil
	}
	objects, err := f.OpenClient()
	if err != nil {
		return nil, err
	}
	found, err := f.Read(ctx, objects, []edit.Reference{*reference})
	if err != nil {
		return nil, err
	}
	selector, err := podSelector(found[0])
	if err != nil {
		return nil, err
	}
	return f.awaitPods(ctx, found[0].String(), selector.String())
}

// awaitPods returns the selected pods. If there are none it waits for the first one.
func (f *finder) awaitPods(ctx context.Context, of, selector string) ([]*corev1.Pod, error) {
	pods, version, err := f.listPods(ctx, selector)
	if err != nil || len(pods) > 0 {
		return pods, err
	}
	fmt.Fprintf(f.notes, "%s has no pod; waiting for one for up to %s\n", of, f.patience)
	none := exit.RefusalErrorf("%s has no pod after %s", of, f.patience)
	ctx, stop := context.WithTimeoutCause(ctx, f.patience, none)
	defer stop()
	events, err := f.streams.Pods(f.namespace).Watch(ctx, metav1.ListOptions{LabelSelector: selector, ResourceVersion: version})
	if err != nil {
		return nil, fmt.Errorf("watching the pods of %s: %w", of, err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted {
			return []*corev1.Pod{pod}, nil
		}
		if event.Type == watch.Error && ctx.Err() == nil {
			return nil, fmt.Errorf("watching the pods of %s: %w", of, apierrors.FromObject(event.Object))
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, errors.New("watching the pods of " + of + ": the API server ended the watch")
}

// listPods returns the selected pods, and the resource version of the list.
func (f *finder) listPods(ctx context.Context, selector string) (out []*corev1.Pod, version string, err error) {
	options := metav1.ListOptions{LabelSelector: selector, Limit: pageSize}
	for {
		page, err := f.core.Pods(f.namespace).List(ctx, options)
		if err != nil {
			return nil, "", fmt.Errorf("listing pods in namespace %s: %w", f.namespace, err)
		}
		for i := range page.Items {
			out = append(out, &page.Items[i])
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return out, page.ResourceVersion, nil
		}
	}
}
