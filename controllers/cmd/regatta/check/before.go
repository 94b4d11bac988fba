// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// checkBefore checks whether Regatta can be installed.
func (i *inspector) checkBefore(ctx context.Context) {
	planned, err := i.findPlanned()
	if err != nil {
		i.addError("planned", "objects of the chart", "read", err)
		return
	}
	mapped := i.mapPlanned(planned)
	i.checkRights(ctx, mapped)
	space := i.checkNamespace(ctx, planned)
	i.checkReleases(ctx)
	i.checkOwners(ctx, mapped)
	asked := append(slices.Clone(mapped), i.madeOf(mapped)...)
	i.checkOtherWebhooks(ctx, asked, space)
	i.checkAdmission(ctx, asked, space)
	i.checkNodes(ctx, nil)
}

// plannedObject is an object with its resource in the API server.
type plannedObject struct {
	client.Object
	mapping *meta.RESTMapping
}

func (p plannedObject) displayName() string {
	return nameOf(p.mapping.GroupVersionKind.Kind, p.GetNamespace(), p.GetName())
}

func (p plannedObject) isNamespaced() bool {
	return p.mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// mapPlanned finds the resources of objects. Kinds that the API server does not have are findings.
func (i *inspector) mapPlanned(planned []client.Object) []plannedObject {
	var out []plannedObject
	missing := map[schema.GroupKind]bool{}
	for _, o := range planned {
		gvk := o.GetObjectKind().GroupVersionKind()
		mapping, err := i.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		switch {
		case err == nil:
			p := plannedObject{o, mapping}
			if p.isNamespaced() && o.GetNamespace() == "" {
				o.SetNamespace(i.ReleaseNamespace)
			}
			out = append(out, p)
		case missing[gvk.GroupKind()]:
		case meta.IsNoMatchError(err):
			missing[gvk.GroupKind()] = true
			i.addFinding(Finding{Blocks, "kubernetes", gvk.GroupVersion().String(), "kind " + gvk.Kind, "the API server does not serve it, and the installation has " + o.GetName(), "turn the API on, or leave the object out by the values of the chart"})
		default:
			missing[gvk.GroupKind()] = true
			i.addError("kubernetes", gvk.GroupVersion().String(), "discover", err)
		}
	}
	return out
}

// right is a permission that an installation needs.
type right struct{ verb, group, resource, namespace string }

func (r right) String() string {
	name := schema.GroupResource{Group: r.group, Resource: r.resource}.String()
	if r.namespace != "" {
		name += " in namespace " + r.namespace
	}
	return r.verb + " " + name
}

// askCommand is the kubectl command that asks for the same permission.
func (r right) askCommand() string {
	text := "kubectl auth can-i " + r.verb + " " + schema.GroupResource{Group: r.group, Resource: r.resource}.String()
	if r.namespace != "" {
		text += " -n " + r.namespace
	}
	return text
}

// neededRights returns the permissions to create the objects, and to store the release as Helm does.
func (i *inspector) neededRights(planned []plannedObject) []right {
	var out []right
	seen := map[right]bool{}
	add := func(verb, group, resource, namespace string) {
		r := right{verb, group, resource, namespace}
		if !seen[r] {
			seen[r] = true
			out = append(out, r)
		}
	}
	for _, p := range planned {
		for _, verb := range []string{"create", "get"} {
			add(verb, p.mapping.Resource.Group, p.mapping.Resource.Resource, p.GetNamespace())
		}
	}
	for _, verb := range []string{"create", "list", "update"} {
		add(verb, "", "secrets", i.ReleaseNamespace)
	}
	return out
}

// mostAtOnce is how many requests are made at once.
const mostAtOnce = 8

// inParallel calls a function for each of n.
func inParallel(n int, call func(int)) {
	var all sync.WaitGroup
	room := make(chan struct{}, mostAtOnce)
	for k := range n {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			call(k)
		})
	}
	all.Wait()
}

// checkRights asks the API server which of the needed permissions the caller has. Whether the caller may grant the roles of the chart is
// shown by the dry run, which has their rules.
func (i *inspector) checkRights(ctx context.Context, planned []plannedObject) {
	needed := i.neededRights(planned)
	var mu sync.Mutex
	allowed := 0
	inParallel(len(needed), func(k int) {
		may, why, err := i.mayDo(ctx, needed[k])
		switch {
		case err != nil:
			i.addError("rights", "SelfSubjectAccessReview", needed[k].String(), err)
		case may:
			mu.Lock()
			allowed++
			mu.Unlock()
		default:
			message := "you may not " + needed[k].String() + ", which the installation does"
			if why != "" {
				message += ": " + why
			}
			i.addFinding(Finding{Blocks, "rights", "you", needed[k].String(), message, "have a cluster administrator install it, or grant it; " + needed[k].askCommand() + " asks again"})
		}
	})
	if allowed > 0 {
		i.addFinding(Finding{Fine, "rights", "you", "SelfSubjectAccessReview", fmt.Sprintf("you have %d of the %d rights that the installation needs", allowed, len(needed)), ""})
	}
}

// mayDo asks whether the caller has a permission, and why not.
func (i *inspector) mayDo(ctx context.Context, r right) (bool, string, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: r.verb, Group: r.group, Resource: r.resource, Namespace: r.namespace},
	}}
	err := i.askServer(ctx, func(ctx context.Context) error { return i.Create(ctx, review) })
	return review.Status.Allowed, review.Status.Reason, err
}
