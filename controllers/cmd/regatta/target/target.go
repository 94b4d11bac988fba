// SPDX-License-Identifier: Apache-2.0

// Package target finds the object that a command is about: named as in kubectl, in the cluster that
// kubectl would use.
package target

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/regatta-sh/regatta/controllers/kinds"
)

// Pod is the kind of pods. Policies decide about them and about the kinds of
// kinds.ActingWorkloads.
const Pod = "Pod"

// WorkloadKinds are the kinds of kinds.ActingWorkloads, in the order of that table.
func WorkloadKinds() []schema.GroupKind {
	var out []schema.GroupKind
	for _, w := range kinds.ActingWorkloads() {
		out = append(out, w.GroupKind())
	}
	return out
}

// KnownKinds are the kinds that ParseArgs accepts: pods first, then workloads.
func KnownKinds() []schema.GroupKind {
	return append([]schema.GroupKind{{Kind: Pod}}, WorkloadKinds()...)
}

// Target is an object. If it is neither a pod nor a workload, Kind is empty, and Resource is its
// kubectl name, such as deployments.apps.
type Target struct{ Group, Kind, Resource, Namespace, Name string }

// GroupKind is the kind with its group.
func (t Target) GroupKind() schema.GroupKind { return schema.GroupKind{Group: t.Group, Kind: t.Kind} }

func (t Target) String() string { return fmt.Sprintf("%s %s/%s", t.Kind, t.Namespace, t.Name) }

// UnknownKindError says that a word names none of the allowed kinds.
type UnknownKindError struct{ Word, Name, Want string }

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("nothing is decided about a %s; want %s", e.Word, e.Want)
}

// kindNames returns the names that are accepted for a kind. Messages use the first one.
func kindNames(kind schema.GroupKind) []string {
	if w, ok := kinds.FindByGroupKind(kind); ok {
		return w.CommandLineNames()
	}
	return []string{"pod", "po", "pods"}
}

// ArgumentForms are how objects of some kinds are named on the command line, such as
// pod/NAME.
func ArgumentForms(allowed ...schema.GroupKind) []string {
	var out []string
	for _, kind := range allowed {
		out = append(out, kindNames(kind)[0]+"/NAME")
	}
	return out
}

// ParseArgs reads KIND/NAME or KIND NAME. Only objects of the allowed kinds are accepted.
func ParseArgs(args []string, allowed ...schema.GroupKind) (Target, error) {
	want := strings.Join(ArgumentForms(allowed...), " or ")
	word, name := "", ""
	switch len(args) {
	case 0:
		return Target{}, fmt.Errorf("tell what it is about: %s", want)
	case 1:
		var cut bool
		if word, name, cut = strings.Cut(args[0], "/"); !cut {
			return Target{}, fmt.Errorf("%q is not enough; want %s", args[0], want)
		}
	case 2:
		word, name = args[0], args[1]
	default:
		return Target{}, fmt.Errorf("one object at a time, such as %s", want)
	}
	if name == "" || strings.Contains(name, "/") {
		return Target{}, fmt.Errorf("%q is no name of an object; want %s", strings.Join(args, " "), want)
	}
	for _, kind := range KnownKinds() {
		if !slices.Contains(kindNames(kind), strings.ToLower(word)) {
			continue
		}
		if !slices.Contains(allowed, kind) {
			return Target{}, fmt.Errorf("it cannot be a %s here; want %s", kind.Kind, want)
		}
		return Target{Group: kind.Group, Kind: kind.Kind, Name: name}, nil
	}
	if word == "" {
		return Target{}, errors.New("want " + want)
	}
	return Target{}, &UnknownKindError{word, name, want}
}
