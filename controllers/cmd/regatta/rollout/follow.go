// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// errDeleted says that the object that is followed was deleted. Another object of its name may exist.
var errDeleted = errors.New("the object was deleted")

// follower calls a function with each state of an object.
type follower struct {
	client dynamic.ResourceInterface
	// look returns true with the last state that it wants.
	look func(*unstructured.Unstructured) (bool, error)
	// every is the time between two watches, and between two reads if the object cannot be watched.
	every time.Duration
	// patience is for how long the API server may fail to answer.
	patience time.Duration
}

// followObject begins with a state that was read. It returns when look has returned true or an error, with
// errDeleted when the object is deleted, and with the error of the context when that ends.
func (f follower) followObject(ctx context.Context, live *unstructured.Unstructured) error {
	for {
		if done, err := f.look(live); done || err != nil {
			return err
		}
		if done, err := f.watchFrom(ctx, live); done || err != nil {
			return err
		}
		if err := waitFor(ctx, f.every); err != nil {
			return err
		}
		var err error
		if live, err = f.readAgain(ctx, live); err != nil {
			return err
		}
	}
}

// watchFrom watches the object until look returns true. It returns false when the watch ends before that, for
// whatever reason: the object has to be read again.
func (f follower) watchFrom(ctx context.Context, live *unstructured.Unstructured) (bool, error) {
	watching, err := f.client.Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", live.GetName()).String(), ResourceVersion: live.GetResourceVersion(),
	})
	if err != nil {
		return false, ctx.Err()
	}
	defer watching.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case event, open := <-watching.ResultChan():
			next, ok := event.Object.(*unstructured.Unstructured)
			switch {
			case !open || !ok || event.Type == watch.Error:
				return false, nil
			case event.Type == watch.Bookmark: // has a resource version only
				continue
			case event.Type == watch.Deleted || next.GetUID() != live.GetUID():
				return false, errDeleted
			}
			if done, err := f.look(next); done || err != nil {
				return done, err
			}
		}
	}
}

// readAgain reads the object once the API server answers.
func (f follower) readAgain(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for began := time.Now(); ; {
		next, err := f.client.Get(ctx, live.GetName(), metav1.GetOptions{})
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case apierrors.IsNotFound(err), err == nil && next.GetUID() != live.GetUID():
			return nil, errDeleted
		case err == nil:
			return next, nil
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), time.Since(began) >= f.patience:
			return nil, fmt.Errorf("reading %s %s: %w", live.GetKind(), live.GetName(), err)
		}
		if err := waitFor(ctx, f.every); err != nil {
			return nil, err
		}
	}
}

// waitFor waits, unless the context ends before.
func waitFor(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}
