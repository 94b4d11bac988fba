// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/workload/statusthrottle"
)

// ownStatus is the status that we last wrote.
type ownStatus struct {
	// stored is an object with that status and its resource version, and nothing else.
	stored client.Object
	// unknown is true when the answer to a write was lost: what is stored may be the old
	// status or the new one.
	unknown bool
	// written is when that was.
	written time.Time
}

// overlayStatus replaces the status of a workload that the cache shows as it was before our
// last write of it.
func (s *ownStatus) overlayStatus(workload client.Object, of func(client.Object) any) {
	if s.stored == nil {
		return
	}
	order, err := resourceversion.CompareResourceVersion(workload.GetResourceVersion(), s.stored.GetResourceVersion())
	if err == nil && order < 0 {
		copyStatus(of, workload, s.stored)
	}
}

func copyStatus(of func(client.Object) any, to, from client.Object) {
	from = from.DeepCopyObject().(client.Object)
	reflect.ValueOf(of(to)).Elem().Set(reflect.ValueOf(of(from)).Elem())
}

// WriteStatus writes a status, which is a pointer like that of Type.Status, unless it is
// that of the workload already. Where only counts change it is not written more often than
// WithStatusEvery says, so that a user's update of what was read just now does not meet a
// conflict each time; the round after that writes it.
func (r *Round) WriteStatus(ctx context.Context, next any) error {
	now := r.c.typ.Status(r.Workload)
	if !r.memory.status.unknown && equality.Semantic.DeepEqual(next, now) {
		return nil
	}
	if !r.memory.status.unknown {
		if wait := statusthrottle.WriteDelay(now, next, r.c.StatusInterval, r.c.Now().Sub(r.memory.status.written)); wait > 0 {
			r.RequeueAfter(wait)
			return nil
		}
	}
	patch, err := statusPatch(r.Workload.GetUID(), now, next)
	if err != nil {
		return err
	}
	err = r.c.Client.Status().Patch(ctx, r.Workload, client.RawPatch(types.MergePatchType, patch))
	if err != nil {
		r.memory.status.unknown = r.memory.status.unknown || IsIndeterminate(err)
		return fmt.Errorf("writing status: %w", err)
	}
	stored := r.c.typ.New()
	stored.SetResourceVersion(r.Workload.GetResourceVersion())
	copyStatus(r.c.typ.Status, stored, r.Workload)
	r.memory.status = ownStatus{stored: stored, written: r.c.Now()}
	return nil
}

// statusPatch writes the whole status and takes off what it has no more. A difference
// would leave out counts that are zero, which the schema requires.
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
