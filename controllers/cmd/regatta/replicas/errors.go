// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/regatta-sh/regatta/controllers/explain"
)

// errUndecided is the answer of a replica that does not lead, or has not got to
// the object yet.
var errUndecided = errors.New("this replica has decided nothing about it")

// UndecidedError says that replicas answered, and none has decided anything.
type UndecidedError struct {
	Question Question
	Replicas int
}

func (e *UndecidedError) Error() string {
	if q := e.Question; q.Kind == "" {
		return fmt.Sprintf("no manager remembers refusing anything about %s (%d asked); they remember the last 2,000 refusals each, until they are restarted", q, e.Replicas)
	}
	return fmt.Sprintf("no manager has decided anything about %s (%d asked); one that has just begun to lead comes to it in a moment", e.Question, e.Replicas)
}

// RefusedError says that the caller lacks a permission, and which one.
type RefusedError struct {
	Replica string
	Path    string // what was asked for
	Code    int
	Message string
}

func (e *RefusedError) Error() string {
	if e.Code == http.StatusUnauthorized {
		return fmt.Sprintf("%s does not know you: %s. It takes the bearer tokens and the client certificates that the API server takes; if yours have expired, log in again", e.Replica, e.Message)
	}
	needs := "Only users who may get the object itself may ask why something was decided"
	if e.Path == explain.DecisionsPath {
		needs = "Only users who have the ClusterRole kruise-decisions-reader may read records of decisions"
	}
	return fmt.Sprintf("%s refuses: %s. %s", e.Replica, strings.TrimSuffix(strings.TrimSpace(e.Message), ":"), needs)
}

// ForbiddenError says that the API server does not let them through to the
// managers.
type ForbiddenError struct {
	Namespace string
	Err       error
}

func (e *ForbiddenError) Error() string {
	return fmt.Sprintf(`%v
The Role kruise-decision-reader in namespace %s allows it. A cluster administrator can grant it to you:
  kubectl -n %[2]s create rolebinding decision-readers --role=kruise-decision-reader --user=YOU`, e.Err, e.Namespace)
}

func (e *ForbiddenError) Unwrap() error { return e.Err }

// forbidden tells what is needed where the API server says no.
func forbidden(namespace string, err error) error {
	if apierrors.IsForbidden(err) {
		return &ForbiddenError{namespace, err}
	}
	return err
}
