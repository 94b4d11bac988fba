// SPDX-License-Identifier: Apache-2.0

package podscope

import (
	"context"
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/regatta-sh/regatta/controllers/annotation"
)

// Annotation is the annotation with the claims, on the configuration of the webhook of pods.
const Annotation = "apps.kruise.io/awaited-sidecarsets"

// PendingSelector is a claim that pods must be sent for an object that is about to be written: the caches of the managers may not have the
// object yet, or only its old version. Most claims are for SidecarSets; those for WorkloadSpreads and PersistentPodStates are for the pods
// of a namespace.
type PendingSelector struct {
	// Kind and Namespace are those of a namespaced object. Both are empty for a SidecarSet.
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Set is the name of the object; empty if the claim is that of a rule.
	Set   string   `json:"set,omitempty"`
	Reach Selector `json:"reach"`
	// UID is the UID of a namespaced object, since an object that is created again has the same name.
	UID types.UID `json:"uid,omitempty"`
	// At distinguishes two claims with the same content. It is never compared with the time of another machine.
	At time.Time `json:"at"`
}

// ObjectKey names the object of the claim. It is unique, since no SidecarSet has a slash in its name.
func (c PendingSelector) ObjectKey() string {
	if c.Kind == "" {
		return c.Set
	}
	return ObjectKey(c.Kind, c.Namespace, c.Set)
}

// ObjectKey is the name of a namespaced object in claims.
func ObjectKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// ContentKey is equal for claims of the same object for the same pods.
func (c PendingSelector) ContentKey() string { return c.ObjectKey() + "/" + c.Reach.Key() }

// ID is unique for each claim.
func (c PendingSelector) ID() string { return c.ContentKey() + "/" + c.At.Format(time.RFC3339Nano) }

// IsUnnamed reports whether the claim replaces claims that were too many: it is for all pods, and names no object.
func (c PendingSelector) IsUnnamed() bool { return c.Set == "" && c.Reach.MatchesAllPods() }

// ReadClaims reads the claims of a configuration.
func ReadClaims(of client.Object) ([]PendingSelector, error) {
	raw := of.GetAnnotations()[Annotation]
	if raw == "" {
		return nil, nil
	}
	return annotation.Decode[[]PendingSelector](Annotation, raw)
}

// EncodeClaims returns the value of the annotation; empty if there are no claims.
func EncodeClaims(claims []PendingSelector) string {
	if len(claims) == 0 {
		return ""
	}
	return encodeJSON(claims)
}

// ClaimsToken returns a token that identifies a list of claims; empty if there are none.
func ClaimsToken(claims []PendingSelector) string {
	if len(claims) == 0 {
		return ""
	}
	return pathDigest(EncodeClaims(claims))
}

// awaiting is between the path of the webhook of pods and a token.
const awaiting = "/awaiting/"

// TokenPath is the path to which the API server sends pods while there are claims. It identifies the configuration that a pod was sent
// by, which the manager that receives the pod may not have seen yet.
func TokenPath(path, token string) string {
	if token == "" {
		return path
	}
	return path + awaiting + token
}

// PathPrefix is the prefix of all these paths.
func PathPrefix(path string) string { return path + awaiting }

type tokenKey struct{}

// WithToken adds the token of the path that a pod was sent to to the context.
func WithToken(ctx context.Context, r *http.Request) context.Context {
	if _, token, found := strings.Cut(r.URL.Path, awaiting); found {
		return context.WithValue(ctx, tokenKey{}, token)
	}
	return ctx
}

// TokenOf is the token that a pod was sent with; empty if there are no claims.
func TokenOf(ctx context.Context) string {
	token, _ := ctx.Value(tokenKey{}).(string)
	return token
}
