// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/api/apps/v1alpha1"
	kruise "github.com/regatta-sh/regatta/controllers/api/apps/v1beta1"
)

// health answers /healthz: ok once the agent has the objects of its node. A container runtime that
// does not answer is no reason to restart the agent.
type health struct {
	cache cache.Cache
	// probes is true if the agent runs probes.
	probes bool
}

// check is one condition of health.
type check struct {
	name   string
	object client.Object
}

func (h *health) informerChecks() []check {
	out := []check{
		{"nodeImageInformerSynced", &kruise.NodeImage{}},
		{"crrInformerSynced", &kruise.ContainerRecreateRequest{}},
	}
	if h.probes {
		out = append(out, check{"nodePodProbeInformerSynced", &v1alpha1.NodePodProbe{}})
	}
	return out
}

// ServeHTTP implements http.Handler.
func (h *health) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	ctx, cancel := context.WithTimeout(q.Context(), time.Second)
	defer cancel()
	for _, c := range h.informerChecks() {
		if err := h.checkSynced(ctx, c.object); err != nil {
			http.Error(w, fmt.Sprintf("check %s failed, err: %v", c.name, err), http.StatusInternalServerError)
			return
		}
	}
	fmt.Fprint(w, "ok")
}

func (h *health) checkSynced(ctx context.Context, o client.Object) error {
	informer, err := h.cache.GetInformer(ctx, o, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("finding the informer: %w", err)
	}
	if !informer.HasSynced() {
		return errors.New("the objects of this node are not listed yet")
	}
	return nil
}
