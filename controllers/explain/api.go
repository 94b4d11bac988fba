// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The API that managers serve, which the API server aggregates.
const (
	Group   = "decisions.kruise.io"
	Version = "v1alpha1"
	// APIService is the name of the object that registers the API with the API server.
	APIService = Version + "." + Group
	// APIPath is the path of the resources.
	APIPath = "/apis/" + Group + "/" + Version
)

// Resources of the API. None is stored: managers serve them from memory.
const (
	// Explanations explain objects in a namespace, by the names of the objects (verb get).
	Explanations = "explanations"
	// ClusterExplanations explain objects that are in no namespace, by their names (verb get).
	ClusterExplanations = "clusterexplanations"
	// Refusals are refused requests about objects in a namespace, or about all objects (verb list).
	Refusals = "refusals"
	// Decisions are records of decisions about all namespaces (verb list), as lines in the
	// format of package record, masked.
	Decisions = "decisions"
)

// MaxDecisions is how many decisions a manager returns to one request at most, the latest ones.
const MaxDecisions = 10_000

// Paths at which one manager asks another for what only that manager remembers.
const (
	ReplicaPath          = "/v1/replica/why"
	ReplicaDecisionsPath = "/v1/replica/decisions"
)

// APIResources is the discovery document of the API.
func APIResources() metav1.APIResourceList {
	get, list := metav1.Verbs{"get"}, metav1.Verbs{"list"}
	return metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: Group + "/" + Version,
		APIResources: []metav1.APIResource{
			{Name: ClusterExplanations, SingularName: "clusterexplanation", Kind: "ClusterExplanation", Verbs: get},
			{Name: Decisions, SingularName: "decision", Kind: "Decision", Verbs: list},
			{Name: Explanations, SingularName: "explanation", Namespaced: true, Kind: "Explanation", Verbs: get},
			{Name: Refusals, SingularName: "refusal", Namespaced: true, Kind: "Refusal", Verbs: list},
		},
	}
}

// APIGroup is the discovery document of the group.
func APIGroup() metav1.APIGroup {
	version := metav1.GroupVersionForDiscovery{GroupVersion: Group + "/" + Version, Version: Version}
	return metav1.APIGroup{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"},
		Name:     Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version,
	}
}

// Question is a question to a manager: about an object, about a request, or about the refused requests
// of a user.
type Question struct {
	// Kind is Pod or one of kinds.ActingWorkloads with its Group. For other objects both are empty, and
	// Resource is their kubectl name, such as deployments.apps.
	Group, Kind, Resource string
	// Namespace is the namespace of the object. In a question about requests it selects those in the namespace;
	// empty selects all.
	Namespace, Name string
	// Pods asks for the answers of all pods of a workload as well.
	Pods bool
	// Nearest asks for what would have changed the answer.
	Nearest bool
	// If are facts to be changed, as whatif.ParseChanges reads them: it asks what would change if these were others.
	If []string
	// Request is the UID of an admission request; User selects requests by the user who sent them.
	Request, User string
	// Skip is how many of the latest refusals the asking manager has received already.
	Skip int
}

// AsksForRefusals is true if the question is about requests and not about an object.
func (q Question) AsksForRefusals() bool { return q.Request != "" || q.User != "" }

func (q Question) String() string {
	switch {
	case q.Request != "":
		return "request " + q.Request
	case q.User != "":
		return "requests of " + q.User
	case q.Namespace == "":
		return cmp.Or(q.Kind, q.Resource) + " " + q.Name
	}
	return fmt.Sprintf("%s %s/%s", cmp.Or(q.Kind, q.Resource), q.Namespace, q.Name)
}

// APIResource is the resource of the API that answers the question.
func (q Question) APIResource() schema.GroupResource {
	resource := Explanations
	switch {
	case q.AsksForRefusals():
		resource = Refusals
	case q.Namespace == "":
		resource = ClusterExplanations
	}
	return schema.GroupResource{Group: Group, Resource: resource}
}

// APIValues are the parameters of a request for APIResource, whose path has the namespace and
// the name.
func (q Question) APIValues() url.Values {
	q.Namespace, q.Name = "", ""
	return q.QueryValues()
}

// QueryValues is the question as parameters of a request at ReplicaPath.
func (q Question) QueryValues() url.Values {
	out := url.Values{}
	for key, value := range map[string]string{
		"group": q.Group, "kind": q.Kind, "resource": q.Resource, "namespace": q.Namespace, "name": q.Name, "request": q.Request, "user": q.User,
	} {
		if value != "" {
			out.Set(key, value)
		}
	}
	for key, value := range map[string]bool{"pods": q.Pods, "nearest": q.Nearest} {
		if value {
			out.Set(key, "true")
		}
	}
	if len(q.If) > 0 {
		out["if"] = q.If
	}
	if q.Skip > 0 {
		out.Set("skip", strconv.Itoa(q.Skip))
	}
	return out
}

// ParseQuestion reads the parameters that QueryValues wrote.
func ParseQuestion(v url.Values) Question {
	skip, err := strconv.Atoi(v.Get("skip"))
	if err != nil || skip < 0 {
		skip = 0
	}
	return Question{
		Skip:  skip,
		Group: v.Get("group"), Kind: v.Get("kind"), Resource: v.Get("resource"), Namespace: v.Get("namespace"), Name: v.Get("name"),
		Pods: v.Get("pods") == "true", Nearest: v.Get("nearest") == "true", If: v["if"], Request: v.Get("request"), User: v.Get("user"),
	}
}
