// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a cache may take to show a write. After that the API server is read: the write may be lost,
// because resource versions go back when a cluster is restored from a backup.
const patience = time.Minute

// ownWrites keeps the last status that a controller wrote to each object, until its cache shows it. A controller
// compares the status that it computes with the one in the cache, and does not reconcile its own writes. With a
// late cache, counts that go down and up again would look unchanged. The status would then keep the counts from in
// between, and no event would start another round.
type ownWrites struct {
	now  func() time.Time
	live client.Reader // may be nil

	mu    sync.Mutex
	kinds map[reflect.Type]bool // the types of the objects that the controller reconciles
	last  map[ownKey]ownWrite
	swept time.Time
}

type ownKey struct {
	kind reflect.Type
	name types.NamespacedName
}

type ownWrite struct {
	uid     types.UID
	version string
	// status is the status as the API server answered. It is kept for as long as a cache may take to show it.
	status reflect.Value
	at     time.Time
	// unknown is true when the answer to a later write was lost: that write may or may not have replaced the status.
	unknown bool
}

func newOwnWrites(now func() time.Time, live client.Reader) *ownWrites {
	return &ownWrites{now: now, live: live, kinds: map[reflect.Type]bool{}, last: map[ownKey]ownWrite{}}
}

// statusOf returns the field Status of an object. It is not valid for an object that has none.
func statusOf(o client.Object) reflect.Value {
	v := reflect.ValueOf(o)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return v.Elem().FieldByName("Status")
}

func keyOf(o client.Object) ownKey {
	return ownKey{reflect.TypeOf(o), client.ObjectKeyFromObject(o)}
}

// overlayStatus gives an object from the cache the status that was last written to it, if the object is older.
// From then on, writes to objects of its type are recorded.
func (w *ownWrites) overlayStatus(ctx context.Context, o client.Object) error {
	own, ok := w.findOwn(o)
	if !ok {
		return nil
	}
	if own.unknown || !own.status.IsValid() || w.now().Sub(own.at) >= patience {
		if w.live == nil {
			w.forgetObject(o, client.ObjectKeyFromObject(o))
			return nil
		}
		live, ok := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object) // decoding leaves what an answer lacks
		if !ok {
			return nil
		}
		if err := w.live.Get(ctx, client.ObjectKeyFromObject(o), live); err != nil {
			return fmt.Errorf("reading the status that was last written: %w", err)
		}
		w.setOwn(live)
		own = ownWrite{version: live.GetResourceVersion(), uid: live.GetUID(), status: statusOf(live)}
	}
	if own.uid == o.GetUID() && isOlder(o.GetResourceVersion(), own.version) {
		copied, ok := deepCopyStatus(o, own.status)
		if ok {
			statusOf(o).Set(copied)
		}
	}
	return nil
}

// findOwn returns the last write to an object, if the cache does not show it yet.
func (w *ownWrites) findOwn(o client.Object) (ownWrite, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := keyOf(o)
	w.kinds[key.kind] = true
	own, ok := w.last[key]
	if ok && (own.uid != o.GetUID() || !own.unknown && !isOlder(o.GetResourceVersion(), own.version)) {
		delete(w.last, key)
		return ownWrite{}, false
	}
	return own, ok
}

// isOlder reports whether a resource version is older than another of the same object.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// deepCopyStatus copies a status, by means of an otherwise empty object of the same type.
func deepCopyStatus(o client.Object, status reflect.Value) (reflect.Value, bool) {
	bare, ok := reflect.New(reflect.TypeOf(o).Elem()).Interface().(runtime.Object)
	if !ok {
		return reflect.Value{}, false
	}
	reflect.ValueOf(bare).Elem().FieldByName("Status").Set(status)
	return reflect.ValueOf(bare.DeepCopyObject()).Elem().FieldByName("Status"), true
}

// forgetObject drops what was written to an object that is gone.
func (w *ownWrites) forgetObject(o client.Object, name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.last, ownKey{reflect.TypeOf(o), name})
}

// recordWrite notes how a write of the status of an object ended.
func (w *ownWrites) recordWrite(o client.Object, before string, err error) {
	if !w.isRecorded(o) {
		return
	}
	switch {
	case err == nil && o.GetResourceVersion() != before: // the write changed the object
		w.setOwn(o)
	case IsIndeterminate(err):
		w.mu.Lock()
		defer w.mu.Unlock()
		own := w.last[keyOf(o)]
		own.uid, own.unknown = o.GetUID(), true
		w.last[keyOf(o)] = own
	}
}

func (w *ownWrites) isRecorded(o client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return o.GetUID() != "" && w.kinds[reflect.TypeOf(o)] && statusOf(o).IsValid()
}

// setOwn keeps the status of an object as the API server returned it.
func (w *ownWrites) setOwn(o client.Object) {
	status, ok := deepCopyStatus(o, statusOf(o))
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	if now.Sub(w.swept) >= patience { // most caches show these writes by now
		for key, own := range w.last {
			if now.Sub(own.at) >= patience {
				own.status = reflect.Value{}
				w.last[key] = own
			}
		}
		w.swept = now
	}
	w.last[keyOf(o)] = ownWrite{uid: o.GetUID(), version: o.GetResourceVersion(), status: status, at: now}
}

// IsIndeterminate reports whether an error leaves open whether a write was done: there was no
// answer, or the API server failed while it handled the request.
func IsIndeterminate(err error) bool {
	if err == nil {
		return false
	}
	var status apierrors.APIStatus
	return !errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError
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
	w.writes.recordWrite(o, before, err)
	return err
}

// Patch implements client.SubResourceWriter.
func (w recordingWriter) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	before := o.GetResourceVersion()
	err := w.SubResourceWriter.Patch(ctx, o, patch, opts...)
	w.writes.recordWrite(o, before, err)
	return err
}
