// SPDX-License-Identifier: Apache-2.0

package managers

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/regatta-sh/regatta/controllers/explain"
)

// UndecidedError says that managers answered, but none has decided anything about the object.
type UndecidedError struct{ Question Question }

func (e *UndecidedError) Error() string {
	if q := e.Question; q.Kind == "" {
		return fmt.Sprintf("no manager remembers refusing anything about %s that you may know of; they remember the last 2,000 refusals each, until they are restarted", q)
	}
	return fmt.Sprintf("no manager has decided anything about %s; one that has just begun to lead comes to it in a moment", e.Question)
}

// RefusedError says that the caller lacks a permission, and which one.
type RefusedError struct {
	Replica string
	// Resource is the resource of the API that was requested. If Asking is true, the caller may not
	// request it; otherwise the caller may not get the object that the request is about.
	Resource string
	Asking   bool
	Code     int
	Message  string
}

func (e *RefusedError) Error() string {
	if e.Code == http.StatusUnauthorized {
		return fmt.Sprintf("%s does not know you: %s. If your credentials have expired, log in again", e.Replica, e.Message)
	}
	needs := "Only users who may get the object itself may ask why something was decided"
	switch {
	case e.Asking && e.Resource == explain.Decisions:
		needs = "A cluster administrator can let you read records of decisions:\n  kubectl create clusterrolebinding decisions-readers --clusterrole=kruise-decisions-reader --user=YOU"
	case e.Asking && e.Resource == explain.ClusterExplanations:
		needs = "A cluster administrator can let you ask about objects of the whole cluster:\n  kubectl create clusterrolebinding decision-readers --clusterrole=kruise-decision-reader --user=YOU"
	case e.Asking:
		needs = "Users with the ClusterRole view, edit, admin or kruise-decision-reader in a namespace may ask about what is there; name it with -n. To grant it:\n  kubectl -n NAMESPACE create rolebinding decision-readers --clusterrole=kruise-decision-reader --user=YOU"
	}
	return fmt.Sprintf("%s refuses: %s. %s", e.Replica, e.Message, needs)
}

// explainError says what an error means for the user who requested a resource.
func (a *Asker) explainError(replica, resource string, err error) error {
	var from apierrors.APIStatus
	if !errors.As(err, &from) {
		return err
	}
	status := from.Status()
	unexpected := apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
	direct := len(a.flags.Endpoints) > 0
	switch {
	case status.Code == http.StatusUnauthorized, status.Code == http.StatusForbidden:
		asking := status.Details != nil && status.Details.Group == explain.Group
		return &RefusedError{Replica: replica, Resource: resource, Asking: asking, Code: int(status.Code), Message: status.Message}
	case direct && unexpected:
		return fmt.Errorf("it answers %d, and is hardly a manager, or one that does not serve %s yet", status.Code, explain.APIPath)
	case !direct && status.Code == http.StatusNotFound:
		return fmt.Errorf("it has no API %s: install Regatta with the value manager.decisions.apiService.enabled=true, or ask a manager itself with --endpoint", explain.Group)
	case !direct && (status.Code == http.StatusServiceUnavailable || status.Code == http.StatusBadGateway):
		return fmt.Errorf("the API %s is not available: the managers do not run, are not ready, or cannot be reached by the API server; the status of the APIService says which: kubectl get apiservice %s -o yaml", explain.Group, explain.APIService)
	}
	return err
}
