// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/statusthrottle"
)

// WriteStatus writes a status, a pointer as Type.Status returns, unless the workload has
// it already. If only counts change, it writes it at most once per
// StatusInterval, so that a user's update of an object that was just read does not meet a
// conflict each time; a later round writes it.
func (r *Round) WriteStatus(ctx context.Context, next any) error {
	now := r.c.typ.Status(r.Workload)
	if equality.Semantic.DeepEqual(next, now) {
		return nil
	}
	if wait := statusthrottle.WriteDelay(now, next, r.c.StatusInterval, r.c.Now().Sub(r.memory.statusWritten)); wait > 0 {
		r.RequeueAfter(wait)
		return nil
	}
	patch, err := statusPatch(r.Workload.GetUID(), now, next)
	if err != nil {
		return err
	}
	if err = r.c.Client.Status().Patch(ctx, r.Workload, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("writing status: %w", err)
	}
	r.memory.statusWritten = r.c.Now()
	return nil
}

// statusPatch writes the whole status and removes fields that it does not have any more. A patch of the difference
// would omit counts that are zero, which the schema requires.
func statusPatch(uid types.UID, last, next any) ([]byte, error) {
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(next)
	if err != nil {
		return nil, fmt.Errorf("encoding status: %w", err)
	}
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(last)
	if err != nil {
		return nil, fmt.Errorf("encoding status: %w", err)
	}
	for k := range before {
		if _, ok := after[k]; !ok {
			after[k] = nil
		}
	}
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": after})
}
