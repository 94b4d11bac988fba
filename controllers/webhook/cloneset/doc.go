// Package cloneset admits CloneSets: it fills in defaults, finds mistakes (CS-20) and guards deletes, in both
// versions.
//
// A rule that both versions share is written once, for the hub; an error still names the field in the version that the
// user typed. A user is told about what he changed only: an update that leaves the spec alone, as that of a controller or
// of somebody who adds an annotation, costs a comparison and cannot fail.
package cloneset
