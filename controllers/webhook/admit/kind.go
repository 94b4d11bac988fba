// Package admit makes the webhooks of a kind out of what is particular to it: what
// it leaves to defaults, and what its rules are.
//
// A rule that both versions share is written once, for the hub; an error still
// names the field in the version that the user typed. A user is told about what
// he changed only: an update that leaves the spec alone, as that of a controller
// or of somebody who adds an annotation, costs a comparison and cannot fail.
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

// Kind says how objects of one kind are admitted. H is a pointer to the hub.
type Kind[H client.Object] struct {
	// New makes an empty object.
	New func() H
	// Older makes an empty object of the older version; nil if it looks the same.
	Older func() Spoke
	// OlderVersion is the name of that version.
	OlderVersion string
	// Renamed says where the older version has fields of the hub, by path, with
	// [] for any index, such as spec.subsets[].requiredNodeSelector.
	Renamed map[string]string
	// Loose are fields that the schema takes in any form, by path without indexes:
	// what is misspelt below them is told. They are the same in all versions.
	Loose []string
	// Same says whether nothing changed that rules are about.
	Same func(a, b H) bool
	// Default fills in what the user left out; nil if nothing is. The old object
	// is nil when one is created.
	Default func(object, old H)
	// Fill fills in what is to be looked up when an object is created, after the
	// defaults; nil if nothing is. What it does not find it leaves to Validate,
	// which says what is wrong where a user looks for it.
	Fill func(ctx context.Context, object H)
	// DefaultNewer fills in fields that only the hub has, for who typed the hub:
	// to others they would show up in an annotation that they never wrote.
	DefaultNewer func(object H)
	// Validate finds mistakes. The old object is nil when one is created.
	Validate func(ctx context.Context, object, old H, found *rules.Findings)
}

// object is one as the user typed it, and as all rules see it.
type object[H client.Object] struct {
	raw   []byte
	hub   H
	older bool
}

func (k *Kind[H]) decode(raw []byte, version string) (object[H], error) {
	o := object[H]{raw: raw, hub: k.New(), older: k.Older != nil && version == k.OlderVersion}
	if !o.older {
		if err := json.Unmarshal(raw, o.hub); err != nil {
			return o, fmt.Errorf("reading the object: %w", err)
		}
		return o, nil
	}
	spoke := k.Older()
	if err := json.Unmarshal(raw, spoke); err != nil {
		return o, fmt.Errorf("reading the object: %w", err)
	}
	hub, ok := client.Object(o.hub).(conversion.Hub)
	if !ok {
		return o, fmt.Errorf("reading the object: %T is not what others are converted to", o.hub)
	}
	if err := spoke.ConvertTo(hub); err != nil {
		return o, fmt.Errorf("reading the object: %w", err)
	}
	return o, nil
}

// typed is the hub in the version that the user typed.
func (k *Kind[H]) typed(o object[H], hub H) (client.Object, error) {
	if !o.older {
		return hub, nil
	}
	spoke := k.Older()
	if err := spoke.ConvertFrom(client.Object(hub).(conversion.Hub)); err != nil {
		return nil, fmt.Errorf("writing the object: %w", err)
	}
	return spoke, nil
}

// read reads what is asked about, and what there was before.
func (k *Kind[H]) read(request *admission.Request) (o object[H], old H, updated bool, err error) {
	if o, err = k.decode(request.Object.Raw, request.Kind.Version); err != nil || request.Operation != admissionv1.Update {
		return o, old, false, err
	}
	before, err := k.decode(request.OldObject.Raw, request.Kind.Version)
	return o, before.hub, true, err
}

// place is where the older version has a field of the hub.
func (k *Kind[H]) place(path string) string {
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

// writes is false for requests that carry no spec: deletes, and those of
// subresources.
func writes(request *admission.Request) bool {
	return request.SubResource == "" && (request.Operation == admissionv1.Create || request.Operation == admissionv1.Update)
}
