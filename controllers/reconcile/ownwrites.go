// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"maps"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ownWrites has the resource version of the last status that a controller wrote to each object, until its
// cache shows it. A controller compares the status that it computes with the one in the cache, and does not
// reconcile its own writes. With a cache that is late, counts that go down and up again would look unchanged:
// the status would stay as it was in between, and no event would follow.
type ownWrites struct {
	now func() time.Time

	mu       sync.Mutex
	kinds    map[reflect.Type]bool // those of the objects that the controller reconciles
	versions map[types.UID]ownWrite
	swept    time.Time
}

type ownWrite struct {
	version string
	at      time.Time
}

// patience is how long a cache may take to show a write. Versions go back when a cluster is restored from a
// backup, so that there must be an end.
const patience = time.Minute

func newOwnWrites(now func() time.Time) *ownWrites {
	return &ownWrites{now: now, kinds: map[reflect.Type]bool{}, versions: map[types.UID]ownWrite{}}
}

// isBehind reports whether an object of the cache is older than the last status that was written to it. Writes to
// objects of its kind are recorded from then on.
func (w *ownWrites) isBehind(o client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kinds[reflect.TypeOf(o)] = true
	own, ok := w.versions[o.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), own.version)
	if err == nil && order < 0 && w.now().Sub(own.at) < patience {
		return true
	}
	delete(w.versions, o.GetUID())
	return false
}

// recordWrite notes that the status of an object was written.
func (w *ownWrites) recordWrite(o client.Object, before string) {
	if o.GetUID() == "" || o.GetResourceVersion() == before { // nothing changed
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.kinds[reflect.TypeOf(o)] {
		return
	}
	now := w.now()
	if now.Sub(w.swept) >= patience { // some are of objects that are gone
		maps.DeleteFunc(w.versions, func(_ types.UID, own ownWrite) bool { return now.Sub(own.at) >= patience })
		w.swept = now
	}
	w.versions[o.GetUID()] = ownWrite{version: o.GetResourceVersion(), at: now}
}

// recordingClient is a client whose writes of statuses are recorded.
type recordingClient struct {
	client.Client
	writes *ownWrites
}

// Status implements client.StatusClient.
func (c recordingClient) Status() client.SubResourceWriter {
	return recordingWriter{c.Client.Status(), c.writes}
}

type recordingWriter struct {
	client.SubResourceWriter
	writes *ownWrites
}

// Update implements client.SubResourceWriter.
func (w recordingWriter) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	before := o.GetResourceVersion()
	err := w.SubResourceWriter.Update(ctx, o, opts...)
	if err == nil {
		w.writes.recordWrite(o, before)
	}
	return err
}

// Patch implements client.SubResourceWriter.
func (w recordingWriter) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	before := o.GetResourceVersion()
	err := w.SubResourceWriter.Patch(ctx, o, patch, opts...)
	if err == nil {
		w.writes.recordWrite(o, before)
	}
	return err
}
