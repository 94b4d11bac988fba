// SPDX-License-Identifier: Apache-2.0

package cloneset

import appsv1 "k8s.io/api/apps/v1"

// look counts what there is, from the API server.
func (s *sim) look() Sight {
	var revisions []*appsv1.ControllerRevision
	for _, o := range s.last {
		if r, ok := o.(*appsv1.ControllerRevision); ok {
			revisions = append(revisions, r)
		}
	}
	return s.witness.Look(s.set(), s.all(), revisions, s.now)
}

// judge holds a write of the controller to what it promises at every instant.
func (s *sim) judge(what string, before Sight) {
	// Writes are made by goroutines, which may not fail a test.
	if why := Broken(s.set(), before, s.look()); why != "" && s.broken == "" {
		s.broken = what + " " + why
	}
}
