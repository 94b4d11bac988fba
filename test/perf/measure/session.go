// SPDX-License-Identifier: Apache-2.0

// Package measure has workloads created, updated and deleted, and says what
// that took.
package measure

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/regatta-sh/regatta/test/perf/target"
	"github.com/regatta-sh/regatta/test/perf/watch"
	"github.com/regatta-sh/regatta/test/perf/workload"
)

// Settings are what all phases have in common.
type Settings struct {
	Pods         int
	Subsets      int // of each UnitedDeployment
	NodeSelector map[string]string
	// Settle is for how long nothing may change before the next phase; until
	// then writes are counted.
	Settle time.Duration
	// Limit is how long a phase may take.
	Limit time.Duration
	// Idle is how long kinds that are measured so are left alone.
	Idle time.Duration
	Out  io.Writer
}

// A Session is a namespace that things are measured in.
type Session struct {
	Settings
	target    *target.Target
	typed     kubernetes.Interface
	objects   dynamic.Interface
	namespace string
	nodes     int // that pods may be on
	zones     []string
	watcher   *watch.Watcher
	stop      context.CancelFunc
}

// New makes a namespace and watches it.
func New(ctx context.Context, t *target.Target, s Settings, kinds ...workload.Kind) (*Session, error) {
	binary := rest.CopyConfig(t.Config)
	binary.ContentType, binary.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	typed, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	objects, err := dynamic.NewForConfig(t.Config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	nodes, err := typed.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("counting the nodes: %w", err)
	}
	t.Cluster.Nodes = len(nodes.Items)
	m := &Session{Settings: s, target: t, typed: typed, objects: objects}
	for _, node := range nodes.Items {
		if labels.SelectorFromSet(s.NodeSelector).Matches(labels.Set(node.Labels)) {
			m.nodes++
			if zone := node.Labels[corev1.LabelTopologyZone]; zone != "" && !slices.Contains(m.zones, zone) {
				m.zones = append(m.zones, zone)
			}
		}
	}
	slices.Sort(m.zones)
	if err := m.makeNamespace(ctx); err != nil {
		return nil, err
	}
	var resources []watch.Resource
	for _, kind := range kinds {
		for _, part := range kind.Parts() {
			one := watch.Resource{GroupVersionResource: part.Resource, Cluster: part.Cluster}
			if !slices.Contains(resources, one) {
				resources = append(resources, one)
			}
		}
	}
	if err := calm(ctx, t); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	m.stop = stop
	if m.watcher, err = watch.New(watching, typed, objects, m.namespace, workload.GroupLabel, resources...); err != nil {
		stop()
		return nil, err
	}
	return m, nil
}

// makeNamespace waits for the account without which pods are refused.
func (m *Session) makeNamespace(ctx context.Context) error {
	made, err := m.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "perf-"}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making a namespace: %w", err)
	}
	m.namespace = made.Name
	for {
		_, err := m.typed.CoreV1().ServiceAccounts(m.namespace).Get(ctx, "default", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			if err != nil {
				return fmt.Errorf("waiting for the default service account: %w", err)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Close deletes the namespace.
func (m *Session) Close(ctx context.Context) error {
	m.stop()
	background := metav1.DeletePropagationBackground
	if err := m.typed.CoreV1().Namespaces().Delete(ctx, m.namespace, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		return fmt.Errorf("deleting the namespace %s: %w", m.namespace, err)
	}
	return nil
}

func (m *Session) client(part workload.Part) dynamic.ResourceInterface {
	if part.Cluster {
		return m.objects.Resource(part.Resource)
	}
	return m.objects.Resource(part.Resource).Namespace(m.namespace)
}

// name is that of the objects of the only workload of a kind. What is in no namespace
// may be there from another time.
func (m *Session) name(kind workload.Kind) string {
	if slices.ContainsFunc(kind.Parts(), func(p workload.Part) bool { return p.Cluster }) {
		return kind.ID() + "-" + m.namespace
	}
	return kind.ID()
}

func (m *Session) shape(kind workload.Kind, name string) workload.Shape {
	return workload.Shape{Name: name, Namespace: m.namespace, Pods: m.pods(kind), NodeSelector: m.NodeSelector, Zones: m.zones, Subsets: m.Subsets}
}

// pods is how many a workload of this kind has.
func (m *Session) pods(kind workload.Kind) int {
	if kind.PerNode {
		return m.nodes
	}
	return m.Pods
}
