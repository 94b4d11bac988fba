// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/cmd/regatta/preflight"
	"github.com/regatta-sh/regatta/controllers/kubeversion"
)

// inspector reads a cluster and gathers findings.
type inspector struct {
	client.Client
	Options
	asked    discovery.ServerVersionInterface
	server   *kversion.Info
	rendered []client.Object
	manager  appsv1.Deployment

	now   func() time.Time
	pause func(context.Context, time.Duration)

	mu     sync.Mutex
	report Report
}

func newInspector(config *rest.Config, o Options) (*inspector, error) {
	s, err := preflight.NewScheme()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = o.Timeout
	c, err := client.New(config, client.Options{Scheme: s})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	asked, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &inspector{
		Client: c, Options: o, asked: asked, now: time.Now, pause: waitFor,
		report: Report{Schema: Schema, Client: o.Program.Regatta, Namespace: o.Namespace, Findings: []Finding{}},
	}, nil
}

// waitFor waits, and returns early if the context ends.
func waitFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (i *inspector) addFinding(f Finding) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.report.Findings = append(i.report.Findings, f)
}

// askServer makes a request that has a deadline of its own.
func (i *inspector) askServer(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, i.Timeout)
	defer cancel()
	return request(ctx)
}

// addError adds a finding about a request that failed. If the user may not read the object, the finding is Unknown; every other
// failure is a fault of the cluster.
func (i *inspector) addError(check, object, verb string, err error) {
	f := Finding{Blocks, check, object, verb, "the request failed: " + err.Error(), "look at kubectl get --raw '/readyz?verbose', or give it longer with --timeout"}
	switch {
	case apierrors.IsForbidden(err):
		f.Status, f.Message, f.Fix = Unknown, "you may not "+verb+" it: "+err.Error(), "ask a cluster administrator to run this, or for the permission to "+verb+" it"
	case apierrors.IsUnauthorized(err):
		f.Message, f.Fix = "the API server does not know you", "log in again"
	case errors.Is(err, context.DeadlineExceeded):
		f.Message = fmt.Sprintf("no answer in %s", i.Timeout)
	}
	i.addFinding(f)
}

// listPages reads a list in pages, so that a cluster with many objects does not send them at once, and calls page for each one. It returns
// false, and adds a finding, if the list cannot be read.
func (i *inspector) listPages(ctx context.Context, check, object string, list client.ObjectList, page func(), opts ...client.ListOption) bool {
	const most = 500
	for token := ""; ; {
		err := i.askServer(ctx, func(ctx context.Context) error {
			return i.List(ctx, list, append([]client.ListOption{client.Limit(most), client.Continue(token)}, opts...)...)
		})
		if err != nil {
			i.addError(check, object, "list", err)
			return false
		}
		page()
		if token = list.GetContinue(); token == "" {
			return true
		}
	}
}

// findVersion fails if no API server can be reached.
func (i *inspector) findVersion(ctx context.Context) error {
	var server *kversion.Info
	err := i.askServer(ctx, func(context.Context) (err error) {
		server, err = i.asked.ServerVersion()
		return err
	})
	var status apierrors.APIStatus
	if err != nil && !errors.As(err, &status) {
		return errNoAPIServer(err)
	}
	if err != nil {
		i.addError("kubernetes", "Kubernetes", "version", err)
		return nil
	}
	i.server, i.report.Kubernetes = server, server.GitVersion
	if err := kubeversion.CheckSupported(server); err != nil {
		i.addFinding(Finding{Blocks, "kubernetes", "Kubernetes", "version", err.Error(), "upgrade Kubernetes first"})
		return nil
	}
	minor, _ := kubeversion.ParseMinor(server) // Check read it
	less := kubeversion.ListDegraded(minor)
	for _, what := range less {
		i.addFinding(Finding{Warns, "kubernetes", "Kubernetes", "version", server.GitVersion + ": " + what, ""})
	}
	if len(less) == 0 {
		i.addFinding(Finding{Fine, "kubernetes", "Kubernetes", "version", fmt.Sprintf("%s; 1.%d or newer is supported", server.GitVersion, kubeversion.OldestMinor), ""})
	}
	return nil
}

// nameOf returns the name of an object as users write it.
func nameOf(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// nameSome joins the first few names.
func nameSome(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// containersOf are all containers of a pod.
func containersOf(spec *corev1.PodSpec) []corev1.Container {
	return append(append([]corev1.Container{}, spec.InitContainers...), spec.Containers...)
}
