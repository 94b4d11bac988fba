// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Shared is one API server for the tests of a package, which take it one after the other: starting one and giving
// it the CRDs takes many times as long as most tests. Each test finds what is there after a start. RunTests
// of a TestMain stops it.
type Shared struct {
	turn      sync.Mutex
	env       *envtest.Environment
	ready     bool                          // env has the CRDs, and the rest is known
	resources []schema.GroupVersionResource // those whose objects can be listed and deleted
	present   sets.Set[types.UID]           // after the start
}

// RunTests runs the tests of a package, stops the API server and ends the process.
func (s *Shared) RunTests(m *testing.M) {
	code := m.Run()
	if s.env != nil {
		if err := s.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the API server:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Serve returns the API server, with the CRDs of the chart, until the test ends, and a client for all kinds. Another test
// that wants it waits. Objects that the test leaves are deleted.
func (s *Shared) Serve(t testing.TB) (*envtest.Environment, client.Client) {
	t.Helper()
	s.turn.Lock()
	t.Cleanup(s.turn.Unlock)
	switch {
	case s.env == nil:
		env := newEnvironment(t)
		if _, err := env.Start(); err != nil {
			t.Fatalf("starting an API server: %v", err)
		}
		s.env = env
		env.Config.QPS, env.Config.Burst = 1000, 1000
		Install(t, env, CRDs(t, ""))
		if err := s.listPresent(t.Context()); err != nil {
			t.Fatalf("listing what is there after a start: %v", err)
		}
		s.ready = true
	case !s.ready:
		t.Fatal("the API server could not be made ready for an earlier test")
	}
	c, err := client.New(s.env.Config, client.Options{Scheme: Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.deleteObjects(ctx); err != nil {
			t.Errorf("deleting what the test left: %v", err)
		}
	})
	return s.env, c
}

// ownedByServer are resources whose objects the API server makes, some of them a while after its start.
var ownedByServer = sets.New("apiservices", "flowschemas", "prioritylevelconfigurations", "servicecidrs", "ipaddresses", "leasecandidates")

func (s *Shared) listPresent(ctx context.Context) error {
	d, err := discovery.NewDiscoveryClientForConfig(s.env.Config)
	if err != nil {
		return err
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, r := range list.APIResources {
			// Events end by themselves.
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && !ownedByServer.Has(r.Name) && r.Name != "events" {
				s.resources = append(s.resources, gv.WithResource(r.Name))
			}
		}
	}
	// First what could have a say in the deletion of the others, last what others are in.
	slices.SortStableFunc(s.resources, func(a, b schema.GroupVersionResource) int { return deletionPhase(a) - deletionPhase(b) })
	s.present = sets.New[types.UID]()
	objects, err := s.listAdded(ctx)
	for _, o := range objects {
		s.present.Insert(o.UID)
	}
	return err
}

func deletionPhase(r schema.GroupVersionResource) int {
	switch {
	case r.Group == "admissionregistration.k8s.io":
		return 0
	case r.Resource == "customresourcedefinitions":
		return 2
	case r.Group == "" && r.Resource == "namespaces":
		return 3
	}
	return 1
}

// added is an object that was not there after the start.
type added struct {
	metav1.PartialObjectMetadata
	resource schema.GroupVersionResource
}

func (s *Shared) listAdded(ctx context.Context) (out []added, err error) {
	c, err := metadata.NewForConfig(s.env.Config)
	if err != nil {
		return nil, err
	}
	for _, r := range s.resources {
		list, err := c.Resource(r).List(ctx, metav1.ListOptions{})
		if apierrors.IsNotFound(err) { // of a CRD that a test added, and that is gone
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", r.Resource, err)
		}
		for _, o := range list.Items {
			// What the API server makes itself may come after its start.
			own := strings.HasPrefix(o.Name, "system:") || o.Namespace == metav1.NamespaceSystem && r.Resource == "leases" ||
				o.Namespace == metav1.NamespaceSystem && (o.Name == "extension-apiserver-authentication" || o.Name == "kube-apiserver-legacy-service-account-token-tracking") ||
				o.Namespace == metav1.NamespaceDefault && o.Name == "kubernetes"
			if !own && !s.present.Has(o.UID) {
				out = append(out, added{o, r})
			}
		}
	}
	return out, nil
}

// deleteObjects returns when all that was added is gone. Nothing else would: there are no controllers.
func (s *Shared) deleteObjects(ctx context.Context) error {
	c, err := metadata.NewForConfig(s.env.Config)
	if err != nil {
		return err
	}
	namespaces, err := kubernetes.NewForConfig(s.env.Config)
	if err != nil {
		return err
	}
	var failed error
	for {
		objects, err := s.listAdded(ctx)
		if err != nil {
			return errors.Join(err, failed)
		}
		if len(objects) == 0 {
			return nil
		}
		failed = nil
		for _, o := range objects {
			ignore := func(err error) {
				// Webhooks are called for a moment after they were deleted.
				if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
					failed = fmt.Errorf("%s %s/%s: %w", o.resource.Resource, o.Namespace, o.Name, err)
				}
			}
			in := c.Resource(o.resource).Namespace(o.Namespace)
			ignore(in.Delete(ctx, o.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}))
			if o.resource.Resource == "namespaces" {
				_, err := namespaces.CoreV1().Namespaces().Finalize(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}, metav1.UpdateOptions{})
				ignore(err)
			}
			if len(o.Finalizers) > 0 && o.resource.Resource != "customresourcedefinitions" {
				_, err := in.Patch(ctx, o.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				ignore(err)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d objects are left: %w", len(objects), errors.Join(ctx.Err(), failed))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
