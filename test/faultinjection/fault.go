// SPDX-License-Identifier: Apache-2.0

package faultinjection

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Call is one call of a controller to the API server.
type Call struct {
	// Number counts from 1.
	Number int
	// Verb is get, list, create, update, patch, apply, delete or deletecollection.
	Verb        string
	Kind        string
	Subresource string
	Key         types.NamespacedName
	// GenerateName is of an object that is created without a name.
	GenerateName string
}

func (c Call) String() string {
	kind := c.Kind
	if c.Subresource != "" {
		kind += "/" + c.Subresource
	}
	return fmt.Sprintf("call %d: %s %s %s", c.Number, c.Verb, kind, c.Key)
}

// sameAs reports whether a call is another one of the same kind.
func (c Call) sameAs(other Call) bool {
	c.Number, other.Number = 0, 0
	return c == other
}

// IsWrite reports whether the call changes something.
func (c Call) IsWrite() bool { return c.Verb != "get" && c.Verb != "list" }

// Fault is how a call fails.
type Fault string

// The faults.
const (
	InternalError    Fault = "an internal error"
	Conflict         Fault = "a conflict"
	NotFound         Fault = "an object that is not found"
	LateRead         Fault = "a cache that does not have the object yet"
	LostAnswer       Fault = "a write whose answer is lost"
	DeadlineExceeded Fault = "a deadline that is exceeded"
	Refused          Fault = "a refusal"
)

func allFaults() []Fault {
	return []Fault{InternalError, Conflict, NotFound, LateRead, LostAnswer, DeadlineExceeded}
}

// appliesTo reports whether a call can fail so. What is not found is never the object of a request: nothing is left to do
// for one that is gone. A delete of what is gone has succeeded.
func (f Fault) appliesTo(s *Scenario, c Call) bool {
	primary := slices.ContainsFunc(s.Requests, func(r reconcile.Request) bool { return r.NamespacedName == c.Key })
	switch f {
	case Conflict:
		return c.IsWrite() && c.Verb != "create"
	case NotFound:
		return c.IsWrite() && c.Verb != "delete" && c.Verb != "deletecollection" && !primary
	case LateRead:
		return c.Verb == "get" && !primary && !slices.Contains(s.NoLateReads, c.Kind)
	case LostAnswer, Refused:
		return c.IsWrite()
	}
	return true
}

// carryOut makes a call that fails.
func (f Fault) carryOut(c Call, do func() error) error {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: c.Kind})
	resource := plural.GroupResource()
	switch f {
	case Conflict:
		return apierrors.NewConflict(resource, c.Key.Name, errors.New("another client wrote first"))
	case NotFound, LateRead:
		return apierrors.NewNotFound(resource, c.Key.Name)
	case LostAnswer:
		if err := do(); err != nil {
			return err
		}
		return apierrors.NewServerTimeout(resource, c.Verb, 1)
	case DeadlineExceeded:
		return fmt.Errorf("client: %w", context.DeadlineExceeded)
	case Refused:
		name := c.Key.Name
		if name == "" && c.GenerateName != "" { // webhooks and quotas are asked when it is drawn
			name = c.GenerateName + rand.String(5)
		}
		return apierrors.NewForbidden(resource, name, errors.New("an admission webhook refuses it"))
	}
	return apierrors.NewInternalError(errors.New("etcd has no leader"))
}
