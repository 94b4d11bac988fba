// SPDX-License-Identifier: Apache-2.0

// Package admit makes the webhooks of a kind from its defaults and its rules.
//
// A rule that both versions share is written once, for the hub; errors and warnings
// name the field as the version of the request has it. A kind whose versions have
// rules of their own sees both forms of the object.
//
// Only changes are checked: an update that leaves the spec as it is, such as one
// that adds an annotation, costs a comparison and cannot fail.
package admit

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/conversion"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/regatta-sh/regatta/controllers/webhook/rules"
)

// Spoke is an object of a version that is converted to the hub.
type Spoke interface {
	client.Object
	conversion.Convertible
}

// Kind describes how objects of one kind are admitted. H is a pointer to the hub.
type Kind[H client.Object] struct {
	// New makes an empty object.
	New func() H
	// Older makes an empty object of the older version; nil if both versions have the same fields.
	Older func() Spoke
	// OlderVersion is the name of that version.
	OlderVersion string
	// Version is the name of the version of the hub. If it is set, requests of
	// versions that are neither are refused.
	Version string
	// Renamed has the paths of fields in the older version by their paths in the hub, with [] for any
	// index, such as spec.subsets[].requiredNodeSelector.
	Renamed map[string]string
	// Loose are fields that the schema accepts in any form, by path without indexes:
	// unknown fields below them get a warning. They are the same in all versions.
	Loose []string
	// Same reports whether two objects are equal in the fields that the rules read.
	Same func(a, b H) bool
	// SameOlder replaces Same for objects of the older version, if it is set.
	SameOlder func(a, b Spoke) bool
	// Default sets defaults; nil if there are none. The old object is nil when an object is created.
	Default func(object, old H)
	// Fill sets fields from other objects when an object is created, after the defaults; nil if there are
	// none. What it does not find it leaves empty, so that Validate reports the error.
	Fill func(ctx context.Context, object H)
	// DefaultNewer sets defaults of fields that only the hub has, for requests of the hub's version. Users
	// of the older version would see them in an annotation that they never wrote.
	DefaultNewer func(object H)
	// DefaultOlder replaces Default, Fill and DefaultNewer for objects of the older version, if it is set:
	// it sets defaults in the fields of that version.
	DefaultOlder func(object Spoke, old H)
	// Validate finds errors. The old object is nil when an object is created.
	Validate func(ctx context.Context, object, old H, found *rules.Findings)
	// ValidateVersion replaces Validate for kinds with rules that only one version has. The old object is
	// nil when an object is created.
	ValidateVersion func(ctx context.Context, object Object[H], old *Object[H], found *rules.Findings)
	// Accepted is called for a valid object before it is written; nil if there is nothing to do. The object is refused if Accepted
	// fails. It is not called for dry runs.
	Accepted func(ctx context.Context, object, old H) error
}

// Object is an object in the version of the request, and as the hub.
type Object[H client.Object] struct {
	Raw []byte
	Hub H
	// Older is the object in the older version, nil if the request is of the version of the hub.
	Older Spoke
}

func (k *Kind[H]) decodeObject(raw []byte, version string) (Object[H], error) {
	o := Object[H]{Raw: raw, Hub: k.New()}
	if k.Older == nil || version != k.OlderVersion {
		if k.Version != "" && version != k.Version {
			return o, fmt.Errorf("reading an object of version %q: there are %s and %s", version, k.OlderVersion, k.Version)
		}
		if err := json.Unmarshal(raw, o.Hub); err != nil {
			return o, fmt.Errorf("reading the object: %w", err)
		}
		return o, nil
	}
	o.Older = k.Older()
	if err := json.Unmarshal(raw, o.Older); err != nil {
		return o, fmt.Errorf("reading the object: %w", err)
	}
	hub, ok := client.Object(o.Hub).(conversion.Hub)
	if !ok {
		return o, fmt.Errorf("reading the object: %T is not what others are converted to", o.Hub)
	}
	if err := o.Older.ConvertTo(hub); err != nil {
		return o, fmt.Errorf("reading the object: %w", err)
	}
	return o, nil
}

// toRequestVersion converts the hub to the version of the request.
func (k *Kind[H]) toRequestVersion(o Object[H], hub H) (client.Object, error) {
	if o.Older == nil {
		return hub, nil
	}
	spoke := k.Older()
	if err := spoke.ConvertFrom(client.Object(hub).(conversion.Hub)); err != nil {
		return nil, fmt.Errorf("writing the object: %w", err)
	}
	return spoke, nil
}

// readObjects reads the object of a request, and the old object.
func (k *Kind[H]) readObjects(request *admission.Request) (o Object[H], old *Object[H], err error) {
	if o, err = k.decodeObject(request.Object.Raw, request.Kind.Version); err != nil || request.Operation != admissionv1.Update {
		return o, nil, err
	}
	before, err := k.decodeObject(request.OldObject.Raw, request.Kind.Version)
	return o, &before, err
}

// isUnchanged reports whether an update changes no field that the rules read.
func (k *Kind[H]) isUnchanged(o, old Object[H]) bool {
	if k.SameOlder != nil && o.Older != nil {
		return k.SameOlder(o.Older, old.Older)
	}
	return k.Same(o.Hub, old.Hub)
}

// hubOf returns the hub of an object, which may be nil.
func hubOf[H client.Object](o *Object[H]) (hub H) {
	if o != nil {
		hub = o.Hub
	}
	return hub
}

// olderPath returns the path in the older version of a field of the hub.
func (k *Kind[H]) olderPath(path string) string {
	index := regexp.MustCompile(`\[[^]]*]`)
	indexes, plain := index.FindAllString(path, -1), index.ReplaceAllString(path, "[]")
	best := ""
	for from := range k.Renamed {
		if len(from) > len(best) && (plain == from || strings.HasPrefix(plain, from+".") || strings.HasPrefix(plain, from+"[")) {
			best = from
		}
	}
	if best == "" {
		return path
	}
	place := k.Renamed[best] + strings.TrimPrefix(plain, best)
	for _, i := range indexes {
		place = strings.Replace(place, "[]", i, 1)
	}
	return place
}

// isSpecWrite is false for requests that carry no spec: deletes, and those of
// subresources.
func isSpecWrite(request *admission.Request) bool {
	return request.SubResource == "" && (request.Operation == admissionv1.Create || request.Operation == admissionv1.Update)
}
