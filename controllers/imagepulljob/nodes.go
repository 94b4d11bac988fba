// SPDX-License-Identifier: Apache-2.0

package imagepulljob

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
	"github.com/regatta-sh/regatta/controllers/workload/versions"
)

// written are the NodeImages as they were written, until the cache shows them, so that no more nodes
// begin than are allowed.
type written struct {
	mu    sync.Mutex
	nodes map[string]*kruise.NodeImage
}

func (w *written) rememberWrite(image *kruise.NodeImage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[image.Name] = image
}

// overlayWrites lays the writes over the objects of a cache. It forgets a write that the cache shows,
// or whose NodeImage is gone.
func (w *written) overlayWrites(cached []*kruise.NodeImage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.nodes) == 0 {
		return
	}
	still := make(map[string]*kruise.NodeImage, len(w.nodes))
	for i, image := range cached {
		mine := w.nodes[image.Name]
		if mine != nil && versions.IsNewer(mine, image) {
			cached[i] = mine
			still[image.Name] = mine
		}
	}
	w.nodes = still
}

// listNodeImages returns all NodeImages, sorted by name. The caller must not change them.
func (r *Reconciler) listNodeImages(ctx context.Context) ([]*kruise.NodeImage, error) {
	list := &kruise.NodeImageList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodeImages: %w", err)
	}
	out := make([]*kruise.NodeImage, 0, len(list.Items))
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			out = append(out, &list.Items[i])
		}
	}
	r.written.overlayWrites(out)
	slices.SortFunc(out, func(a, b *kruise.NodeImage) int { return cmp.Compare(a.Name, b.Name) })
	return out, nil
}

// selectNodes is IMG-01: the nodes of the fleet that a job covers.
func (r *Reconciler) selectNodes(ctx context.Context, job *kruise.ImagePullJob, fleet []*kruise.NodeImage) ([]*kruise.NodeImage, error) {
	var names sets.Set[string]
	var selector labels.Selector
	switch s := job.Spec.Selector; {
	case job.Spec.PodSelector != nil:
		var err error
		if names, err = r.nodesOfPods(ctx, job); err != nil {
			return nil, err
		}
	case s == nil:
		return fleet, nil
	case len(s.Names) > 0:
		names = sets.New(s.Names...)
	default:
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(&s.LabelSelector); err != nil {
			return nil, fmt.Errorf("reading spec.selector: %w", err)
		}
	}
	var out []*kruise.NodeImage
	for _, image := range fleet {
		if names.Has(image.Name) || selector != nil && selector.Matches(labels.Set(image.Labels)) {
			out = append(out, image)
		}
	}
	return out, nil
}

// nodesOfPods returns the nodes of the active pods that a job selects.
func (r *Reconciler) nodesOfPods(ctx context.Context, job *kruise.ImagePullJob) (sets.Set[string], error) {
	selector, err := metav1.LabelSelectorAsSelector(job.Spec.PodSelector)
	if err != nil {
		return nil, fmt.Errorf("reading spec.podSelector: %w", err)
	}
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.InNamespace(job.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pods of spec.podSelector: %w", err)
	}
	out := sets.New[string]()
	for i := range pods.Items {
		if node := nodeOf(&pods.Items[i]); node != "" {
			out.Insert(node)
		}
	}
	return out, nil
}

// nodeOf is the node of an active pod, empty for any other.
func nodeOf(pod *corev1.Pod) string {
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return ""
	}
	return pod.Spec.NodeName
}
