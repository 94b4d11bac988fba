// Package target is what a command is about: an object, named as kubectl names
// it, in a cluster, found as kubectl finds it.
package target

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Kinds of objects that policies decide about.
const (
	Pod      = "Pod"
	CloneSet = "CloneSet"
)

// Target is an object. Of one that is neither a pod nor a CloneSet the Kind is
// empty, and Resource is what kubectl calls it, such as deployments.apps.
type Target struct{ Kind, Resource, Namespace, Name string }

func (t Target) String() string { return fmt.Sprintf("%s %s/%s", t.Kind, t.Namespace, t.Name) }

// UnknownKindError says that a word is none of the kinds that are allowed.
type UnknownKindError struct{ Word, Name, Want string }

func (e *UnknownKindError) Error() string {
	return fmt.Sprintf("nothing is decided about a %s; want %s", e.Word, e.Want)
}

// kinds are the words that a kind goes by, the first of them in messages.
func kinds() map[string][]string {
	return map[string][]string{
		Pod: {"pod", "po", "pods"},
		CloneSet: {
			"clone", "cloneset", "clonesets", "cloneset.apps.kruise.io", "clonesets.apps.kruise.io",
			"clonesets.v1beta1.apps.kruise.io", "clonesets.v1alpha1.apps.kruise.io",
		},
	}
}

// Parse reads KIND/NAME or KIND NAME. Only objects of some kinds are taken.
func Parse(args []string, allowed ...string) (Target, error) {
	var wanted []string
	for _, kind := range allowed {
		wanted = append(wanted, kinds()[kind][0]+"/NAME")
	}
	want := strings.Join(wanted, " or ")
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
	for kind, words := range kinds() {
		if !slices.Contains(words, strings.ToLower(word)) {
			continue
		}
		if !slices.Contains(allowed, kind) {
			return Target{}, fmt.Errorf("it cannot be a %s here; want %s", kind, want)
		}
		return Target{Kind: kind, Name: name}, nil
	}
	if word == "" {
		return Target{}, errors.New("want " + want)
	}
	return Target{}, &UnknownKindError{word, name, want}
}
