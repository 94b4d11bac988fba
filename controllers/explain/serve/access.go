// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/regatta-sh/regatta/controllers/explain"
)

// authenticateCaller returns the caller. If it returns false, it has written a response.
func (s *Server) authenticateCaller(w http.ResponseWriter, req *http.Request) (user.Info, bool) {
	who, ok, err := s.Who.AuthenticateRequest(req)
	if err != nil || !ok {
		writeFailure(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, schema.GroupResource{}, "the API server does not know the caller; use the credentials of your kubeconfig")
		return nil, false
	}
	return who.User, true
}

// authorizeUser returns the caller, if the API allows the request: what the API server checks before it passes a
// request on is checked here too, for requests that do not come through it. Otherwise it has written a response.
func (s *Server) authorizeUser(w http.ResponseWriter, req *http.Request, verb, resource, name string) (user.Info, bool) {
	who, ok := s.authenticateCaller(w, req)
	if !ok {
		return nil, false
	}
	about := authorizer.AttributesRecord{
		User: who, Verb: verb, APIGroup: explain.Group, APIVersion: explain.Version, Resource: resource,
		Namespace: req.PathValue("namespace"), Name: name, ResourceRequest: true,
	}
	if reason, ok := s.isAllowed(req.Context(), about); !ok {
		s.writeForbidden(w, about, reason)
		return nil, false
	}
	return who, true
}

// authorizePeer lets other managers in: callers that may get the path. Otherwise it has written a
// response.
func (s *Server) authorizePeer(w http.ResponseWriter, req *http.Request, path string) bool {
	who, ok := s.authenticateCaller(w, req)
	if !ok {
		return false
	}
	about := authorizer.AttributesRecord{User: who, Verb: "get", Path: path}
	reason, ok := s.isAllowed(req.Context(), about)
	if !ok {
		s.writeForbidden(w, about, reason)
	}
	return ok
}

// objectAttributes are the attributes of a request to get an object.
func objectAttributes(who user.Info, about schema.GroupResource, namespace, name string) authorizer.AttributesRecord {
	return authorizer.AttributesRecord{
		User: who, Verb: "get", APIGroup: about.Group, APIVersion: "*", Resource: about.Resource, Namespace: namespace, Name: name, ResourceRequest: true,
	}
}

func (s *Server) isAllowed(ctx context.Context, about authorizer.AttributesRecord) (reason string, ok bool) {
	verdict, reason, err := s.May.Authorize(ctx, about)
	return reason, err == nil && verdict == authorizer.DecisionAllow
}

// writeForbidden writes a response that names the permission that the caller lacks.
func (s *Server) writeForbidden(w http.ResponseWriter, about authorizer.AttributesRecord, reason string) {
	resource := schema.GroupResource{Group: about.APIGroup, Resource: about.Resource}
	what := about.Path
	if about.ResourceRequest {
		what = resource.String() + " " + strings.TrimPrefix(about.Namespace+"/"+about.Name, "/")
	}
	message := fmt.Sprintf("%s may not %s %s", nameOf(about.User), about.Verb, strings.TrimSpace(what))
	if reason != "" {
		message += ": " + reason
	}
	writeFailure(w, http.StatusForbidden, metav1.StatusReasonForbidden, resource, message)
}

func nameOf(u user.Info) string {
	if u == nil {
		return "an anonymous user"
	}
	return u.GetName()
}

// writeFailure responds as the API server does. about is the resource that the failure is about.
func writeFailure(w http.ResponseWriter, code int32, reason metav1.StatusReason, about schema.GroupResource, message string) {
	writeJSON(w, int(code), metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: code, Reason: reason, Message: message,
		Details: &metav1.StatusDetails{Group: about.Group, Kind: about.Resource},
	})
}

func writeJSON(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // it fails only if the caller has closed the connection
}
