// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/test/perf/report"
	"github.com/regatta-sh/regatta/test/perf/stand"
)

const (
	// targetLabel is on the namespaces that get copies.
	targetLabel = "perf.regatta.sh/copies"
	// copied is the name of both objects, and of their distributions with the kind in front.
	copied = "copied"
	// together is how many requests a client has under way at once.
	together = 20
)

// kinds are what is distributed.
func kinds() []string { return []string{"Secret", "ConfigMap"} }

type distribution struct {
	stand.Options
	namespaces int
	later      int
	bytes      int
}

func (d *distribution) measure(ctx context.Context, s *stand.Stand, out io.Writer) error {
	if err := d.prepare(ctx, s); err != nil {
		return err
	}
	if err := s.NodesKnown(ctx); err != nil {
		return err
	}
	var phases []stand.Phase
	for _, phase := range []struct {
		name string
		do   func(context.Context, *kruise.ResourceDistribution) error
	}{
		{"create", func(ctx context.Context, o *kruise.ResourceDistribution) error { return s.Client.Create(ctx, o) }},
		{"change the data", func(ctx context.Context, o *kruise.ResourceDistribution) error {
			return s.Client.Patch(ctx, o, client.Merge)
		}},
	} {
		p, err := s.Measure(ctx, phase.name, d.namespaces, func(ctx context.Context) error {
			for _, kind := range kinds() {
				o, err := d.object(kind, phase.name)
				if err != nil {
					return err
				}
				if err := phase.do(ctx, o); err != nil {
					return fmt.Errorf("writing the distribution of a %s: %w", kind, err)
				}
			}
			return nil
		}, func(ctx context.Context) (bool, error) { return d.served(ctx, s, d.namespaces) })
		if err != nil {
			return err
		}
		phases = append(phases, p)
	}
	late, took, err := d.serveLater(ctx, s)
	if err != nil {
		return err
	}
	phases = append(phases, late)
	var rows [][]string
	for _, p := range phases {
		rows = append(rows, p.Row())
	}
	fmt.Fprintf(out, "%s\nA namespace that comes later has both copies %s after it was created (p50 / p99 / most of %d).\n\n%s",
		report.Markdown(stand.Header("namespace"), rows), stand.Times(took), d.later, stand.Requests(phases))
	return nil
}

// prepare makes the namespaces, and waits until the controller manager has done with them.
func (d *distribution) prepare(ctx context.Context, s *stand.Stand) error {
	if err := stand.All(d.namespaces, together, func(i int) error {
		if err := s.Client.Create(ctx, namespace(fmt.Sprintf("copies-%d", i))); err != nil {
			return fmt.Errorf("making a namespace: %w", err)
		}
		return nil
	}); err != nil {
		return err
	}
	return s.Await(ctx, fmt.Sprintf("%d namespaces", d.namespaces), func(ctx context.Context) (bool, error) {
		all := &metav1.PartialObjectMetadataList{}
		all.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
		if err := s.Client.List(ctx, all, client.MatchingFields{"metadata.name": "kube-root-ca.crt"}); err != nil {
			return false, fmt.Errorf("listing ConfigMaps: %w", err)
		}
		return len(all.Items) >= d.namespaces, nil
	})
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{targetLabel: "true"}}}
}

// object is the distribution of a kind, with a word at the beginning of the data.
func (d *distribution) object(kind, word string) (*kruise.ResourceDistribution, error) {
	meta := metav1.ObjectMeta{Name: copied}
	text := (word + strings.Repeat(".", d.bytes))[:max(d.bytes, len(word))]
	var resource any = &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}, ObjectMeta: meta, Data: map[string]string{"key": text}}
	if kind == "Secret" {
		resource = &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kind}, ObjectMeta: meta, Data: map[string][]byte{"key": []byte(text)}}
	}
	raw, err := json.Marshal(resource)
	if err != nil {
		return nil, fmt.Errorf("writing a %s: %w", kind, err)
	}
	o := &kruise.ResourceDistribution{
		TypeMeta:   metav1.TypeMeta{APIVersion: kruise.GroupVersion.String(), Kind: "ResourceDistribution"},
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(kind)},
	}
	o.Spec.Resource = runtime.RawExtension{Raw: raw}
	o.Spec.Targets.NamespaceSelector = metav1.LabelSelector{MatchLabels: map[string]string{targetLabel: "true"}}
	return o, nil
}

func nameOf(kind string) string { return strings.ToLower(kind) + "-" + copied }

// served says whether both distributions say that so many namespaces have what their spec is now.
func (d *distribution) served(ctx context.Context, s *stand.Stand, namespaces int) (bool, error) {
	for _, kind := range kinds() {
		o := &kruise.ResourceDistribution{}
		if err := s.Client.Get(ctx, client.ObjectKey{Name: nameOf(kind)}, o); err != nil {
			return false, fmt.Errorf("reading the distribution of a %s: %w", kind, err)
		}
		if o.Status.ObservedGeneration != o.Generation || int(o.Status.Succeeded) != namespaces {
			return false, nil
		}
	}
	return true, nil
}

// serveLater makes more namespaces, one when the one before has both copies, and says how long each had to wait for them.
func (d *distribution) serveLater(ctx context.Context, s *stand.Stand) (stand.Phase, []time.Duration, error) {
	var mu sync.Mutex
	at := map[string]time.Time{} // by namespace and kind
	see := func(kind string, o client.Object) {
		if o.GetName() != copied {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		at[o.GetNamespace()+"/"+kind] = time.Now()
	}
	if err := stand.Follow(ctx, s, &corev1.Secret{}, func(before, now *corev1.Secret) {
		if before == nil {
			see("Secret", now)
		}
	}); err != nil {
		return stand.Phase{}, nil, err
	}
	if err := stand.Follow(ctx, s, &corev1.ConfigMap{}, func(before, now *corev1.ConfigMap) {
		if before == nil {
			see("ConfigMap", now)
		}
	}); err != nil {
		return stand.Phase{}, nil, err
	}
	var took []time.Duration
	p, err := s.Measure(ctx, "namespaces that come later", d.later, func(ctx context.Context) error {
		for i := range d.later {
			name := fmt.Sprintf("later-%d", i)
			if err := s.Client.Create(ctx, namespace(name)); err != nil {
				return fmt.Errorf("making a namespace: %w", err)
			}
			start, waited := time.Now(), time.Duration(0)
			if err := stand.Until(ctx, func(context.Context) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				for _, kind := range kinds() {
					one, ok := at[name+"/"+kind]
					if !ok {
						return false, nil
					}
					waited = max(waited, one.Sub(start))
				}
				return true, nil
			}); err != nil {
				return fmt.Errorf("waiting for the copies in %s: %w", name, err)
			}
			took = append(took, waited)
		}
		return nil
	}, func(ctx context.Context) (bool, error) { return d.served(ctx, s, d.namespaces+d.later) })
	return p, took, err
}
